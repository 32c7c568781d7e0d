"""A job's way through the real engine: real store, real brain, real processes."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from regatta.api.errors import (
    EngineIsRunning,
    InvalidJob,
    JobIsLive,
    JobNotFound,
    NeverFits,
    NotPossible,
    PreflightFailed,
)
from regatta.api.job import Phase
from regatta.controller.plan import Instant
from regatta.engines.blocking import Blocking
from regatta.engines.local.clock import SystemClock
from regatta.engines.local.home import Home
from tests.engines.local.jobs import (
    a_job,
    a_role,
    a_submission,
    alive,
    eventually,
    pods_of,
    submit,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.opening import OpenEngine


def test_a_job_completes_when_its_workers_do(engine: Blocking) -> None:
    submit(engine, a_job("hello", "exit 0", replicas=2))
    job = wait_for(engine, "hello", Phase.COMPLETED)
    assert job.status.completion_time is not None
    assert [pod.exit_code for pod in wait_until_quiet(engine, "hello")] == [0, 0]


def test_replicas_have_addresses_and_ports_of_their_own(engine: Blocking) -> None:
    submit(engine, a_job("two", "true", replicas=2))
    wait_for(engine, "two", Phase.COMPLETED)
    first, second = engine.pods("default", "two")
    assert first.address != second.address
    assert first.ports is not None
    assert second.ports == (first.ports[0] + 20, first.ports[1] + 20)


def test_replicas_see_the_environment_that_was_previewed(engine: Blocking, tmp_path: Path) -> None:
    job = a_job("env", f"env > {tmp_path}/$PADDLE_TRAINER_ID", replicas=2)
    preview = engine.preview(*a_submission(job, tmp_path))
    assert [made["kind"] for made in preview.objects] == ["Pod", "Pod", "ConfigMap"]
    assert not engine.list(None)
    submit(engine, job, tmp_path)
    wait_for(engine, "env", Phase.COMPLETED)
    seen = dict(
        line.split("=", 1) for line in (tmp_path / "1").read_text().splitlines() if "=" in line
    )
    shown = preview.environment["env-worker-1"]
    for name in ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT", "POD_IP", "PATH"):
        assert seen[name] == shown[name]
    assert preview.ports["env-worker-1"] == engine.pods("default", "env")[1].ports


def test_a_failed_job_names_the_replica_its_exit_code_and_its_last_lines(
    engine: Blocking,
) -> None:
    submit(engine, a_job("bad", "echo loading; echo no such data >&2; exit 3"))
    job = wait_for(engine, "bad", Phase.FAILED)
    assert job.status.failure is not None
    assert (job.status.failure.pod, job.status.failure.exit_code) == ("bad-worker-0", 3)
    assert "no such data" in job.status.failure.message


def test_when_one_replica_fails_its_peers_are_stopped(engine: Blocking, tmp_path: Path) -> None:
    fails = f"until [ -e {tmp_path}/peer ]; do sleep 0.02; done; exit 7"
    script = (
        f'[ "$PADDLE_TRAINER_ID" = 0 ] || {{ {fails}; }}; touch {tmp_path}/peer; exec sleep 600'
    )
    submit(engine, a_job("uneven", script, replicas=2))
    job = wait_for(engine, "uneven", Phase.FAILED)
    assert job.status.failure is not None
    assert job.status.failure.exit_code == 7
    assert {pod.exit_code for pod in wait_until_quiet(engine, "uneven")} == {7, 143}


def test_a_worker_that_exits_1_with_backoff_limit_2_is_tried_three_times(
    engine: Blocking,
) -> None:
    job = a_job("stubborn", "echo try; exit 1", runPolicy={"backoffLimit": 2})
    submit(engine, job)
    ended = wait_for(engine, "stubborn", Phase.FAILED)
    tries = pods_of(engine, "stubborn")
    assert [pod.attempt for pod in tries] == [0, 1, 2]
    assert [pod.exit_code for pod in tries] == [1, 1, 1]
    assert ended.status.restarts == 2
    assert ended.status.failure is not None
    assert ended.status.failure.message.strip() == "try"


def test_nothing_is_said_to_run_while_an_init_container_waits_to_be_tried_again(
    engine: Blocking,
) -> None:
    init = {"name": "fetch", "image": "unused", "command": ["sh", "-c", "exit 4"]}
    role = a_role("echo never", initContainers=[init], restartPolicy="OnFailure")
    job = a_job("init") | {"spec": {"worker": role}}
    submit(engine, job)

    def told() -> bool:
        return "CrashLoopBackOff" in engine.get("default", "init").status.message

    eventually(told, "the pause")
    status = engine.get("default", "init").status
    assert (status.phase, status.worker and status.worker.ready) == (Phase.STARTING, "0/1")
    why = "init-worker-0: Init:CrashLoopBackOff: init container fetch: exit code 4, restart 2 at "
    assert status.message.startswith(why)
    (pod,) = pods_of(engine, "init")
    assert (pod.phase, pod.reason, pod.restarts) == ("Starting", "Init:CrashLoopBackOff", 2)
    assert f"init-worker-0: {pod.reason}: {pod.message}" == status.message


def test_a_replica_that_waits_to_start_again_in_place_does_not_run(
    engine: Blocking, tmp_path: Path
) -> None:
    """And runs again after its pause, and then waits for nothing."""
    script = f"echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -gt 2 ] && exec sleep 600"
    submit(engine, a_job("place", f"{script}; exit 7", restartPolicy="OnFailure"))

    def pauses() -> bool:
        return "CrashLoopBackOff" in engine.get("default", "place").status.message

    eventually(pauses, "the pause")
    status = engine.get("default", "place").status
    assert (status.phase, status.worker and status.worker.ready) == (Phase.STARTING, "0/1")
    assert "place-worker-0: CrashLoopBackOff: exit code 7, restart 2 at " in status.message

    eventually(lambda: engine.get("default", "place").status.phase is Phase.RUNNING, "a third try")
    status = engine.get("default", "place").status
    assert (status.worker and status.worker.ready, status.message) == ("1/1", "")
    (pod,) = pods_of(engine, "place")
    assert (pod.phase, pod.reason, pod.message, pod.restarts) == ("Running", "", "", 2)


class SetClock(SystemClock):
    """Somebody sets it while jobs run."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = timedelta(0)

    def now(self) -> Instant:
        now = super().now()
        return Instant(now.wall + self.set_by, now.awake)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_neither_ends_a_job_nor_keeps_it_waiting(
    open_engine: OpenEngine, hours: int
) -> None:
    clock = SetClock()
    engine = open_engine(clock=clock)
    policy = {"backoffLimit": 3, "activeDeadlineSeconds": 600}
    submit(engine, a_job("set", "exit 1", runPolicy=policy))
    wait_for(engine, "set", Phase.RESTARTING)

    clock.set_by = timedelta(hours=hours)

    assert wait_for(engine, "set", Phase.FAILED).status.reason == "ReplicaFailed"


