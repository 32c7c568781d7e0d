"""Watching jobs and events through the engine: what is told, when, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.errors import JobNotFound, NotPossible
from regatta.api.job import Job, Phase
from regatta.engines.base import Gone, LogBatch, LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.inventory import EventView
from regatta.engines.local import engine as local_engine
from regatta.engines.local.jobs import LocalJobs
from regatta.engines.local.store import feed
from tests.engines.local.jobs import a_job, a_submission, eventually, submit, wait_for
from tests.engines.local.opening import OpenEngine
from tests.engines.updates import told, until

WAITING = {"suspend": True}


def test_a_watch_tells_what_is_there_then_what_changes(engine: Blocking) -> None:
    for name in ("one", "two"):
        submit(engine, a_job(name, runPolicy=WAITING))
        wait_for(engine, name, Phase.SUSPENDED)
    watch = engine.watch("default")
    assert until(watch, "Synced()") == ["one Suspended", "two Suspended", "Synced()"]
    engine.resume("default", "two")
    assert all(seen.startswith("two ") for seen in until(watch, "two Completed"))
    engine.delete("default", "one")
    # What was told of the other may be told again.
    of_one = {seen for seen in until(watch, "one gone") if not seen.startswith("two ")}
    assert of_one <= {"one Suspended", "one Terminating", "one gone"}


def test_a_watch_has_a_few_jobs_read_at_a_time(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engine, "NEWS_AT_ONCE", 2)
    at_once, news = [], LocalJobs.news

    def counted(jobs: LocalJobs, uids: list[str], known: Any) -> Any:
        at_once.append(len(uids))
        return news(jobs, uids, known)

    monkeypatch.setattr(LocalJobs, "news", counted)
    names = ["e", "d", "c", "b", "a"]
    for name in names:
        submit(engine, a_job(name, runPolicy=WAITING))
        wait_for(engine, name, Phase.SUSPENDED)

    assert until(engine.watch(), "Synced()") == [*(f"{n} Suspended" for n in names), "Synced()"]
    assert at_once == [2, 2, 1]


@pytest.mark.parametrize(
    ("namespace", "name"), [("default", "mine"), (None, "mine")], ids=["one", "in any namespace"]
)
def test_a_watch_of_one_job_hears_nothing_of_others(
    engine: Blocking, namespace: str | None, name: str
) -> None:
    submit(engine, a_job("other", runPolicy=WAITING))
    watch = engine.watch(namespace, name)
    assert told(watch) == "Synced()"
    submit(engine, a_job("another", runPolicy=WAITING))
    submit(engine, a_job("mine"))
    assert all(seen.startswith("mine ") for seen in until(watch, "mine Completed"))


def test_a_replaced_job_is_told_as_the_one_that_took_its_name(engine: Blocking) -> None:
    old = submit(engine, a_job("name", "exec sleep 600"))
    wait_for(engine, "name", Phase.RUNNING)
    watch = engine.watch("default", "name")
    until(watch, "Synced()")
    new = submit(engine, a_job("name"), replace=True)
    uids: list[str] = []
    for update in watch:
        assert isinstance(update, Job), "its name is never without a job"
        uids.append(update.uid)
        if update.status.phase is Phase.COMPLETED:
            break
    assert set(uids) <= {old.uid, new.uid}
    assert uids[-1] == new.uid
    assert sorted(uids, key=[old.uid, new.uid].index) == uids


def test_a_watcher_that_was_away_for_too_long_is_told_how_things_are(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "KEPT", 1)
    submit(engine, a_job("first", runPolicy=WAITING))
    wait_for(engine, "first", Phase.SUSPENDED)
    watch = engine.watch()
    until(watch, "Synced()")
    engine.delete("default", "first")
    for name in ("second", "third"):
        submit(engine, a_job(name, runPolicy=WAITING))
        wait_for(engine, name, Phase.SUSPENDED)
    wanted = {"first gone", "second Suspended", "third Suspended"}
    while wanted:
        wanted.discard(told(watch))


def test_a_change_of_one_job_reads_no_other(
    engine: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        submit(engine, a_job(f"rest-{number}", runPolicy=WAITING))
    submit(engine, a_job("busy", runPolicy=WAITING))
    for job in engine.list():
        wait_for(engine, job.name, Phase.SUSPENDED)
    watch = engine.watch()
    until(watch, "Synced()")
    touched: set[str] = set()
    news = LocalJobs.news

    def noting(self: LocalJobs, uids: set[str], known: dict[str, tuple[str, str]]) -> object:
        touched.update(uids)
        return news(self, uids, known)

    def listed(*_: object) -> object:
        raise AssertionError("a change needs no list")

    monkeypatch.setattr(LocalJobs, "news", noting)
    monkeypatch.setattr(LocalJobs, "list", listed)
    engine.resume("default", "busy")
    until(watch, "busy Completed")
    assert touched == {engine.get("default", "busy").uid}


def test_following_tells_the_job_with_its_lines_and_its_end_last(engine: Blocking) -> None:
    submit(engine, a_job("told", "echo hello"))
    updates = list(engine.follow("default", "told", LogQuery()))
    jobs = [update for update in updates if isinstance(update, Job)]
    assert jobs[-1].status.phase is Phase.COMPLETED
    assert updates[-1] is jobs[-1]


def test_following_a_job_that_is_deleted_ends_with_its_being_gone(engine: Blocking) -> None:
    submit(engine, a_job("doomed", "echo up; exec sleep 600"))
    wait_for(engine, "doomed", Phase.RUNNING)
    stream = engine.follow("default", "doomed", LogQuery())
    next(stream)
    engine.delete("default", "doomed")
    assert list(stream)[-1] == Gone("default", "doomed")


def test_a_follower_of_a_replaced_job_hears_of_no_other(engine: Blocking) -> None:
    old = submit(engine, a_job("name", "echo old; exec sleep 600"))
    wait_for(engine, "name", Phase.RUNNING)
    stream = engine.follow("default", "name", LogQuery())
    next(stream)
    submit(engine, a_job("name", "echo new"), replace=True)
    updates = list(stream)
    assert {update.uid for update in updates if isinstance(update, Job)} <= {old.uid}
    assert updates[-1] == Gone("default", "name")
    by_uid = list(engine.follow("default", "name", LogQuery(uid=old.uid)))
    assert isinstance(by_uid[-1], Job)
    assert (by_uid[-1].uid, by_uid[-1].status.phase) == (old.uid, Phase.ABORTED)


def test_whoever_resumes_under_a_name_that_is_anothers_by_now_is_told_so(
    engine: Blocking,
) -> None:
    submit(engine, a_job("name", "echo old"))
    wait_for(engine, "name", Phase.COMPLETED)
    batches = [u for u in engine.follow("default", "name", LogQuery()) if isinstance(u, LogBatch)]
    submit(engine, a_job("name", "echo new"))
    wait_for(engine, "name", Phase.COMPLETED)
    resumed = list(engine.follow("default", "name", LogQuery(after=batches[-1].after)))
    assert resumed == [Gone("default", "name")]


def test_events_are_followed_from_where_one_was(engine: Blocking) -> None:
    submit(engine, a_job("story"))
    wait_for(engine, "story", Phase.COMPLETED)
    first = engine.events("default", "story")[0]
    stream = engine.follow_events("default", "story", after=first.id)
    seen: list[str] = []
    while "Completed" not in seen:
        event = next(stream)
        assert isinstance(event, EventView)
        assert event.id > first.id
        seen.append(event.reason)
    assert first.reason not in seen


def test_events_of_a_job_that_is_not_there_are_refused(engine: Blocking) -> None:
    with pytest.raises(JobNotFound):
        next(engine.follow_events("default", "nobody"))


# Submissions that are sent again


def test_a_submission_sent_twice_with_its_key_is_one_job(engine: Blocking) -> None:
    first = engine.submit(*a_submission(a_job("once"), key="k1"))
    wait_for(engine, "once", Phase.COMPLETED)
    again = engine.submit(*a_submission(a_job("once"), key="k1"))
    assert (again.job.uid, again.job.status.phase) == (first.job.uid, Phase.COMPLETED)
    other = engine.submit(*a_submission(a_job("once"), key="k2"))
    assert (other.job.uid == first.job.uid, other.replaced) == (False, first.job.uid)


def test_a_key_is_known_to_the_next_engine(open_engine: OpenEngine) -> None:
    first = open_engine()
    uid = first.submit(*a_submission(a_job("once", runPolicy=WAITING), key="k")).job.uid
    first.close()
    second = open_engine()
    assert second.submit(*a_submission(a_job("once"), key="k")).job.uid == uid


def test_a_replacing_submission_that_is_sent_again_replaces_nothing(engine: Blocking) -> None:
    submit(engine, a_job("name", "exec sleep 600"))
    first = engine.submit(*a_submission(a_job("name", "exec sleep 600"), replace=True, key="k"))
    wait_for(engine, "name", Phase.RUNNING)
    again = engine.submit(*a_submission(a_job("name", "exec sleep 600"), replace=True, key="k"))
    assert again.job.uid == first.job.uid
    assert engine.get("default", "name").status.phase is Phase.RUNNING


def test_a_submission_whose_job_was_deleted_is_not_made_again(engine: Blocking) -> None:
    engine.submit(*a_submission(a_job("once"), key="k"))
    engine.delete("default", "once")
    eventually(lambda: not engine.list(), "an empty list")
    with pytest.raises(NotPossible, match="arrived before, as job once, which was deleted"):
        engine.submit(*a_submission(a_job("once"), key="k"))
