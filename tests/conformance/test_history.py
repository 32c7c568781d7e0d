"""What is known of runs, and deleting many at once: on every engine, whatever stands in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from regatta.api.errors import JobNotFound
from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from regatta.engines.inventory import Removal
from tests.conformance.stages import Stage

SUSPENDED = {"suspend": True}


def test_history_lists_runs_with_the_last_submitted_first(play: Stage) -> None:
    play.submit("first", runPolicy=SUSPENDED)
    play.submit("second")
    play.reaches("second", Phase.RUNNING)
    play.end("second-worker-0", 3)
    ended = play.reaches("second", Phase.FAILED)

    runs = play.engine.history(play.namespace)

    assert {run.name for run in runs} == {"first", "second"}
    (run,) = play.engine.history(play.namespace, "second")
    assert (run.uid, run.phase, run.mode) == (ended.uid, "Failed", "Single")
    assert run.message == "second-worker-0 exited with code 3"
    assert run.ended_at == ended.status.completion_time
    assert run.current
    (live,) = play.engine.history(play.namespace, "first")
    assert live.ended_at is None
    assert len(play.engine.history(play.namespace, limit=1)) == 1


def test_a_run_is_found_by_its_uid(play: Stage) -> None:
    job = play.submit("job", runPolicy=SUSPENDED).job
    (run,) = play.engine.history(play.namespace, uid=job.uid)
    assert run.name == "job"
    assert play.engine.get(play.namespace, "job", job.uid).uid == job.uid
    assert play.engine.pods(play.namespace, "job", job.uid) == []
    assert play.engine.events(play.namespace, "job", uid=job.uid) is not None


def test_a_uid_that_no_run_has_is_not_found(play: Stage) -> None:
    play.submit("job", runPolicy=SUSPENDED)
    asked = (
        lambda: play.engine.history(play.namespace, uid="nobody"),
        lambda: play.engine.get(play.namespace, "job", "nobody"),
        lambda: play.engine.pods(play.namespace, "job", "nobody"),
        lambda: play.engine.events(play.namespace, "job", uid="nobody"),
        lambda: list(play.engine.logs(play.namespace, "job", LogQuery(uid="nobody"))),
    )
    for ask in asked:
        with pytest.raises(JobNotFound, match=r"UID nobody.*regatta history"):
            ask()


def test_a_replaced_run_is_kept_on_a_machine_and_unknown_to_a_cluster(play: Stage) -> None:
    old = play.submit("job", runPolicy=SUSPENDED).job
    new = play.submit("job", replace=True, runPolicy=SUSPENDED).job
    uids = [run.uid for run in play.engine.history(play.namespace, "job")]
    if play.engine.traits().engine == "kubernetes":
        assert uids == [new.uid]
        with pytest.raises(JobNotFound, match="a cluster keeps no record"):
            play.engine.get(play.namespace, "job", old.uid)
        return
    assert uids == [new.uid, old.uid]
    (run,) = play.engine.history(play.namespace, uid=old.uid)
    assert (run.current, run.replaced_by) == (False, new.uid)
    assert play.engine.get(play.namespace, "job", old.uid).uid == old.uid


def test_of_a_job_that_is_no_more_its_runs_are_named_where_they_are_kept(play: Stage) -> None:
    play.submit("job", runPolicy={"ttlSecondsAfterFinished": 0})
    play.reaches("job", Phase.RUNNING)
    play.end("job-worker-0", 0)
    play.is_gone("job")
    kept = play.engine.history(play.namespace, "job")
    assert len(kept) == (0 if play.engine.traits().engine == "kubernetes" else 1)
    asked = (
        lambda: play.engine.get(play.namespace, "job"),
        lambda: play.engine.pods(play.namespace, "job"),
        lambda: list(play.engine.logs(play.namespace, "job", LogQuery())),
        lambda: play.engine.stop(play.namespace, "job"),
    )
    for ask in asked:
        with pytest.raises(JobNotFound, match="there is no job named job") as refused:
            ask()
        assert ("`regatta history job" in str(refused.value)) is bool(kept)


def test_finished_jobs_are_deleted_at_once_and_live_ones_only_when_asked(play: Stage) -> None:
    play.submit("live", runPolicy=SUSPENDED)
    for name in ("one", "two"):
        play.submit(name)
        play.reaches(name, Phase.RUNNING)
        play.end(f"{name}-worker-0", 0)
        play.reaches(name, Phase.COMPLETED)
    hour_ago = datetime.now(UTC) - timedelta(hours=1)

    assert play.engine.delete_many(play.namespace, ended_before=hour_ago) == Removal()
    done = play.engine.delete_many(play.namespace)

    assert (done.jobs + len(done.ending), done.left) == (2, 0)
    play.is_gone("one")
    play.is_gone("two")
    assert [job.name for job in play.engine.list(play.namespace)] == ["live"]
    assert list(play.engine.delete_many(play.namespace, live=True).ending) == ["live"]
    play.is_gone("live")


def test_a_list_may_leave_out_what_ended_long_ago(play: Stage) -> None:
    play.submit("live", runPolicy=SUSPENDED)
    for name in ("one", "two"):
        play.submit(name, cleanPodPolicy="Never")
    for name in ("two", "one"):  # the first submitted ends last
        play.reaches(name, Phase.RUNNING)
        play.end(f"{name}-worker-0", 0)
        play.reaches(name, Phase.COMPLETED)
        play.until("another second", partial(_a_second_ago, play, name))
    shown = [job.name for job in play.engine.list(play.namespace, finished=1)]
    assert sorted(shown) == ["live", "one"]
    assert [job.name for job in play.engine.list(play.namespace, finished=0)] == ["live"]


def _a_second_ago(play: Stage, name: str) -> bool:
    ended = play.job(name).status.completion_time
    return ended is not None and (datetime.now(UTC) - ended).total_seconds() > 1


def test_what_is_kept_is_counted_where_the_engine_keeps_it(play: Stage) -> None:
    before = play.engine.storage()
    play.submit("job", runPolicy=SUSPENDED)
    after = play.engine.storage()
    if not play.gives_shell:  # a cluster's jobs, and a team's, are not the asker's to count
        assert (after.retention, after.runs) == (None, 0)
        return
    assert after.retention is not None
    assert (after.live - before.live, after.runs - before.runs) == (1, 1)
