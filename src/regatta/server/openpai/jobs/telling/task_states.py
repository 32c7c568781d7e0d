"""In which of OpenPAI's states a task is, by its replica. Pure."""

from __future__ import annotations

from regatta.server.openpai_states import State
from regatta.server.records.job_rows import JobRow, ReplicaRow

#: Why a replica ended that its engine ended on purpose.
_STOPPED = ("Stopped", "Deleted")


def state_of(row: JobRow, replica: ReplicaRow) -> State:
    match replica.phase:
        case "Succeeded":
            return State.SUCCEEDED
        case "Failed":
            return State.STOPPED if replica.reason in _STOPPED else State.FAILED
        case "Unknown":
            return State.UNKNOWN
        case "Running":
            return State.STOPPING if row.state == State.STOPPING else State.RUNNING
        case _:
            return State.STOPPING if row.state == State.STOPPING else State.WAITING
