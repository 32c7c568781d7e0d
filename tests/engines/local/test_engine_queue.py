"""Waiting and starting on the real engine: gangs, GPUs, and what is told to those who wait."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import uuid
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from regatta.api.errors import NeverFits
from regatta.api.job import Phase
from regatta.engines.blocking import Blocking
from regatta.engines.local import loop
from regatta.engines.local.replicas.runspec import gpu_hold, port_hold
from regatta.engines.local.scheduling import binding, reservations
from regatta.engines.local.scheduling.reservations import BLOCKS, block_is_free, port_of
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord
from tests.engines.local.jobs import (
    a_job,
    a_role,
    eventually,
    pods_of,
    submit,
    wait_for,
)
from tests.engines.local.opening import OpenEngine


def waiting_because(engine: Blocking, name: str) -> str:
    def look() -> str:
        job = engine.get("default", name)
        return job.status.message if job.status.phase is Phase.PENDING else ""

    return eventually(look, f"{name} saying why it waits")


def test_a_job_larger_than_the_free_machine_waits_and_starts_when_room_appears(
    open_engine: OpenEngine,
) -> None:
    engine = open_engine(cpus=2)
    submit(engine, a_job("first", "exec sleep 600", cpu=1))
    wait_for(engine, "first", Phase.RUNNING)
    submit(engine, a_job("second", "true", replicas=2, cpu=1))
    assert waiting_because(engine, "second") == "needs 2 CPUs, 1 of 2 free; next in the queue"
    assert not any(pod.address for pod in engine.pods("default", "second"))
    engine.stop("default", "first")
    wait_for(engine, "second", Phase.COMPLETED)


def test_places_in_the_queue_move_up(open_engine: OpenEngine) -> None:
    engine = open_engine(cpus=1)
    for name in ("a", "b", "c"):
        submit(engine, a_job(name, "exec sleep 600", cpu=1))
    wait_for(engine, "a", Phase.RUNNING)
    assert waiting_because(engine, "c").endswith("2nd in the queue")
    engine.stop("default", "a")
    wait_for(engine, "b", Phase.RUNNING)
    eventually(lambda: waiting_because(engine, "c").endswith("next in the queue"), "c's moving up")


def test_a_higher_priority_goes_first(open_engine: OpenEngine) -> None:
    engine = open_engine(cpus=1)
    submit(engine, a_job("first", "exec sleep 600", cpu=1))
    wait_for(engine, "first", Phase.RUNNING)
    submit(engine, a_job("usual", "exec sleep 600", cpu=1))
    policy = {"priorityClass": "high"}
    submit(engine, a_job("urgent", "exec sleep 600", cpu=1, schedulingPolicy=policy))
    engine.stop("default", "first")
    wait_for(engine, "urgent", Phase.RUNNING)
    assert engine.get("default", "usual").status.phase is Phase.PENDING


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (a_job("big", cpu=5), "it needs 5 CPUs, this machine has 4 CPUs"),
        (a_job("wide", replicas=3, cpu=2), "it needs 6 CPUs, this machine has 4 CPUs"),
        (a_job("gpu", gpus=1), "it needs 1 GPU, this machine has 0 GPUs.*--no-gpu"),
        (a_job("many", replicas=111), "it needs 111 replica slots, this machine has 110"),
    ],
)
def test_a_job_that_can_never_fit_is_refused_with_the_numbers(
    engine: Blocking, job: dict[str, object], words: str
) -> None:
    with pytest.raises(NeverFits, match=words):
        submit(engine, job)
    assert engine.list(None) == []


def test_a_job_that_asks_for_gpus_can_be_tried_without(engine: Blocking, tmp_path: Path) -> None:
    script = f'echo "[$CUDA_VISIBLE_DEVICES] $PADDLE_DISTRI_BACKEND" > {tmp_path}/seen'
    job = a_job("tryout", script, replicas=2, gpus=4)
    submit(engine, job, tmp_path, no_gpu=True)
    wait_for(engine, "tryout", Phase.COMPLETED)
    assert (tmp_path / "seen").read_text() == "[] gloo\n"


def test_gpus_are_given_as_whole_devices_and_never_twice(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    devices = [f"test-{uuid.uuid4()}" for _ in range(3)]  # names are the whole machine's
    engine = open_engine(gpus=tuple(devices))
    script = f'echo "$CUDA_VISIBLE_DEVICES" > {tmp_path}/$HOSTNAME_OF_POD; exec sleep 600'
    for name, gpus in (("one", 1), ("two", 2)):
        job = a_job(name, script, gpus=gpus)
        container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "HOSTNAME_OF_POD", "value": name}]
        submit(engine, job, tmp_path)
        wait_for(engine, name, Phase.RUNNING)
    held = {name: pods_of(engine, name)[0].gpus for name in ("one", "two")}
    assert sorted(held["one"] + held["two"]) == sorted(devices)
    eventually(lambda: (tmp_path / "two").exists(), "its file")
    line = eventually((tmp_path / "two").read_text, "its first line")
    assert line.strip() == ",".join(held["two"])
    assert engine.capacity().nodes[0].gpus_held == 3


def test_nothing_is_given_twice_after_a_turn_that_failed_and_records_that_cannot_be_read(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(cpus=1)
    submit(engine, a_job("holds", "exec sleep 600", cpu=1))
    wait_for(engine, "holds", Phase.RUNNING)
    schedule, look = loop.schedule, loop.jobs_to_look_at
    failed: list[str] = []

    def schedule_in_vain(*_: object, **__: object) -> object:
        monkeypatch.setattr(loop, "schedule", schedule)
        raise AssertionError("as if by a mistake of ours")

    def look_in_vain(read: Queries) -> list[JobRecord]:
        failed.append("read")
        if len(failed) == 2:
            monkeypatch.setattr(loop, "jobs_to_look_at", look)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(loop, "RETRY", 0.05)
    monkeypatch.setattr(loop, "schedule", schedule_in_vain)
    monkeypatch.setattr(loop, "jobs_to_look_at", look_in_vain)
    submit(engine, a_job("first", cpu=1))
    eventually(lambda: failed, "a read that fails")
    submit(engine, a_job("second", cpu=1))
    for name in ("first", "second"):
        assert "0 of 1 free" in waiting_because(engine, name)
    assert failed == ["read", "read"]


def test_a_restarting_job_keeps_its_place(open_engine: OpenEngine, tmp_path: Path) -> None:
    engine = open_engine(cpus=1)
    script = f"echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -ge 2 ]"
    submit(engine, a_job("flaky", script, cpu=1, runPolicy={"backoffLimit": 1}), tmp_path)
    submit(engine, a_job("patient", f"test -s {tmp_path}/tries", cpu=1))
    flaky = wait_for(engine, "flaky", Phase.COMPLETED)
    patient = wait_for(engine, "patient", Phase.COMPLETED)
    assert flaky.status.restarts == 1
    assert flaky.status.completion_time is not None
    assert patient.status.start_time is not None
    assert patient.status.start_time >= flaky.status.completion_time


def test_scaling_up_stops_nothing_until_the_new_size_is_admitted(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine = open_engine(cpus=3)
    script = f"echo $PADDLE_TRAINERS_NUM >> {tmp_path}/$PADDLE_TRAINER_ID; exec sleep 600"
    submit(engine, a_job("grow", script, replicas=2, cpu=1), tmp_path)
    wait_for(engine, "grow", Phase.RUNNING)
    submit(engine, a_job("other", "exec sleep 600", cpu=1))
    wait_for(engine, "other", Phase.RUNNING)
    engine.scale("default", "grow", "worker", 3)
    eventually(
        lambda: any("needs 1 CPU" in p.message for p in engine.pods("default", "grow")),
        "the growth's waiting",
    )
    phases = [pod.phase for pod in engine.pods("default", "grow") if pod.current]
    assert phases == ["Running", "Running", "Pending"]
    engine.stop("default", "other")
    eventually(
        lambda: (tmp_path / "2").exists() and (tmp_path / "2").read_text() == "3\n",
        "the third worker's start",
    )


def test_growth_waits_in_line_behind_those_who_came_before_it(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine = open_engine(cpus=4)
    submit(engine, a_job("grow", "exec sleep 600", replicas=2, cpu=1))
    wait_for(engine, "grow", Phase.RUNNING)
    submit(engine, a_job("other", "exec sleep 600", cpu=1))
    wait_for(engine, "other", Phase.RUNNING)
    submit(engine, a_job("head", "exec sleep 600", cpu=2))
    assert "needs 2 CPUs, 1 of 4 free" in waiting_because(engine, "head")

    engine.scale("default", "grow", "worker", 3)  # for which there is room

    eventually(
        lambda: "held back so that head" in engine.get("default", "grow").status.message,
        "the growth's waiting",
    )
    phases = [pod.phase for pod in engine.pods("default", "grow") if pod.current]
    assert phases == ["Running", "Running", "Pending"]
    engine.stop("default", "other")
    wait_for(engine, "head", Phase.RUNNING)
    assert engine.get("default", "grow").status.phase is Phase.RUNNING
    engine.stop("default", "head")
    eventually(lambda: len(running(engine, "grow")) == 3, "the third worker")


def test_one_that_is_scaled_while_it_waits_keeps_its_place(open_engine: OpenEngine) -> None:
    engine = open_engine(cpus=2)
    submit(engine, a_job("old", "exec sleep 600", cpu=2))
    wait_for(engine, "old", Phase.RUNNING)
    submit(engine, a_job("first", "exec sleep 600", cpu=1))
    submit(engine, a_job("second", "exec sleep 600", cpu=1))
    assert waiting_because(engine, "second").endswith("2nd in the queue")

    engine.scale("default", "first", "worker", 2)

    eventually(lambda: "needs 2 CPUs" in waiting_because(engine, "first"), "its new size")
    assert waiting_because(engine, "first").endswith("next in the queue")
    assert waiting_because(engine, "second").endswith("2nd in the queue")


def running(engine: Blocking, name: str) -> list[str]:
    pods = engine.pods("default", name)
    return [pod.name for pod in pods if pod.current and pod.phase == "Running"]


def a_diary(folder: Path, name: str) -> str:
    """A program that writes down when it begins and ends, which is not before it may."""
    wait = f"until [ -e {folder}/go ]; do sleep 0.02; done"
    return f"echo {name} begins >> {folder}/diary; {wait}; echo {name} ends >> {folder}/diary"


def test_two_gangs_that_each_need_the_machine_run_one_after_the_other(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine = open_engine(cpus=2)
    names = ("first", "second", "third")
    for name in names:
        submit(engine, a_job(name, a_diary(tmp_path, name), replicas=2, cpu=1), tmp_path)
    for name in names[1:]:
        assert "needs 2 CPUs" in waiting_because(engine, name)
    (tmp_path / "go").touch()
    for name in names:
        wait_for(engine, name, Phase.COMPLETED)
    diary = [line.split()[0] for line in (tmp_path / "diary").read_text().splitlines()]
    assert diary == [name for name in names for _ in range(4)]


def test_more_jobs_than_there_are_replica_slots_all_get_their_turn(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine = open_engine(pods=3)
    names = [f"job-{number}" for number in range(12)]
    for name in names:
        submit(engine, a_job(name, a_diary(tmp_path, name)), tmp_path)
    assert waiting_because(engine, names[-1]).endswith("9th in the queue")
    (tmp_path / "go").touch()
    for name in names:
        wait_for(engine, name, Phase.COMPLETED)
    here = 0
    for line in (tmp_path / "diary").read_text().splitlines():
        here += 1 if line.endswith("begins") else -1
        assert here <= 3
    eventually(lambda: engine.capacity().nodes[0].pods_held == 0, "everything being given back")


@pytest.mark.parametrize(
    ("policy", "worker", "phase", "left"),
    [
        ("Never", "true", Phase.COMPLETED, {"ps", "worker"}),
        ("OnCompletion", "true", Phase.COMPLETED, set()),
        ("Always", "true", Phase.COMPLETED, set()),
        ("OnFailure", "true", Phase.COMPLETED, {"ps", "worker"}),
        ("Never", "exit 1", Phase.FAILED, {"ps", "worker"}),
        ("OnCompletion", "exit 1", Phase.FAILED, {"ps", "worker"}),
        ("OnFailure", "exit 1", Phase.FAILED, set()),
        ("Always", "exit 1", Phase.FAILED, set()),
    ],
)
def test_the_clean_pod_policy_decides_which_pods_stay(
    engine: Blocking, policy: str, worker: str, phase: Phase, left: set[str]
) -> None:
    job = a_job("clean", worker, cleanPodPolicy=policy, withGloo=0)
    job["spec"]["ps"] = a_role("exec sleep 600")
    submit(engine, job)
    wait_for(engine, "clean", phase)
    records = engine.pods("default", "clean")
    assert {pod.role for pod in records} == {"ps", "worker"}, "records outlive cleaning"
    eventually(
        lambda: {pod.role for pod in engine.pods("default", "clean") if pod.current} == left,
        "the cleaning",
    )
    runs_on = phase is Phase.COMPLETED and bool(left)
    eventually(
        lambda: (pods_of(engine, "clean", "ps")[0].phase == "Running") is runs_on,
        "the servers' end" if not runs_on else "the servers running on",
    )


def test_servers_left_running_are_counted_until_stop_ends_them(open_engine: OpenEngine) -> None:
    engine = open_engine(cpus=2)
    job = a_job("left", "true", cleanPodPolicy="Never", withGloo=0)
    job["spec"]["ps"] = a_role("exec sleep 600", cpu=2)
    submit(engine, job)
    wait_for(engine, "left", Phase.COMPLETED)
    submit(engine, a_job("next", "true", cpu=1))
    why = "0 of 2 free, 2 held by what finished jobs left running (left); next in the queue"
    assert why in waiting_because(engine, "next")
    assert engine.capacity().nodes[0].cpus_held == 2
    stopped = engine.stop("default", "left")
    assert stopped.status.phase is Phase.COMPLETED
    wait_for(engine, "next", Phase.COMPLETED)
    assert engine.get("default", "left").status.phase is Phase.COMPLETED


def test_a_gpu_that_another_users_job_holds_is_waited_for(open_engine: OpenEngine) -> None:
    device = f"test-{uuid.uuid4()}"
    engine = open_engine(gpus=(device,))
    with socket.socket(socket.AF_UNIX) as other_user:
        other_user.bind("\0" + gpu_hold(device).name)
        submit(engine, a_job("polite", "true", gpus=1))
        why = waiting_because(engine, "polite")
        assert "another program" in why
        assert re.search(rf"; process {os.getpid()} \(.+, uid {os.getuid()}\) holds it$", why)
    job = wait_for(engine, "polite", Phase.COMPLETED)
    assert job.status.attempt == 0


def test_who_holds_the_ports_that_a_job_waits_for_is_told(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all blocks are taken, which would keep every other test of this machine waiting."""
    free = [block for block in range(BLOCKS - 1, 0, -1) if block_is_free(block)][:3]
    engine = open_engine()
    with ExitStack() as held, monkeypatch.context() as full:
        full.setattr(reservations, "block_is_free", lambda block: False)
        for block in free:
            theirs = held.enter_context(socket.socket(socket.AF_UNIX))
            theirs.bind("\0" + port_hold(port_of(block)).name)
        submit(engine, a_job("polite", "true"))
        why = waiting_because(engine, "polite")
        assert re.search(rf"in use; process {os.getpid()} \(.+\) holds 3 of them$", why)
        status = engine.get("default", "polite").status
        assert (status.reason, status.message) == ("WaitingForPorts", why)


def test_what_another_process_does_with_ports_keeps_no_turn_from_ending(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes and leaves them all the time is another sentence at every look."""
    looks = count()
    monkeypatch.setattr(binding, "about_holders", lambda *_: f"; look {next(looks)}")
    monkeypatch.setattr(reservations, "block_is_free", lambda block: False)
    engine = open_engine()
    submit(engine, a_job("first", "true"))
    before = waiting_because(engine, "first")
    submit(engine, a_job("second", "true"))
    assert "free ports" in waiting_because(engine, "second")
    eventually(lambda: waiting_because(engine, "first") != before, "a newer look")
