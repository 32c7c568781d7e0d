"""Jobs at which no operator has looked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from regatta.api.job import Job, JobSpec, JobStatus, Metadata, Mode, Phase
from regatta.engines.kubernetes.engine.unattended import UNATTENDED_SECONDS, with_note

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(age: float | None = UNATTENDED_SECONDS, status: JobStatus = JobStatus()) -> Job:  # noqa: B008
    made = None if age is None else NOW - timedelta(seconds=age)
    metadata = Metadata(name="job", namespace="team", uid="u", creation_timestamp=made)
    return Job(metadata=metadata, spec=JobSpec(mode=Mode.SINGLE), status=status)


def test_a_job_that_nobody_has_looked_at_says_so() -> None:
    status = with_note(a_job(), NOW).status
    assert (status.phase, status.reason) == (None, "NoOperator")
    assert status.message == (
        "no operator has looked at it: none runs, or it does not look after namespace team. "
        "`kubectl -n paddle-system get deployment paddle-controller-manager` says whether one "
        "runs; `kubectl apply -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml` installs it"
    )


OTHERS = {
    "it is new": a_job(UNATTENDED_SECONDS - 0.1),
    "its age is unknown": a_job(None),
    "it was looked at": a_job(status=JobStatus(phase=Phase.PENDING)),
    "it is being deleted": replace(
        a_job(), metadata=replace(a_job().metadata, deletion_timestamp=NOW)
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_is_shown_as_it_is(what: str) -> None:
    assert with_note(OTHERS[what], NOW) is OTHERS[what]