def test_a_deadline_ends_a_job_that_runs_too_long(engine: Blocking) -> None:
    submit(engine, a_job("slow", "exec sleep 600", runPolicy={"activeDeadlineSeconds": 1}))
    job = wait_for(engine, "slow", Phase.FAILED)
    assert job.status.reason == "DeadlineExceeded"
    wait_until_quiet(engine, "slow")


def test_a_job_that_outlives_its_time_to_live_is_deleted_with_its_folder(
    engine: Blocking, home: Home
) -> None:
    job = submit(engine, a_job("brief", "true", runPolicy={"ttlSecondsAfterFinished": 1}))
    eventually(lambda: not engine.list(None), "the end of its time to live")
    eventually(lambda: not home.job(job.uid).exists(), "the removal of its folder")


def test_suspending_ends_the_processes_and_resuming_starts_new_ones(engine: Blocking) -> None:
    submit(engine, a_job("pause", "exec sleep 600"))
    wait_for(engine, "pause", Phase.RUNNING)
    (first,) = engine.pods("default", "pause")
    engine.suspend("default", "pause")
    wait_for(engine, "pause", Phase.SUSPENDED)
    wait_until_quiet(engine, "pause")
    assert first.pid is not None
    assert not alive(first.pid)
    assert engine.capacity().nodes[0].pods_held == 0
    engine.resume("default", "pause")
    wait_for(engine, "pause", Phase.RUNNING)
    assert [pod.phase for pod in engine.pods("default", "pause")][-1] == "Running"
    engine.stop("default", "pause")
    wait_for(engine, "pause", Phase.ABORTED)


def test_a_suspended_job_waits_without_starting_anything(engine: Blocking) -> None:
    submit(engine, a_job("asleep", "true", runPolicy={"suspend": True}))
    wait_for(engine, "asleep", Phase.SUSPENDED)
    assert engine.pods("default", "asleep") == []
    engine.resume("default", "asleep")
    wait_for(engine, "asleep", Phase.COMPLETED)


def test_stopping_aborts_a_live_job_and_its_whole_tree(engine: Blocking, tmp_path: Path) -> None:
    script = f"setsid sleep 600 & echo $! > {tmp_path}/child; wait"
    submit(engine, a_job("tree", script), tmp_path)
    wait_for(engine, "tree", Phase.RUNNING)
    child = int(eventually(lambda: _read(tmp_path / "child"), "its child"))
    engine.stop("default", "tree")
    wait_for(engine, "tree", Phase.ABORTED)
    assert not alive(child)


