"""What decided the end of an attempt, as OpenPAI says it: which of its rules was met, in which
role and by which task. Pure.

Of a config's job the rules are its own; that of a PaddleJob has the brain's words.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from regatta.api.job import Completion
from regatta.server.openpai.jobs.telling.role_plans import RolePlan, name_of_role, plans_of
from regatta.server.openpai.jobs.telling.task_states import state_of
from regatta.server.openpai_states import State
from regatta.server.records.job_rows import ReplicaRow
from regatta.server.records.job_story import JobStory

_FAILED = "FailedTaskCount {} has reached MinFailedTaskCount {} in the TaskRole"
_SUCCEEDED = "SucceededTaskCount {} has reached MinSucceededTaskCount {} in the TaskRole"


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """`role`: as its author calls it."""

    message: str = ""
    role: str | None = None
    index: int | None = None


def trigger_of(
    story: JobStory, attempt: int, state: State, role: str | None, index: int | None, said: str
) -> Trigger:
    """`role` and `index`: who is to blame, by the engine's name; `said`: in its words, which stay
    where no rule was met, as when a machine was lost."""
    plain = Trigger(message=said, role=name_of_role(story, role), index=index)
    if not story.row.protocol:
        return plain
    if state is State.FAILED:
        return _failed(story, attempt, plain, role)
    if state is State.SUCCEEDED:
        return next(_reached(story, attempt), plain)
    return plain


def _failed(story: JobStory, attempt: int, plain: Trigger, role: str | None) -> Trigger:
    plan = next((plan for plan in plans_of(story) if plan.label == role), None)
    needed = _completion(plan).min_failed if plan else None
    if plan is None or needed is None:
        return plain
    failed = len(_ended(story, attempt, plan, State.FAILED))
    if failed < needed:
        return plain
    return msgspec.structs.replace(plain, message=_FAILED.format(failed, needed))


def _reached(story: JobStory, attempt: int) -> Iterator[Trigger]:
    """By the task with which there were enough of its role."""
    for plan in plans_of(story):
        needed = _completion(plan).min_succeeded
        done = _ended(story, attempt, plan, State.SUCCEEDED)
        if needed is not None and 1 <= needed <= len(done):
            index = done[needed - 1].replica_index
            message = _SUCCEEDED.format(len(done), needed)
            yield Trigger(message=message, role=plan.name, index=index)


def _completion(plan: RolePlan) -> Completion:
    return (plan.spec and plan.spec.completion) or Completion()


def _ended(story: JobStory, attempt: int, plan: RolePlan, how: State) -> list[ReplicaRow]:
    """The tasks of a role that ended so, each with the last life that it had until then; who ended
    first comes first."""
    last: dict[int, ReplicaRow] = {}
    for one in sorted(story.replicas, key=lambda one: (one.attempt, one.created_at or 0)):
        if one.role == plan.label and one.attempt <= attempt:
            last[one.replica_index] = one
    ended = [one for one in last.values() if state_of(story.row, one) is how]
    return sorted(ended, key=lambda one: (one.finished_at or 0, one.replica_index))
