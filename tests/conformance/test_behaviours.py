"""How a job behaves, whichever engine runs it and whatever stands in between."""

from __future__ import annotations

import pytest

from regatta.api.errors import NotPossible
from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from tests.conformance.stages import Stage


def test_a_ps_job_completes_when_its_workers_do(play: Stage) -> None:
    play.submit("job", ps=1, workers=2, cleanPodPolicy="Never")
    play.reaches("job", Phase.RUNNING)

    play.end("job-worker-0", 0)
    play.end("job-worker-1", 0)

    status = play.reaches("job", Phase.COMPLETED).status
    assert (status.ps and status.ps.ready, status.worker and status.worker.ready) == ("1/1", "0/2")
    assert play.pods("job")["job-ps-0"] == "Running"


def test_servers_that_run_on_are_shown_until_they_are_stopped(play: Stage) -> None:
    play.submit("job", ps=1, workers=1, cleanPodPolicy="Never")
    play.reaches("job", Phase.RUNNING)
    play.end("job-worker-0", 0)
    ended = play.reaches("job", Phase.COMPLETED).status

    assert play.engine.stop(play.namespace, "job").status.phase is Phase.COMPLETED

    play.until("no server is shown", lambda: _ready(play) == ("0/1", "0/1"))
    status = play.job("job").status
    assert (status.phase, status.completion_time) == (Phase.COMPLETED, ended.completion_time)


def test_a_job_still_runs_while_one_worker_has_finished(play: Stage) -> None:
    play.submit("job", workers=2)
    play.reaches("job", Phase.RUNNING)

    play.end("job-worker-0", 0)

    play.until("one succeeded", lambda: _succeeded(play) == 1)
    assert play.job("job").status.phase is Phase.RUNNING
    play.end("job-worker-1", 0)
    play.reaches("job", Phase.COMPLETED)


def test_the_default_policy_removes_pods_on_completion_and_keeps_the_counts(play: Stage) -> None:
    play.submit("job", ps=1, workers=1)
    play.reaches("job", Phase.RUNNING)

    play.end("job-worker-0", 0)

    play.reaches("job", Phase.COMPLETED)
    play.until("no pod is left", lambda: not play.pods("job"))
    assert _succeeded(play) == 1


def test_one_failure_fails_the_job_and_stops_its_peers(play: Stage) -> None:
    play.submit("job", ps=1, workers=2)
    play.reaches("job", Phase.RUNNING)

    play.end("job-worker-1", 7)

    status = play.reaches("job", Phase.FAILED).status
    assert status.message == "job-worker-1 exited with code 7"
    assert status.failure is not None
    assert (status.failure.pod, status.failure.exit_code) == ("job-worker-1", 7)
    assert _ready(play) == ("0/1", "0/2")
    assert status.worker is not None
    assert (status.worker.failed, status.worker.running) == (1, 0)
    play.until("nothing runs", lambda: set(play.pods("job").values()) == {"Failed"})
    assert set(play.pods("job")) == {"job-ps-0", "job-worker-0", "job-worker-1"}


def test_backoff_limit_two_makes_three_tries(play: Stage) -> None:
    play.submit("job", runPolicy={"backoffLimit": 2})
    for attempt in range(3):
        play.runs_again("job", attempt)
        play.end("job-worker-0", 1)

    status = play.reaches("job", Phase.FAILED).status
    assert (status.restarts, status.attempt) == (2, 2)
    assert status.message == "job-worker-0 exited with code 1 (attempt 3 of 3)"


def test_a_restart_replaces_every_replica(play: Stage) -> None:
    play.submit("job", workers=2, runPolicy={"backoffLimit": 1})
    before = play.reaches("job", Phase.RUNNING).status

    play.end("job-worker-0", 1)

    after = play.runs_again("job", 1).status
    assert after.revision == before.revision + 1
    old = {ref.uid for ref in before.worker.refs} if before.worker else set()
    new = {ref.uid for ref in after.worker.refs} if after.worker else set()
    assert len(new) == 2
    assert not old & new