def test_a_waiting_job_can_be_stopped(open_engine: OpenEngine) -> None:
    engine = open_engine(cpus=1)
    submit(engine, a_job("first", "exec sleep 600", cpu=1))
    submit(engine, a_job("second", "true", cpu=1))
    wait_for(engine, "second", Phase.PENDING)
    engine.stop("default", "second")
    wait_for(engine, "second", Phase.ABORTED)
    assert not pods_of(engine, "second")[0].started_at


def test_scaling_up_starts_everybody_again_with_the_new_environment(
    engine: Blocking, tmp_path: Path
) -> None:
    script = f"echo $PADDLE_TRAINERS_NUM >> {tmp_path}/$PADDLE_TRAINER_ID; exec sleep 600"
    submit(engine, a_job("grow", script, replicas=2), tmp_path)
    wait_for(engine, "grow", Phase.RUNNING)
    eventually(lambda: _read(tmp_path / "0") == "2", "the first worker's start")
    engine.scale("default", "grow", "worker", 3)
    eventually(lambda: _read(tmp_path / "2"), "the third worker")
    assert _read(tmp_path / "2") == "3"
    eventually(lambda: _read(tmp_path / "0") == "2\n3", "the first worker's restart")
    job = wait_for(engine, "grow", Phase.RUNNING)
    assert job.status.shape == {"worker": 3}
    engine.stop("default", "grow")


