"""A job's tasks as OpenPAI shows them: every one that the job has, from the moment it is accepted,
under the names that its author gave to the roles. Pure.

An attempt of a job shows each task as it was then: where one did not start again for it, the life
that ran on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec
from msgspec.structs import asdict, replace

from regatta.api.job import Job, RestartScope
from regatta.controller.environment.pai import fixed_and_dealt
from regatta.controller.environment.places import Place
from regatta.server.openpai.jobs.exit_specs import STOPPED_WITH_JOB, spec_of
from regatta.server.openpai.jobs.job_shapes import (
    OpenPaiRole,
    OpenPaiTask,
    TaskAttempt,
    TaskHistory,
    TaskRoleName,
)
from regatta.server.openpai.jobs.telling.author_names import story_told
from regatta.server.openpai.jobs.telling.role_plans import RolePlan, plans_of
from regatta.server.openpai.jobs.telling.task_states import state_of
from regatta.server.openpai_states import FINAL_STATES, STOPPED_BY_USER, State
from regatta.server.records.job_rows import JobRow, ReplicaRow
from regatta.server.records.job_story import JobStory


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of one task, as people are to see it."""

    replica: ReplicaRow
    state: State
    exit_code: int | None
    diagnostics: str | None


def roles_shown(story: JobStory, attempt: int) -> dict[str, OpenPaiRole]:
    """`story`: as its author is told it."""
    of_task: dict[tuple[str, int], list[ReplicaRow]] = {}
    for one in story.replicas:
        of_task.setdefault((one.role, one.replica_index), []).append(one)
    return {
        plan.name: OpenPaiRole(
            task_role_status=TaskRoleName(name=plan.name),
            task_statuses=tuple(
                _task(story, plan, index, attempt, of_task.get((plan.label, index), ()))
                for index in range(plan.tasks)
            ),
        )
        for plan in plans_of(story)
    }


def lives_of(
    story: JobStory,
    plan: RolePlan,
    index: int,
    attempt: int,
    among: Sequence[ReplicaRow] | None = None,
) -> list[Life]:
    """Of one task in one attempt of the job, the first one first. Where tasks start again alone,
    all that it had until then. `among`: where to look for them, else among all of the job's."""
    mine = [
        one
        for one in (story.replicas if among is None else among)
        if (one.role, one.replica_index) == (plan.label, index) and one.attempt <= attempt
    ]
    mine.sort(key=lambda one: (one.attempt, one.created_at or 0))
    if mine and not _starts_alone(story.job):
        mine = [one for one in mine if one.attempt == mine[-1].attempt]
    return [_life(story.row, one) for one in mine]


def at_each_attempt(story: JobStory) -> list[JobStory]:
    """As much of it as is told of each attempt, by number: what was known by then. Where a job
    failed ten thousand times, looking through all of it for each would take minutes."""
    count = story.row.attempt + 1
    if _starts_alone(story.job):
        return [story] * count
    ends = {one.number: one for one in story.attempts}
    begun: dict[int, dict[tuple[str, int], list[ReplicaRow]]] = {}
    for one in story.replicas:
        lives = begun.setdefault(one.attempt, {})
        lives.setdefault((one.role, one.replica_index), []).append(one)
    shown: dict[tuple[str, int], list[ReplicaRow]] = {}
    told = []
    for number in range(count):
        shown |= begun.get(number, {})
        replicas = tuple(chain.from_iterable(shown.values()))
        mine = (ends[number],) if number in ends else ()
        told.append(replace(story, replicas=replicas, attempts=mine))
    return told


def history_of(story: JobStory, plan: RolePlan, index: int, attempt: int) -> TaskHistory:
    story = story_told(story)
    task = _task(story, plan, index, attempt)
    lives = lives_of(story, plan, index, attempt)
    return TaskHistory(
        task_index=index,
        task_uid=lives[-1].replica.uid if lives else f"{story.row.id}-{plan.label}-{index}",
        task_state=task.task_state,
        retries=task.retries,
        accountable_retries=task.accountable_retries,
        created_time=task.created_time,
        launched_time=task.launched_time,
        completed_time=task.completed_time,
        username=story.row.username,
        job_name=story.row.name,
        job_attempt_id=attempt,
        task_role_name=plan.name,
        attempts=tuple(
            _attempt(story, plan, life, attempt, number) for number, life in enumerate(lives)
        ),
    )


