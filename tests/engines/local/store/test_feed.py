"""What watchers hear of changes, and from which threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from regatta.engines.local.store import feed
from regatta.engines.local.store.feed import Feed


def told(*changes: set[str]) -> Feed:
    """A feed that began at version 10."""
    made = Feed(10)
    for number, jobs in enumerate(changes, start=11):
        made.tell(number, frozenset(jobs))
    return made


@pytest.mark.parametrize(
    ("since", "jobs"),
    [
        (13, set()),
        (12, {"b", "c"}),
        (11, {"d", "b", "c"}),
        (10, {"a", "d", "b", "c"}),
        (9, None),
    ],
    ids=["nothing new", "the last", "two", "all that is known", "longer ago than is known"],
)
def test_a_watcher_is_told_which_jobs_changed_since(since: int, jobs: set[str] | None) -> None:
    assert told({"a"}, {"d"}, {"b", "c"}).since(since) == (13, jobs)


def test_a_change_of_pods_alone_moves_on_and_touches_no_job() -> None:
    assert told({"a"}, set()).since(11) == (12, set())


def test_what_was_long_ago_is_forgotten_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "KEPT", 2)
    made = told({"a"}, {"b"}, {"c"})
    assert made.since(10) == (13, None)
    assert made.since(11) == (13, {"b", "c"})


def test_a_version_that_comes_late_changes_nothing() -> None:
    made = told({"a"}, {"b"})
    made.tell(11, frozenset({"x"}))
    assert made.since(10) == (12, {"a", "b"})


def test_what_is_told_without_a_write_comes_between_versions_and_hides_none() -> None:
    made = told({"a"})
    made.tell_unwritten(frozenset({"b"}))
    assert made.since(11) == (12, {"b"})
    made.tell(12, frozenset({"c"}))  # the store's next version
    assert made.since(12) == (13, {"c"})
    assert made.since(10) == (13, {"a", "b", "c"})


def test_those_who_wait_in_a_loop_are_woken_by_a_thread() -> None:
    made = Feed(0)

    async def wait_twice() -> list[int]:
        both = asyncio.gather(made.moved(0, 60), made.moved(0, 60))
        await asyncio.sleep(0)
        writer = threading.Thread(target=made.tell, args=(1, frozenset({"a"})))
        writer.start()
        seen = await both
        writer.join()
        return [*seen, await made.moved(0, 60)]

    assert asyncio.run(wait_twice()) == [1, 1, 1]


def test_a_loop_that_has_ended_is_not_rung() -> None:
    made = Feed(0)
    assert asyncio.run(made.moved(0, 0.001)) == 0
    made.tell(1, frozenset())
    assert made.version == 1