def test_scaling_down_releases_what_is_no_longer_held(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine = open_engine(cpus=2)
    script = f"echo $PADDLE_TRAINERS_NUM >> {tmp_path}/$PADDLE_TRAINER_ID; exec sleep 600"
    submit(engine, a_job("shrink", script, replicas=2, cpu=1), tmp_path)
    wait_for(engine, "shrink", Phase.RUNNING)
    eventually(lambda: _read(tmp_path / "0") == "2", "the first worker's start")
    engine.scale("default", "shrink", "worker", 1)
    eventually(lambda: _read(tmp_path / "0") == "2\n1", "the first worker's restart")
    submit(engine, a_job("beside", "true", cpu=1))
    wait_for(engine, "beside", Phase.COMPLETED)
    engine.stop("default", "shrink")


def test_scaling_is_refused_once_a_worker_has_succeeded(engine: Blocking) -> None:
    script = 'if [ "$PADDLE_TRAINER_ID" = 0 ]; then exit 0; fi; exec sleep 600'
    submit(engine, a_job("half", script, replicas=2))
    eventually(
        lambda: (role := engine.get("default", "half").status.worker) and role.succeeded == 1,
        "one worker's success",
    )
    with pytest.raises(NotPossible, match="already succeeded"):
        engine.scale("default", "half", "worker", 3)
    engine.stop("default", "half")


@pytest.mark.parametrize(
    ("role", "replicas", "error", "words"),
    [
        ("ps", 1, NotPossible, "its roles are worker"),
        ("worker", 0, NotPossible, "at least 1"),
        ("worker", 50, NeverFits, "it needs 50 CPUs, this machine has 4 CPUs"),
    ],
)
def test_scaling_to_what_cannot_be_is_refused(
    engine: Blocking, role: str, replicas: int, error: type[Exception], words: str
) -> None:
    submit(engine, a_job("scale", "exec sleep 600", cpu=1))
    with pytest.raises(error, match=words):
        engine.scale("default", "scale", role, replicas)


def test_an_elastic_job_scales_between_its_bounds(engine: Blocking) -> None:
    job = a_job("bounds", "exec sleep 600", replicas=2, elastic=1)
    job["spec"]["worker"] |= {"requests": 2, "limits": 3}
    submit(engine, job)
    with pytest.raises(NotPossible, match="from 2 to 3 replicas, not 4"):
        engine.scale("default", "bounds", "worker", 4)


def test_a_replica_that_may_restart_in_place_does(engine: Blocking, tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -ge 2 ]"
    job = a_job("again", script, restartPolicy="OnFailure")
    submit(engine, job, tmp_path)
    job_after = wait_for(engine, "again", Phase.COMPLETED)
    assert job_after.status.restarts == 0
    (pod,) = engine.pods("default", "again")
    assert pod.restarts == 1


def test_deleting_a_running_job_ends_it_and_removes_everything(
    engine: Blocking, home: Home
) -> None:
    job = submit(engine, a_job("gone", "exec sleep 600"))
    wait_for(engine, "gone", Phase.RUNNING)
    (pod,) = engine.pods("default", "gone")
    engine.delete("default", "gone")
    eventually(lambda: not engine.list(None), "the removal of the job")
    eventually(lambda: not home.job(job.uid).exists(), "the removal of its folder")
    assert pod.pid is not None
    assert not alive(pod.pid)
    with pytest.raises(JobNotFound, match="no job named gone"):
        engine.get("default", "gone")


def test_deleting_a_finished_job_is_done_when_the_call_returns(engine: Blocking) -> None:
    submit(engine, a_job("over", "true"))
    wait_for(engine, "over", Phase.COMPLETED)
    wait_until_quiet(engine, "over")
    engine.delete("default", "over")
    assert engine.list(None) == []


def test_a_finished_job_is_replaced_and_its_records_stay_under_its_uid(
    engine: Blocking,
) -> None:
    old = submit(engine, a_job("again", "exit 4"))
    wait_for(engine, "again", Phase.FAILED)
    accepted = engine.submit(*a_submission(a_job("again", "true")))
    assert accepted.replaced == old.uid
    wait_for(engine, "again", Phase.COMPLETED)
    assert [job.uid for job in engine.list(None)] == [accepted.job.uid]
    assert engine.get("default", "again", old.uid).status.phase is Phase.FAILED
    assert engine.pods("default", "again", old.uid)[0].exit_code == 4


def test_a_live_job_is_replaced_only_when_asked(engine: Blocking) -> None:
    old = submit(engine, a_job("same", "exec sleep 600"))
    wait_for(engine, "same", Phase.RUNNING)
    with pytest.raises(JobIsLive, match="--replace"):
        submit(engine, a_job("same", "true"))
    submit(engine, a_job("same", "true"), replace=True)
    wait_for(engine, "same", Phase.COMPLETED)
    eventually(
        lambda: engine.get("default", "same", old.uid).status.phase is Phase.ABORTED,
        "the old job's end",
    )


@pytest.mark.parametrize("verb", ["suspend", "resume", "stop"])
def test_what_a_finished_job_cannot_do_is_refused_with_its_state(
    engine: Blocking, verb: str
) -> None:
    submit(engine, a_job("done", "true"))
    wait_for(engine, "done", Phase.COMPLETED)
    wait_until_quiet(engine, "done")
    with pytest.raises(NotPossible, match="Completed"):
        getattr(engine, verb)("default", "done")


def test_mistakes_in_a_pod_are_told_before_anything_is_queued(engine: Blocking) -> None:
    job = a_job("imageless")
    del job["spec"]["worker"]["template"]["spec"]["containers"][0]["command"]
    with pytest.raises(InvalidJob) as caught:
        submit(engine, job)
    assert caught.value.problems[0].path.startswith("spec.worker.template.spec.containers[0]")
    assert engine.list(None) == []


def test_a_job_directory_that_is_not_there_is_told_once_and_by_its_option(
    engine: Blocking, tmp_path: Path
) -> None:
    job = a_job("nowhere", replicas=2, withGloo=0)
    job["spec"]["ps"] = a_role("true")
    with pytest.raises(InvalidJob) as caught:
        submit(engine, job, tmp_path / "gone")
    assert [problem.path for problem in caught.value.problems] == ["--workdir"]


def test_a_command_that_is_not_there_is_told_before_anything_is_queued(
    engine: Blocking,
) -> None:
    job = a_job("typo")
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["pyhton", "x.py"]
    with pytest.raises(PreflightFailed) as caught:
        submit(engine, job)
    assert "'pyhton' is not on the job's PATH" in caught.value.problems[0].message
    assert engine.list(None) == []


def test_a_second_engine_on_the_same_home_is_refused(
    engine: Blocking, open_engine: OpenEngine
) -> None:
    with pytest.raises(EngineIsRunning):
        open_engine()


def test_a_custom_job_runs_its_tasks(engine: Blocking) -> None:
    job = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "tasks"},
        "spec": {"tasks": [{"name": n, **a_role("true")} for n in ("one", "two")]},
    }
    submit(engine, job)
    wait_for(engine, "tasks", Phase.COMPLETED)
    assert {pod.role for pod in engine.pods("default", "tasks")} == {"one", "two"}


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def test_every_variable_that_a_replica_has_here_is_explained(
    engine: Blocking, tmp_path: Path
) -> None:
    submit(engine, a_job("names", f"env -0 | tr '\\n' ' ' | tr '\\0' '\\n' > {tmp_path}/env"))
    wait_for(engine, "names", Phase.COMPLETED)
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert "REGATTA_RUN" in names
    page = (Path(__file__).parents[3] / "docs" / "environment.md").read_text()
    explained = set(re.findall(r"[A-Z][A-Z_]+", page)) | {"PWD", "SHLVL", "_", "OLDPWD"}  # sh's own
    assert names - explained == set()
