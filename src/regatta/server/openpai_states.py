"""A job's phase in OpenPAI's words: state, sub-state, exit code, and who decided its end.

Two of OpenPAI's habits are not kept: a job is RUNNING only when a replica of it is, and never goes
back to WAITING for the moment between its last replica's end and its own.
"""

from __future__ import annotations

import enum

import msgspec

from regatta.api.job import JobStatus, Phase


class State(enum.StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


FINAL_STATES = (State.STOPPED, State.SUCCEEDED, State.FAILED, State.UNKNOWN)


class SubState(enum.StrEnum):
    """All that OpenPAI's contract knows; those of a deletion are one to us."""

    CREATION_PENDING = "AttemptCreationPending"
    CREATION_REQUESTED = "AttemptCreationRequested"
    PREPARING = "AttemptPreparing"
    RUNNING = "AttemptRunning"
    DELETION_PENDING = "AttemptDeletionPending"
    DELETION_REQUESTED = "AttemptDeletionRequested"
    DELETING = "AttemptDeleting"
    ATTEMPT_COMPLETED = "AttemptCompleted"
    COMPLETED = "Completed"


#: Exit codes that are OpenPAI's own: its user stopped it; it failed and no replica's code says how.
STOPPED_BY_USER, NO_EXIT_CODE = -210, 256

_FINAL = {
    Phase.COMPLETED: State.SUCCEEDED,
    Phase.FAILED: State.FAILED,
    Phase.ABORTED: State.STOPPED,
}
_SUB_STATES = {
    None: SubState.CREATION_PENDING,
    Phase.PENDING: SubState.CREATION_PENDING,
    Phase.SUSPENDED: SubState.CREATION_PENDING,
    Phase.STARTING: SubState.PREPARING,
    Phase.RUNNING: SubState.RUNNING,
    Phase.SCALING: SubState.PREPARING,
    Phase.RESTARTING: SubState.ATTEMPT_COMPLETED,
    Phase.ABORTING: SubState.DELETING,
    Phase.TERMINATING: SubState.DELETING,
    Phase.COMPLETED: SubState.COMPLETED,
    Phase.FAILED: SubState.COMPLETED,
    Phase.ABORTED: SubState.COMPLETED,
}


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended; all None while it has not."""

    exit_code: int | None = None
    trigger_role: str | None = None
    trigger_index: int | None = None
    trigger_message: str = ""


def state_of(status: JobStatus, *, stop_asked: bool = False) -> State:
    """STOPPING as soon as somebody asked for it, until it has ended in whichever way."""
    phase = status.phase
    if phase in _FINAL:
        return _FINAL[phase]
    if stop_asked or phase in (Phase.ABORTING, Phase.TERMINATING):
        return State.STOPPING
    if phase is Phase.RUNNING or (phase is not Phase.SUSPENDED and _has_begun(status)):
        return State.RUNNING
    return State.WAITING


def sub_state_of(status: JobStatus) -> SubState:
    usual = _SUB_STATES[status.phase]
    if usual in (SubState.PREPARING, SubState.ATTEMPT_COMPLETED) and _has_begun(status):
        return SubState.RUNNING
    return usual


def ending_of(status: JobStatus) -> Ending:
    if status.phase is Phase.COMPLETED:
        return Ending(exit_code=0, trigger_message=status.message or "All Tasks are completed")
    if status.phase is Phase.ABORTED:
        return Ending(exit_code=STOPPED_BY_USER, trigger_message=status.message)
    if status.phase is not Phase.FAILED:
        return Ending()
    failure = status.failure
    if failure is None:
        return Ending(exit_code=NO_EXIT_CODE, trigger_message=status.message)
    # A code of 0 would read as a success: a replica that hung, or vanished, has no other.
    return Ending(
        exit_code=failure.exit_code or NO_EXIT_CODE,
        trigger_role=failure.role or None,
        trigger_index=failure.index if failure.role else None,
        trigger_message=status.message or failure.message,
    )


def _has_begun(status: JobStatus) -> bool:
    """A replica of this attempt runs, or has run to its end."""
    return any(role.running or role.succeeded for role in status.roles().values())
