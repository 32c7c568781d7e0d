"""A job's roles: what its author calls them, what the engine does, and how many tasks each has.
Pure."""

from __future__ import annotations

import msgspec

from regatta.api.job import Job, RoleSpec
from regatta.server.records.job_story import JobStory


class RolePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A role as the job has it: its name for people, the engine's, and how many tasks."""

    name: str
    label: str
    tasks: int
    spec: RoleSpec | None = None


def plans_of(story: JobStory) -> list[RolePlan]:
    """From the job's document; of a job that has none on record, from what was seen of it."""
    if story.job is not None:
        return _plans(story.job)
    seen: dict[str, int] = {}
    for one in story.replicas:
        seen[one.role] = max(seen.get(one.role, 0), one.replica_index + 1)
    return [RolePlan(name=role, label=role, tasks=count) for role, count in seen.items()]


def plan_named(story: JobStory, name: str) -> RolePlan | None:
    """By the name that its author gave it."""
    return next((plan for plan in plans_of(story) if plan.name == name), None)


def name_of_role(story: JobStory, label: str | None) -> str | None:
    """The author's name for what the engine calls so."""
    return next((plan.name for plan in plans_of(story) if plan.label == label), label)


def names_by_label(story: JobStory) -> dict[str, str]:
    return {plan.label: plan.name for plan in plans_of(story)}


def names_in(job: Job) -> dict[str, str]:
    """The same, where nothing is known but the job."""
    return {plan.label: plan.name for plan in _plans(job)}


def _plans(job: Job) -> list[RolePlan]:
    return [
        RolePlan(name=role.known_as or label, label=label, tasks=role.replicas, spec=role)
        for label, role in job.spec.roles().items()
    ]
