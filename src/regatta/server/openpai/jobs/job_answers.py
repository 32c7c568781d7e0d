"""What is on record of a job, in the shapes that v2's clients read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from regatta.server.openpai.jobs.exit_specs import STOPPED_WITH_JOB, spec_of
from regatta.server.openpai.jobs.job_shapes import (
    ExitDiagnostics,
    ExitMessages,
    ExitSpec,
    OpenPaiDetail,
    OpenPaiJobAttempt,
    OpenPaiJobStatus,
    OpenPaiSummary,
    RetryDetails,
)
from regatta.server.openpai.jobs.task_answers import at_each_attempt, roles_shown
from regatta.server.openpai.jobs.telling.author_names import story_told
from regatta.server.openpai.jobs.telling.completion_triggers import trigger_of
from regatta.server.openpai_states import FINAL_STATES, NO_EXIT_CODE, State, SubState
from regatta.server.records.job_rows import AttemptRow, JobRow, ReplicaRow
from regatta.server.records.job_story import JobStory

#: The engine's name of a task, perhaps.
_NUMBERED = re.compile(r"(?<![\w./~-])[a-z0-9][a-z0-9-]*-\d+(?![\w/~-]|\.\w)")
HANDED_IN = "it waits for its turn"
_ENDS = {
    "Completed": State.SUCCEEDED,
    "Failed": State.FAILED,
    "Aborted": State.STOPPED,
    "Restarted": State.FAILED,
}


def framework_of(row: JobRow) -> str:
    return f"{row.username}~{row.name}"


def debug_id(row: JobRow) -> str:
    """Where the engine has it, for whoever looks there."""
    return f"{row.namespace}/{row.engine_name}"


def waiting_reason(row: JobRow) -> str | None:
    """What its engine last said of it; before that word has come, that it has the job."""
    if row.state != State.WAITING:
        return None
    starts = row.sub_state == SubState.PREPARING
    return row.message or row.reason or ("its tasks are starting" if starts else HANDED_IN)


def names_the_engines(row: JobRow) -> bool:
    """Whether what it says of itself in lists may have names that are not its author's."""
    if not row.protocol or row.state != State.WAITING:
        return False
    named = row.engine_name != row.name and row.engine_name in row.message
    return named or _NUMBERED.search(row.message) is not None


def summary(row: JobRow) -> OpenPaiSummary:
    """`row`: as its author is told of it."""
    return OpenPaiSummary(
        name=row.name,
        username=row.username,
        state=State(row.state),
        sub_state=SubState(row.sub_state),
        execution_type=row.execution_type,
        tags=row.tags,
        retries=row.retries,
        retry_details=retry_details(row),
        retry_delay_time=None,
        submission_time=row.submitted_at,
        created_time=row.created_at,
        launched_time=row.launched_at,
        completed_time=row.completed_at,
        app_exit_code=row.exit_code,
        virtual_cluster=row.virtual_cluster,
        job_priority=row.priority,
        total_gpu_number=row.total_gpus,
        total_task_number=row.total_tasks,
        total_task_role_number=row.total_roles,
        debug_id=debug_id(row),
        waiting_reason=waiting_reason(row),
    )


def retry_details(row: JobRow) -> RetryDetails:
    return RetryDetails(
        user=row.retries_user, platform=row.retries_platform, resource=row.retries_resource
    )


