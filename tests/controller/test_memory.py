"""What the brain must not forget, and what only shows how things are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Condition, JobStatus, Phase, Progress, Ref, RoleStatus
from regatta.controller.memory import only_shows, remembered
from regatta.controller.plan import ChildRef, Event, NewEnvironment, NewPod, Plan

BEFORE = JobStatus(phase=Phase.STARTING, revision=1, shape={"worker": 1}, worker=RoleStatus())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD = ChildRef("Pod", "a")
NEW_POD = NewPod(
    name="j-worker-0", role="worker", index=0, attempt=0, revision=1, by_name=False, manifest={}
)
ENVIRONMENT = NewEnvironment(name="j-env-1", revision=1, data={}, manifest={})


def worker(**changes: Any) -> dict[str, Any]:
    return {"worker": RoleStatus(**changes)}


def an_event(reason: str) -> Plan:
    return Plan(events=(Event(type="Normal", reason=reason, message=""),))


SHOWN: dict[str, dict[str, Any]] = {
    "counters": worker(pending=1, starting=2, running=3, failed=4, succeeded=5, unknown=6),
    "how many of how many": worker(ready="1/1"),
    "why it waits": {"message": "0/3 nodes are available"},
    "all run": {"phase": Phase.RUNNING},
    "one waits again": {"phase": Phase.PENDING},
    "when it started": {"start_time": NOW, "started_awake": 1.0},
    "a sign of life": {"heartbeat_awake": 1.0},
    "a condition": {"conditions": (Condition(type="Admitted", status="True"),)},
    "a spec that was seen": {"observed_generation": 2},
}
KEPT: dict[str, dict[str, Any]] = {
    "a new attempt": {"attempt": 1},
    "a new attempt of a role": worker(attempt=1),
    "a new attempt of a replica": worker(replica_attempts={"0": 1}),
    "a counted failure": {"restarts": 1},
    "a free restart": {"disruptions": (NOW,)},
    "a pause": {"restart_at": NOW},
    "a replica is done": worker(done=(0,)),
    "a pod whose address others know": worker(refs=(Ref(name="j-worker-0"),)),
    "it starts again": {"phase": Phase.RESTARTING},
    "it is suspended": {"phase": Phase.SUSPENDED},
    "it is being stopped": {"phase": Phase.ABORTING},
    "it is over": {"phase": Phase.COMPLETED, "completion_time": NOW},
    "a reason": {"reason": "ForeignObject"},
    "another environment": {"revision": 2},
    "another size": {"shape": {"worker": 2}},
    "other templates": {"made_from": "x"},
    "a spec that is not followed": {"spec_problem": "x"},
    "progress": {"progress": Progress(step=1)},
}
PLANS = {
    "something is stopped": Plan(stop=(POD,)),
    "something is deleted": Plan(delete=(POD,)),
    "addresses go out": Plan(environments=(ENVIRONMENT,)),
    "the job goes": Plan(delete_job=True),
    "something happened": an_event("Restarting"),
}


@pytest.mark.parametrize("changes", SHOWN.values(), ids=SHOWN)
def test_what_a_look_brings_back_may_be_written_later(changes: dict[str, Any]) -> None:
    assert only_shows(BEFORE, replace(BEFORE, **changes), Plan(), told=True)


@pytest.mark.parametrize("changes", KEPT.values(), ids=KEPT)
def test_what_no_look_brings_back_is_on_record_at_once(changes: dict[str, Any]) -> None:
    assert not only_shows(BEFORE, replace(BEFORE, **changes), Plan(), told=True)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_nothing_is_done_for_a_reason_that_is_not_on_record(plan: Plan) -> None:
    assert not only_shows(BEFORE, replace(BEFORE, message="x"), plan, told=True)


@pytest.mark.parametrize("reason", ["Created", "Starting", "Running"])
def test_an_event_that_only_retells_what_can_be_seen_hurries_nobody(reason: str) -> None:
    plan = replace(an_event(reason), pods=(NEW_POD,))
    assert only_shows(BEFORE, replace(BEFORE, message="x"), plan, told=True)


def test_pods_are_on_record_once_their_addresses_are_known_to_others() -> None:
    seen = replace(BEFORE, worker=RoleStatus(refs=(Ref(name="j-worker-0"),)))
    assert only_shows(BEFORE, seen, Plan(), told=False)
    assert not only_shows(BEFORE, seen, Plan(), told=True)


def test_a_first_status_can_wait_until_somebody_was_told_an_address() -> None:
    assert only_shows(JobStatus(), BEFORE, Plan(), told=False)
    assert not only_shows(JobStatus(), BEFORE, Plan(), told=True)
    assert not only_shows(JobStatus(), replace(BEFORE, phase=Phase.FAILED), Plan(), told=False)


def test_every_field_of_a_status_is_either_shown_or_kept() -> None:
    """A new one is kept until somebody says that it is only for show."""
    tried = {name for changes in (*SHOWN.values(), *KEPT.values()) for name in changes}
    blank = remembered(BEFORE, told=True)
    untried = set(JobStatus.__struct_fields__) - tried
    assert untried == {"mode", "ps", "heter", "tasks", "failure"}, "is it memory or display?"
    for role in ("ps", "worker", "heter"):
        counted = remembered(replace(BEFORE, **{role: RoleStatus(running=1)}), told=True)
        assert counted == replace(blank, **{role: RoleStatus()}), role
    counted = remembered(replace(BEFORE, tasks={"a": RoleStatus(running=1, done=(1,))}), told=True)
    assert counted == replace(blank, tasks={"a": RoleStatus(done=(1,))})


def test_a_status_that_is_on_record_is_not_overtaken_by_one_that_is_not() -> None:
    again = replace(BEFORE, attempt=1)
    assert not only_shows(BEFORE, again, Plan(), told=False)
