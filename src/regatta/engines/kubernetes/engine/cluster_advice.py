"""What means less on a cluster than on one machine, told to the author of a job."""

from __future__ import annotations

from collections.abc import Iterator

from regatta.api.job import Job, RestartScope
from regatta.api.problems import Problem
from regatta.controller.world import meets_by_name


def advise(job: Job) -> Iterator[Problem]:
    policy = job.spec.run_policy
    if policy.hang_timeout_seconds is not None:
        yield _warning(
            "spec.runPolicy.hangTimeoutSeconds",
            "it has no effect on a cluster, where the operator does not hear of progress yet; "
            "activeDeadlineSeconds ends a job that takes too long",
        )
    if policy.restart_scope is not RestartScope.JOB and not meets_by_name(job, names_only=False):
        yield _warning(
            "spec.runPolicy.restartScope",
            f"with intranet {job.spec.intranet} a restarted pod has a new address, so the whole "
            "job starts again; with intranet: Service a part of it can",
        )


def _warning(path: str, message: str) -> Problem:
    return Problem(path, message, "warning")