def _task(
    story: JobStory,
    plan: RolePlan,
    index: int,
    attempt: int,
    among: Sequence[ReplicaRow] | None = None,
) -> OpenPaiTask:
    lives = lives_of(story, plan, index, attempt, among)
    if not lives:
        return _without_a_life(story.row, plan, index, attempt)
    first, last = lives[0].replica, lives[-1]
    shown = _attempt(story, plan, last, attempt, len(lives) - 1)
    restarts = len(lives) - 1 + sum(life.replica.restarts for life in lives)
    started = [life.replica.started_at for life in lives if life.replica.started_at]
    return OpenPaiTask(
        task_index=index,
        task_state=last.state,
        retries=restarts,
        accountable_retries=restarts,
        created_time=first.created_at,
        launched_time=min(started, default=None),
        completed_time=last.replica.finished_at,
        **asdict(shown),
    )


def _without_a_life(row: JobRow, plan: RolePlan, index: int, attempt: int) -> OpenPaiTask:
    """It waits, or never came to be."""
    state = State.WAITING
    if row.state in FINAL_STATES or attempt < row.attempt:
        state = State.UNKNOWN if row.state == State.UNKNOWN else State.STOPPED
    code = STOPPED_WITH_JOB if state is State.STOPPED else None
    return OpenPaiTask(
        task_index=index,
        task_state=state,
        attempt_id=0,
        attempt_state=state,
        container_log=log_path(row, plan.name, index, attempt, 0),
        container_exit_code=code,
        container_exit_spec=spec_of(code),
        container_exit_diagnostics=None if code is None else "it was never started",
    )


def _attempt(story: JobStory, plan: RolePlan, life: Life, attempt: int, number: int) -> TaskAttempt:
    replica = life.replica
    told = "" if life.state is State.STOPPED else replica.reason
    return TaskAttempt(
        attempt_id=number,
        attempt_state=life.state,
        current_attempt_created_time=replica.created_at,
        current_attempt_launched_time=replica.started_at,
        current_attempt_completed_time=replica.finished_at,
        container_id=replica.uid,
        container_ip=replica.address or None,
        container_node_name=replica.node or None,
        container_ports=_ports(plan, replica),
        container_gpus=replica.gpus or None,
        container_log=log_path(story.row, plan.name, replica.replica_index, attempt, number),
        container_exit_code=life.exit_code,
        container_exit_spec=spec_of(life.exit_code, told),
        container_exit_diagnostics=life.diagnostics,
    )


def _life(row: JobRow, replica: ReplicaRow) -> Life:
    state, code = state_of(row, replica), replica.exit_code
    if state is State.STOPPED:
        code = STOPPED_BY_USER if row.exit_code == STOPPED_BY_USER else STOPPED_WITH_JOB
    elif state is State.FAILED:
        code = code or None  # one that vanished has none, and 0 would read as a success
    told = [replica.reason, replica.message]
    if state is State.STOPPED and replica.exit_code:
        told.append(f"its process ended with {replica.exit_code}")
    over = state in (State.FAILED, State.STOPPED, State.UNKNOWN)
    waits = state is State.WAITING and replica.message
    return Life(
        replica=replica,
        state=state,
        exit_code=code,
        diagnostics="\n".join(filter(None, told)) or None if over or waits else None,
    )


def _starts_alone(job: Job | None) -> bool:
    return job is not None and job.spec.run_policy.restart_scope is RestartScope.REPLICA


def _ports(plan: RolePlan, replica: ReplicaRow) -> dict[str, str]:
    if plan.spec is None or replica.first_port is None:
        return {}
    place = Place(
        role=plan.label, index=replica.replica_index, spec=plan.spec, port=replica.first_port
    )
    dealt = fixed_and_dealt(place)
    return {label: ",".join(map(str, numbers)) for label, numbers in dealt.items()}


def log_path(row: JobRow, role: str, index: int, attempt: int, number: int) -> str:
    return (
        f"/api/v2/jobs/{row.username}~{row.name}/attempts/{attempt}/taskRoles/{role}"
        f"/taskIndex/{index}/attempts/{number}/logs"
    )
