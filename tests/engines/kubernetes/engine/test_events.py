"""The cluster's events as doors show them: whose they are, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from regatta.api.job import Job, JobSpec, Metadata, Mode, RoleSpec
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.models import TargetRef
from regatta.engines.kubernetes.engine.events import Event, Story, in_order, job_event
from regatta.engines.kubernetes.engine.subscriptions import events_by_job

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = Job(
    metadata=Metadata(name="a-b", namespace="team", uid="uid", creation_timestamp=NOON),
    spec=JobSpec(mode=Mode.SINGLE, worker=RoleSpec(replicas=1, template={})),
)


def an_event(about: TargetRef, version: int = 1, at: datetime = NOON) -> Event:
    metadata = models.Metadata(name="e", namespace="team", resource_version=str(version))
    return Event(metadata, about, reason="Why", message="words", last_timestamp=at)


def test_events_stand_as_they_were_written_whatever_their_clocks_say() -> None:
    about = TargetRef("PaddleJob", "a-b", "uid")
    late, early = NOON + timedelta(seconds=5), NOON
    views = [job_event(an_event(about, version, at)) for version, at in [(9, early), (7, late)]]

    assert [view.id for view in in_order([*views, None])] == [7, 9]


STORIES = {
    "the job itself": (TargetRef("PaddleJob", "a-b", "uid"), "words"),
    "its replica": (TargetRef("Pod", "a-b-worker-0", "p"), "worker-0: words"),
    "a namesake": (TargetRef("PaddleJob", "a-b", "another"), None),
    "a role that it has not": (TargetRef("Pod", "a-b-ps-0", "p"), None),
    "a pod of a job whose name is shorter": (TargetRef("Pod", "a-worker-0", "p"), None),
    "a pod of a job whose name is longer": (TargetRef("Pod", "a-b-c-worker-0", "p"), None),
}


@pytest.mark.parametrize("case", STORIES.values(), ids=list(STORIES))
def test_a_jobs_story_is_its_own_and_that_of_its_pods(case: tuple[TargetRef, str | None]) -> None:
    about, message = case

    view = Story(JOB).view(an_event(about))

    assert (view.message if view else None) == message


def test_what_happened_to_pods_of_that_name_before_the_job_is_not_its_story() -> None:
    before = an_event(TargetRef("Pod", "a-b-worker-0", "p"), at=NOON - timedelta(minutes=1))

    assert Story(JOB).view(before) is None


FILED = {
    "a job's": (TargetRef("PaddleJob", "a-b", "uid"), {"uid"}),
    "a replica's": (TargetRef("Pod", "a-b-worker-0", "p"), {"team/a-b", "team/a"}),
    "of a role with a dash": (TargetRef("Pod", "a-data-loader-12", "p"), {"team/a", "team/a-data"}),
    "of somebody else's pod": (TargetRef("Pod", "coredns-7f89-xk2lq", "p"), set()),
    "of a pod without a role": (TargetRef("Pod", "mysql-0", "p"), set()),
    "of a pod with one word": (TargetRef("Pod", "mysql", "p"), set()),
}


@pytest.mark.parametrize("case", FILED.values(), ids=list(FILED))
def test_events_are_filed_where_their_jobs_look_for_them(case: tuple[TargetRef, set[str]]) -> None:
    about, places = case

    assert set(events_by_job(an_event(about))) == places
