"""A replica in bounds of its own: limits hold, a kill for memory is told, use is measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from regatta.api.job import Phase
from regatta.cli.show.ansi import Paint
from regatta.cli.show.description import describe_lines
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from regatta.engines.local.replicas import hierarchies
from regatta.engines.local.replicas.runspec import BackOff
from regatta.engines.local.replicas.runspec import Group as GroupSpec
from regatta.engines.local.supervisor.groups import Group
from tests.engines.local.control_groups import has_groups, has_limits
from tests.engines.local.jobs import (
    a_job,
    eventually,
    pods_of,
    submit,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.runs import Pod, shell

EAT = "import time; taken = bytearray(200 << 20); time.sleep(600)"
SPIN = "while :; do :; done"


def bounded(name: str, script: str, limits: dict[str, str], **spec: Any) -> dict[str, Any]:
    job = a_job(name, script, **spec)
    [container] = job["spec"]["worker"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": limits}
    return job


def groups_of(home: Home) -> list[Path]:
    """Of every run that this home knows."""
    runs = home.path.glob("jobs/*/pods/*/runs/*/run.json")
    folders = [json.loads(run.read_text())["group"]["folders"] for run in runs]
    return [Path(folder) for each in folders for folder in each]


@has_limits
def test_a_replica_that_uses_up_its_memory_is_killed_and_says_so_and_its_neighbour_runs_on(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    limits = {"memory": "64Mi"}
    submit(engine, bounded("beside", f"until [ -e {go} ]; do sleep 0.02; done", limits))
    wait_for(engine, "beside", Phase.RUNNING)
    submit(engine, bounded("eater", f"echo hungry; exec {sys.executable} -c '{EAT}'", limits))
    job = wait_for(engine, "eater", Phase.FAILED)
    failure = job.status.failure
    assert failure is not None
    assert (failure.exit_code, failure.reason) == (137, "OOMKilled")
    assert failure.message == "hungry\nkilled for memory: it used its limit of 64Mi"
    assert pods_of(engine, "beside")[0].phase == "Running"
    go.touch()
    wait_for(engine, "beside", Phase.COMPLETED)
    wait_until_quiet(engine, "beside")
    assert not any(folder.exists() for folder in groups_of(home))


@has_limits
@pytest.mark.parametrize("then", ["exit 3", "exit 0", "sleep 600"])
def test_a_replica_of_which_a_child_is_killed_for_memory_ends_as_a_whole_whatever_its_parent_does(
    engine: Blocking, then: str
) -> None:
    script = f"{sys.executable} -c '{EAT}' || {then}"
    submit(engine, bounded("parent", script, {"memory": "64Mi"}))
    job = wait_for(engine, "parent", Phase.FAILED)
    failure = job.status.failure
    assert failure is not None
    assert (failure.exit_code, failure.reason) == (137, "OOMKilled")
    assert failure.message.endswith("killed for memory: it used its limit of 64Mi")
    assert "OOMKilled: it used its limit of 64Mi" in job.status.message


@has_limits
def test_a_replica_that_is_killed_for_memory_again_and_again_says_so_while_it_waits(
    pod: Pod,
) -> None:
    eats = shell(f"exec {sys.executable} -I -S -c '{EAT}'")
    bounds = GroupSpec(memory_bytes=64 << 20)
    pauses = BackOff(base_seconds=600.0)
    pod.start(eats, restart_policy="OnFailure", group=bounds, back_off=pauses)
    waiting = eventually(lambda: pod.state().waiting, "a pause before it starts again")
    killed = "exit code 137, OOMKilled (killed for memory: it used its limit of 64Mi)"
    assert waiting.startswith(f"CrashLoopBackOff: {killed}, restart 2 at ")
    assert f"{killed}; restart 1 in 0 s" in "\n".join(pod.texts())


@has_limits
def test_a_kill_for_memory_elsewhere_is_not_the_replicas(engine: Blocking, tmp_path: Path) -> None:
    go = tmp_path / "go"
    submit(engine, a_job("other", f"until [ -e {go} ]; do sleep 0.02; done; kill -KILL $$$$"))
    wait_for(engine, "other", Phase.RUNNING)
    submit(engine, bounded("eater", f"{sys.executable} -c '{EAT}'", {"memory": "64Mi"}))
    wait_for(engine, "eater", Phase.FAILED)
    go.touch()
    job = wait_for(engine, "other", Phase.FAILED)
    assert job.status.failure is not None
    assert (job.status.failure.exit_code, job.status.failure.reason) == (137, "Error")


@has_limits
def test_half_a_core_is_half_a_core_and_one_look_at_top_tells(engine: Blocking) -> None:
    submit(engine, bounded("half", SPIN, {"cpu": "0.5"}))
    wait_for(engine, "half", Phase.RUNNING)

    def look() -> float | None:
        [use] = engine.capacity(None).replicas
        assert (use.cpus_limit, use.memory_limit) == (0.5, None)
        return use.cpus_used

    used = [eventually(look, "any use") for _ in range(3)]
    # On a busy machine it may get less; a reading may hold one period of 0.1 s too many.
    assert all(0 < cpus < 0.5 + 0.1 / 0.2 * 0.5 for cpus in used), used


@pytest.mark.parametrize("grouped", [True, False], ids=["by its group", "by its processes"])
def test_the_first_top_of_a_busy_loop_says_what_it_uses_and_what_the_machine_does(
    engine: Blocking, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not grouped:
        monkeypatch.setattr(hierarchies, "places", lambda: ())
    submit(engine, a_job("busy", SPIN))
    wait_for(engine, "busy", Phase.RUNNING)
    capacity = engine.capacity(None)
    [use], [machine] = capacity.replicas, capacity.nodes
    assert use.cpus_used is not None
    assert use.cpus_used > 0
    assert use.memory_used
    assert machine.cpus_used is not None
    assert machine.cpus_used > 0


def test_one_look_at_a_replica_claims_no_use(engine: Blocking) -> None:
    submit(engine, a_job("busy", SPIN))
    wait_for(engine, "busy", Phase.RUNNING)
    assert pods_of(engine, "busy")[0].cpu_percent is None


@has_groups
def test_a_run_has_a_group_and_leaves_none(engine: Blocking, home: Home) -> None:
    submit(engine, a_job("short", "sleep 600"))
    wait_for(engine, "short", Phase.RUNNING)
    folders = groups_of(home)
    assert folders
    pid = pods_of(engine, "short")[0].pid
    assert all(str(pid) in (folder / "cgroup.procs").read_text().split() for folder in folders)
    engine.stop("default", "short")
    wait_until_quiet(engine, "short")
    assert not any(folder.exists() for folder in folders)


def test_where_no_group_can_be_had_describe_says_which_limits_are_only_counted(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hierarchies, "places", lambda: ())
    submit(engine, bounded("free", "sleep 600", {"cpu": "0.5", "memory": "64Mi"}))
    job = wait_for(engine, "free", Phase.RUNNING)
    pods = pods_of(engine, "free")
    assert pods[0].only_counted == "cpu, memory"
    page = "\n".join(describe_lines(job, pods, [], Paint(False)))
    assert "cpu, memory: only counted, nothing holds them" in page
    assert "Delegate=yes" in page


def test_a_group_that_lets_no_process_in_is_done_without(
    engine: Blocking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A plain folder can be made like a group, and that is all.
    monkeypatch.setattr(hierarchies, "places", lambda: (f"{tmp_path}/regatta",))
    submit(engine, bounded("outside", "sleep 600", {"memory": "64Mi"}))
    wait_for(engine, "outside", Phase.RUNNING)
    assert pods_of(engine, "outside")[0].only_counted == "memory"
    assert not (tmp_path / "regatta").exists()


@has_groups
def test_a_group_that_is_removed_while_a_replica_waits_to_start_again_is_made_anew(
    pod: Pod, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    script = f"echo >> {tries}; test $(wc -l < {tries}) -lt 3 && exit 1; exec sleep 600"
    pauses = BackOff(base_seconds=5.0, limit_seconds=5.0)
    pod.start(shell(script), restart_policy="OnFailure", back_off=pauses)
    eventually(lambda: pod.state().waiting, "a pause before it starts again")
    group = Group(json.loads((pod.run / "run.json").read_text())["group"]["folders"])
    assert group.remove()
    eventually(lambda: pod.state().restarts == 2 and pod.state().pid in group.pids(), "its return")


@has_limits
def test_limits_that_hold_are_nothing_to_speak_of(engine: Blocking) -> None:
    submit(engine, bounded("held", "sleep 600", {"cpu": "0.5", "memory": "64Mi"}))
    job = wait_for(engine, "held", Phase.RUNNING)
    pods = pods_of(engine, "held")
    assert pods[0].only_counted == ""
    assert "only counted" not in "\n".join(describe_lines(job, pods, [], Paint(False)))
