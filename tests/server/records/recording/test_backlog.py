"""Of each job the last word, and who is asked for again, when."""

from __future__ import annotations

from regatta.api.job import Phase
from regatta.engines.base import Gone
from regatta.server.records.recording.backlog import LATE, SOON, Backlog, Blindness
from regatta.server.records.recording.observation_writes import Remembered
from regatta.server.records.recording.observations import fingerprint
from tests.server.records.recording.scripted import a_job


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_of_many_words_on_a_job_the_last_is_taken() -> None:
    backlog = Backlog(Clock())
    for number in range(5):
        assert backlog.tell(a_job("j", message=str(number)))
    assert [job.status.message for job in backlog.take(10)] == ["4"]
    assert backlog.take(10) == []


def test_what_could_not_be_written_goes_back_unless_something_newer_has_come() -> None:
    backlog = Backlog(Clock())
    old, new = a_job("j", message="old"), a_job("j", message="new")
    backlog.tell(old)
    taken = backlog.take(10)
    backlog.put_back(taken)
    assert backlog.take(10) == [old]
    backlog.tell(new)
    backlog.put_back(taken)
    assert backlog.take(10) == [new]


def test_what_is_on_record_already_is_not_written_again() -> None:
    ended = a_job("j", Phase.COMPLETED)
    backlog = Backlog(Clock())
    backlog.remember([Remembered(ended.uid, "default", "j", fingerprint(ended), True)])
    assert not backlog.tell(ended)
    assert backlog.take(10) == []
    assert backlog.next_look() is None


def test_a_job_that_is_over_and_has_not_settled_is_looked_at_later_and_later() -> None:
    clock = Clock()
    backlog = Backlog(clock)
    backlog.tell(a_job("j", Phase.FAILED))
    (job,) = backlog.take(10)
    backlog.written(job, settled=False)
    pauses = []
    for _ in range(10):
        pause = backlog.next_look()
        assert pause is not None
        assert backlog.take_due(10) == []
        pauses.append(pause)
        clock.now += pause
        assert [where.uid for where in backlog.take_due(10)] == ["uid-j"]
        backlog.written(job, settled=False)
    assert pauses[:3] == [SOON, 2 * SOON, 4 * SOON]
    assert pauses[-1] == LATE
    backlog.written(job, settled=True)
    assert backlog.next_look() is None


def test_a_job_that_is_gone_is_asked_for_at_once_until_it_is_forgotten() -> None:
    backlog = Backlog(Clock())
    backlog.tell(a_job("j"))
    assert not backlog.gone(Gone("default", "other"))
    assert backlog.gone(Gone("default", "j"))
    assert [where.uid for where in backlog.take_due(10)] == ["uid-j"]
    backlog.forgotten("uid-j")
    assert backlog.next_look() is None


def test_what_was_told_last_of_a_job_that_is_gone_is_still_written() -> None:
    backlog = Backlog(Clock())
    last = a_job("j", Phase.FAILED)
    backlog.tell(a_job("j"))
    backlog.tell(last)
    backlog.gone(Gone("default", "j"))
    assert backlog.take(10) == [last]


def test_blindness_begins_once_and_ends_as_a_gap() -> None:
    moments = iter((10, 20, 30))
    blind = Blindness(lambda: next(moments))
    assert blind.sees
    blind.begins("jobs", "first")
    blind.begins("jobs", "second", 15)
    assert not blind.sees
    blind.ends("jobs")
    blind.ends("jobs")
    (gap,) = blind.take()
    assert (gap.from_at, gap.until_at, gap.why) == (10, 20, "first")
    assert blind.take() == []
    blind.put_back([gap])
    assert blind.take() == [gap]