def test_a_deadline_fails_the_job(play: Stage) -> None:
    play.submit("job", runPolicy={"activeDeadlineSeconds": 2})

    status = play.reaches("job", Phase.FAILED).status

    assert status.reason == "DeadlineExceeded"
    play.until("nothing runs", lambda: set(play.pods("job").values()) == {"Failed"})


def test_a_finished_job_lives_as_long_as_its_ttl(play: Stage) -> None:
    play.submit("job", runPolicy={"ttlSecondsAfterFinished": 1})
    play.reaches("job", Phase.RUNNING)

    play.end("job-worker-0", 0)

    play.is_gone("job")


def test_suspend_removes_the_pods_and_resume_starts_them_again(play: Stage) -> None:
    play.submit("job", workers=2)
    play.reaches("job", Phase.RUNNING)

    play.engine.suspend(play.namespace, "job")
    play.reaches("job", Phase.SUSPENDED)
    play.until("no pod is left", lambda: not play.pods("job"))

    play.engine.resume(play.namespace, "job")
    status = play.runs_again("job", 1).status
    assert status.restarts == 0


def test_abort_stops_everything(play: Stage) -> None:
    play.submit("job", ps=1, workers=1)
    play.reaches("job", Phase.RUNNING)

    play.engine.stop(play.namespace, "job")

    play.reaches("job", Phase.ABORTED)
    assert set(play.pods("job").values()) == {"Failed"}


@pytest.mark.parametrize("workers", [1, 3])
def test_scaling_starts_everybody_again_with_the_new_count(play: Stage, workers: int) -> None:
    play.submit("job", workers=2, mode="Collective")
    play.reaches("job", Phase.RUNNING)

    play.engine.scale(play.namespace, "job", "worker", workers)

    status = play.runs_again("job", 1).status
    assert status.worker is not None
    assert status.worker.ready == f"{workers}/{workers}"
    assert set(play.pods("job")) == {f"job-worker-{index}" for index in range(workers)}
    assert status.restarts == 0


def test_only_the_struck_replica_restarts_where_that_is_asked_for(play: Stage) -> None:
    policy = {"backoffLimit": 1, "restartScope": "Replica"}
    play.submit("job", ps=1, workers=2, intranet="Service", withGloo=0, runPolicy=policy)
    before = play.reaches("job", Phase.RUNNING).status

    play.end("job-worker-1", 1)

    after = play.runs_again("job", 1).status
    assert after.revision == before.revision
    assert before.worker is not None
    assert after.worker is not None
    same = [
        old.uid == new.uid for old, new in zip(before.worker.refs, after.worker.refs, strict=True)
    ]
    assert same == [True, False]


def test_deleting_a_running_job_leaves_nothing(play: Stage) -> None:
    play.submit("job", ps=1, workers=1)
    play.reaches("job", Phase.RUNNING)

    play.engine.delete(play.namespace, "job")

    play.is_gone("job")


def _succeeded(play: Stage) -> int:
    worker = play.job("job").status.worker
    return worker.succeeded if worker else 0


def _ready(play: Stage) -> tuple[str, str]:
    status = play.job("job").status
    return (status.ps.ready if status.ps else "", status.worker.ready if status.worker else "")


def test_an_earlier_try_is_shown_where_its_log_is_kept(play: Stage) -> None:
    play.submit("job", runPolicy={"backoffLimit": 1})
    play.reaches("job", Phase.RUNNING)
    play.end("job-worker-0", 3)
    play.until("the second try", lambda: play.job("job").status.attempt == 1)
    query = LogQuery(attempt=0)
    if play.engine.traits().engine == "kubernetes":
        with pytest.raises(NotPossible, match="went with its pods"):
            list(play.engine.logs(play.namespace, "job", query))
        return
    assert list(play.engine.logs(play.namespace, "job", query)) is not None
    with pytest.raises(NotPossible, match="job has had 2 attempts"):
        list(play.engine.logs(play.namespace, "job", LogQuery(attempt=7)))
