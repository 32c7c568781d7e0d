"""Which status changes wait, and for how long."""

from __future__ import annotations

import pytest

from regatta.api.job import JobStatus, Phase, Ref, RoleStatus
from regatta.controller.plan import ChildRef, Event, NewEnvironment, Plan
from regatta.engines.kubernetes.operator.urgency import APART, BUSY_EVERY, EVERY, Pace, can_wait

BEFORE = JobStatus(phase=Phase.STARTING, revision=1, shape={"worker": 1}, worker=RoleStatus())
EVENT = Event(type="Warning", reason="Restarting", message="")
ENVIRONMENT = NewEnvironment(name="job-env-1", revision=1, data={}, manifest={})


def after(**changes: object) -> JobStatus:
    from msgspec.structs import replace

    return replace(BEFORE, **changes)


@pytest.mark.parametrize(
    ("what", "status", "plan", "waits"),
    [
        ("counters", after(worker=RoleStatus(running=1, ready="1/1")), Plan(), True),
        ("words", after(message="0/3 nodes are available"), Plan(), True),
        ("all run", after(phase=Phase.RUNNING), Plan(), True),
        ("a new attempt", after(attempt=1), Plan(), False),
        ("a counted failure", after(restarts=1), Plan(), False),
        ("a replica is done", after(worker=RoleStatus(done=(0,))), Plan(), False),
        ("it is over", after(phase=Phase.COMPLETED), Plan(), False),
        ("a reason", after(reason="ForeignObject"), Plan(), False),
        ("something is deleted", after(message="x"), Plan(delete=(ChildRef("Pod", "a"),)), False),
        ("something happened", after(message="x"), Plan(events=(EVENT,)), False),
        ("addresses go out", after(message="x"), Plan(environments=(ENVIRONMENT,)), False),
    ],
)
def test_what_the_brain_must_not_forget_is_written_at_once(
    what: str, status: JobStatus, plan: Plan, waits: bool
) -> None:
    assert can_wait(BEFORE, status, plan, environment=True) is waits, what


def test_pods_are_on_record_once_their_addresses_are_known_to_others() -> None:
    seen = after(worker=RoleStatus(refs=(Ref(name="job-worker-0"),)))
    assert can_wait(BEFORE, seen, Plan(), environment=False)
    assert not can_wait(BEFORE, seen, Plan(), environment=True)


def test_writes_that_can_wait_keep_apart_and_none_waits_for_ever() -> None:
    pace = Pace()
    assert pace.wait(0.0, 0.4, busy=False) == pytest.approx(EVERY - 0.4)
    assert pace.wait(0.0, 2.0, busy=False) is None
    assert pace.wait(0.0, 2.0, busy=False) is not None, "another job has just written"
    assert pace.wait(0.0, 2.0, busy=False, eager=True) is None
    assert pace.wait(0.0, 2.0 + 3 * APART, busy=True) is not None
    assert pace.wait(0.0, BUSY_EVERY, busy=True) is None
