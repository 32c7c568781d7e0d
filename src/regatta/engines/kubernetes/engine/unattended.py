"""A job at which no operator has looked: a person is told, because nothing else would tell them.

Everything that a job says of itself is written by the operator. Where none runs, a job says nothing
for ever, which looks like one that is about to begin.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from regatta.api.job import Job
from regatta.engines.kubernetes.engine.refusals import INSTALL

#: An operator looks at a new job within a second, and writes the first of it within a few.
UNATTENDED_SECONDS = 15.0
NO_OPERATOR = "NoOperator"


def with_note(job: Job, now: datetime) -> Job:
    """As it is shown; nothing of this is stored."""
    made = job.metadata.creation_timestamp
    if job.status.phase is not None or made is None or job.deleting:
        return job
    if (now - made).total_seconds() < UNATTENDED_SECONDS:
        return job
    message = (
        f"no operator has looked at it: none runs, or it does not look after namespace "
        f"{job.namespace}. `kubectl -n paddle-system get deployment paddle-controller-manager` "
        f"says whether one runs; `{INSTALL}` installs it"
    )
    return replace(job, status=replace(job.status, reason=NO_OPERATOR, message=message))