class AttemptStory:
    """One attempt of a job: how it went, and who decided its end."""

    def __init__(self, story: JobStory, number: int) -> None:
        """`story`: as the job's author is told it."""
        self.story, self.number = story, number
        row = story.row
        self.latest = number == row.attempt
        self.told = next((one for one in story.attempts if one.number == number), None)
        self.state = State(row.state) if self.latest else _state(self.told)
        self.exit_code = row.exit_code if self.latest else _exit_code(self.told)
        self.role, self.index, self.message = row.trigger_role, row.trigger_index, ""
        if self.latest and row.state in FINAL_STATES:
            self.message = row.trigger_message
        elif not self.latest and self.told is not None:
            self.role, self.index = self.told.blamed_role, self.told.blamed_index
            self.message = self.told.message
        self.trigger = trigger_of(story, number, self.state, self.role, self.index, self.message)

    @property
    def launcher(self) -> str:
        """How it ended in more words than OpenPAI's, where somebody failed."""
        failed = self.state is State.FAILED and self.message
        return self.message if failed else self.trigger.message

    @property
    def over(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def created(self) -> int | None:
        begun = self.told.started_at if self.told else None
        return begun or (self.story.row.created_at if self.number == 0 else None)

    @property
    def launched(self) -> int | None:
        begun = [one.started_at for one in self._mine() if one.started_at]
        return min(begun, default=None)

    @property
    def completed(self) -> int | None:
        if self.latest:
            return self.story.row.completed_at
        return self.told.ended_at if self.told else None

    @property
    def blamed(self) -> ReplicaRow | None:
        """The replica that decided the end, where one did."""
        mine = [
            one
            for one in self.story.replicas
            if (one.role, one.replica_index) == (self.role, self.index)
            and one.attempt <= self.number
        ]
        return max(mine, key=lambda one: one.attempt, default=None)

    @property
    def spec(self) -> ExitSpec | None:
        blamed = self.blamed
        failed = self.state is State.FAILED and blamed is not None
        return spec_of(self.exit_code, blamed.reason if blamed and failed else "")

    @property
    def diagnostics(self) -> str | None:
        if not self.over:
            return None
        blamed, row = self.blamed, self.story.row
        told = [self.launcher, blamed.message if blamed else "", row.notes if self.latest else ""]
        return "\n".join(dict.fromkeys(filter(None, told))) or None

    @property
    def messages(self) -> ExitMessages | None:
        if not self.over:
            return None
        blamed = self.blamed
        return ExitMessages(
            container=(blamed.message or None) if blamed else None, launcher=self.launcher or None
        )

    def _mine(self) -> list[ReplicaRow]:
        return [one for one in self.story.replicas if one.attempt == self.number]


def has_attempt(story: JobStory, number: int) -> bool:
    return 0 <= number <= story.row.attempt


def detail(story: JobStory, number: int) -> OpenPaiDetail:
    """`number`: of an attempt that the job has."""
    story = at_each_attempt(story_told(story))[number]
    attempt = AttemptStory(story, number)
    row, spec, trigger = story.row, attempt.spec, attempt.trigger
    status = OpenPaiJobStatus(
        username=row.username,
        state=State(row.state),
        sub_state=SubState(row.sub_state),
        execution_type=row.execution_type,
        retries=row.retries,
        retry_details=retry_details(row),
        retry_delay_time=None,
        submission_time=row.submitted_at,
        created_time=row.created_at,
        launched_time=row.launched_at,
        completed_time=row.completed_at,
        attempt_id=number,
        attempt_state=attempt.state,
        app_id=row.engine_uid or row.id,
        app_progress=1.0 if row.state in FINAL_STATES else 0.0,
        app_tracking_url="",
        app_created_time=attempt.created,
        app_launched_time=attempt.launched,
        app_completed_time=attempt.completed,
        app_exit_code=attempt.exit_code,
        app_exit_spec=spec,
        app_exit_diagnostics=attempt.diagnostics,
        app_exit_messages=attempt.messages,
        app_exit_trigger_message=trigger.message or None,
        app_exit_trigger_task_role_name=trigger.role,
        app_exit_trigger_task_index=trigger.index,
        app_exit_type=spec.type if spec else None,
        virtual_cluster=row.virtual_cluster,
        waiting_reason=waiting_reason(row),
        notes=row.notes or None,
    )
    return OpenPaiDetail(
        name=row.name,
        tags=row.tags,
        job_status=status,
        task_roles=roles_shown(story, number),
        job_priority=row.priority,
        debug_id=debug_id(row),
    )


def job_attempts(story: JobStory, numbers: Iterable[int]) -> list[OpenPaiJobAttempt]:
    told = at_each_attempt(story_told(story))
    return [_job_attempt(told[number], number) for number in numbers]


def _job_attempt(story: JobStory, number: int) -> OpenPaiJobAttempt:
    attempt = AttemptStory(story, number)
    trigger = attempt.trigger
    row, spec, said = story.row, attempt.spec, attempt.diagnostics
    return OpenPaiJobAttempt(
        job_name=row.name,
        framework_name=framework_of(row),
        uid=row.engine_uid or row.id,
        user_name=row.username,
        state=attempt.state,
        origin_state=row.sub_state if attempt.latest else SubState.COMPLETED,
        attempt_index=number,
        job_started_time=row.created_at,
        attempt_started_time=attempt.launched or attempt.created,
        attempt_completed_time=attempt.completed,
        exit_code=attempt.exit_code,
        exit_phrase=spec.phrase if spec else None,
        exit_type=spec.type if spec else None,
        exit_diagnostics=ExitDiagnostics(diagnostics_summary=said, runtime=None, launcher=said)
        if said
        else None,
        app_exit_trigger_message=trigger.message or None,
        app_exit_trigger_task_role_name=trigger.role,
        app_exit_trigger_task_index=trigger.index,
        app_exit_spec=spec,
        app_exit_diagnostics=said,
        app_exit_messages=attempt.messages,
        total_gpu_number=row.total_gpus,
        total_task_number=row.total_tasks,
        total_task_role_number=row.total_roles,
        task_roles=roles_shown(story, number),
        is_latest=attempt.latest,
    )


def _state(told: AttemptRow | None) -> State:
    return State.UNKNOWN if told is None else _ENDS.get(told.outcome, State.UNKNOWN)


def _exit_code(told: AttemptRow | None) -> int | None:
    """Of an attempt before the last: that of who failed, or that the job was begun anew."""
    if told is None:
        return None
    if told.exit_code is not None:
        return told.exit_code or NO_EXIT_CODE
    return NO_EXIT_CODE if told.blamed_role else STOPPED_WITH_JOB
