"""A job and its replicas become rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Failure, JobSpec, Metadata, Mode, Phase, Progress, RoleSpec, RunPolicy
from regatta.server.records.job_rows import ReplicaRow
from regatta.server.records.recording.observations import (
    LONGEST_MESSAGE,
    Known,
    Observation,
    attempt_values,
    fingerprint,
    is_over,
    job_values,
    last_of,
    replica_values,
)
from tests.server.records.recording.scripted import BEGAN, a_job, a_pod

NOW = 2_000_000_000_000


def test_disruptions_are_counted_once_and_stay_counted_when_the_job_forgets_them() -> None:
    first, second = BEGAN, BEGAN + timedelta(hours=2)
    one = job_values(a_job("j", disruptions=(first,), restarts=2), Known())
    assert (one["retries"], one["retries_user"], one["retries_platform"]) == (3, 2, 1)
    known = Known(retries_platform=1, disrupted_at=one["disrupted_at"])
    same = job_values(a_job("j", disruptions=(first,)), known)
    assert same["retries_platform"] == 1
    later = job_values(a_job("j", disruptions=(second,)), known)
    assert later["retries_platform"] == 2


def test_gpus_are_those_of_all_replicas() -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    role = RoleSpec(replicas=3, template={"spec": {"containers": [container]}})
    job = replace(a_job("j"), spec=JobSpec(mode=Mode.PS, ps=replace(role, replicas=1), worker=role))
    values = job_values(job, Known())
    assert (values["total_tasks"], values["total_roles"], values["total_gpus"]) == (4, 2, 8)


def test_a_job_that_was_told_to_abort_by_another_door_is_stopping() -> None:
    job = a_job("j")
    job = replace(job, spec=replace(job.spec, run_policy=RunPolicy(abort=True)))
    values = job_values(job, Known())
    assert (values["execution_type"], values["state"]) == ("STOP", "STOPPING")


CHANGES: dict[str, tuple[dict[str, Any], bool]] = {
    "a step of its training": ({"progress": Progress(step=7)}, False),
    "a sign of life": ({"heartbeat_awake": 3.0}, False),
    "another message": ({"message": "waits for 3 CPUs"}, True),
    "another attempt": ({"attempt": 1}, True),
}


@pytest.mark.parametrize("case", CHANGES)
def test_only_what_is_written_down_changes_a_fingerprint(case: str) -> None:
    change, differs = CHANGES[case]
    assert (fingerprint(a_job("j")) != fingerprint(a_job("j", **change))) == differs


def test_a_deletion_changes_a_fingerprint() -> None:
    job = a_job("j")
    deleting = replace(job, metadata=Metadata(name="j", uid=job.uid, deletion_timestamp=BEGAN))
    assert fingerprint(job) != fingerprint(deleting)


RUNS, ENDED = a_job("j"), a_job("j", Phase.FAILED)
PODS: dict[str, tuple[dict[str, Any], bool]] = {
    "runs": ({}, False),
    "has succeeded": ({"phase": "Succeeded"}, True),
    "has failed": ({"phase": "Failed"}, True),
    "is being stopped": ({"current": False, "stopping": True}, False),
    "never started, and was cleaned": ({"phase": "Pending", "current": False}, True),
    "has an end": ({"finished_at": BEGAN}, True),
}


@pytest.mark.parametrize("case", PODS)
def test_a_job_has_settled_when_it_is_over_and_every_replica_too(case: str) -> None:
    changes, over = PODS[case]
    pod = a_pod(RUNS, **changes)
    assert is_over(pod) == over
    assert Observation(job=ENDED, pods=(a_pod(ENDED), pod)).settled == over
    assert not Observation(job=RUNS, pods=(pod,)).settled
    assert not Observation(job=ENDED, pods=None).settled


def test_of_what_a_replica_said_the_end_is_kept() -> None:
    said = "é" * LONGEST_MESSAGE + "the end"
    kept = last_of(said)
    assert kept.endswith("é" + "the end")
    assert LONGEST_MESSAGE - 2 <= len(kept.encode()) <= LONGEST_MESSAGE
    assert last_of("short") == "short"
    assert replica_values(a_pod(RUNS, message=said), NOW)["message"] == kept


def _replica(
    attempt: int, index: int, minute: float, ended: float | None, **more: Any
) -> ReplicaRow:
    at = {"created_at": BEGAN + timedelta(minutes=minute)}
    if ended is not None:
        at["finished_at"] = BEGAN + timedelta(minutes=ended)
    pod = a_pod(RUNS, uid=f"{attempt}-{index}", index=index, attempt=attempt, **{**at, **more})
    return ReplicaRow(**replica_values(pod, NOW))


def _minutes(row: dict[str, Any]) -> tuple[float | None, float | None]:
    began = BEGAN.timestamp() * 1000
    times = (row["started_at"], row["ended_at"])
    first, last = (None if at is None else (at - began) / 60_000 for at in times)
    return first, last


def test_every_attempt_tells_who_failed_first_and_when_it_was() -> None:
    failed = {"phase": "Failed", "exit_code": 9, "reason": "Error"}
    seen = [
        _replica(0, 0, 0, 3, phase="Failed", exit_code=143),
        _replica(0, 1, 0, 2, **failed),
        _replica(1, 0, 5, None),
        _replica(1, 1, 6, 8, **failed),
    ]
    failure = Failure(pod="j-worker-1", role="worker", index=1, exit_code=9)
    end = {"completion_time": BEGAN + timedelta(minutes=9), "message": "it failed"}
    job = a_job("j", Phase.FAILED, attempt=1, failure=failure, **end)
    first, second = attempt_values(job, seen, NOW)
    assert (first["outcome"], first["blamed_index"], first["exit_code"]) == ("Restarted", 1, 9)
    assert _minutes(first) == (0, 5)
    assert (second["outcome"], second["blamed_index"], second["exit_code"]) == ("Failed", 1, 9)
    assert _minutes(second) == (5, 9)
    assert second["message"] == "it failed"


def test_an_attempt_that_goes_on_has_no_end() -> None:
    (only,) = attempt_values(a_job("j"), [_replica(0, 0, 1, None)], NOW)
    assert (only["outcome"], *_minutes(only)) == ("", 1, None)
