"""What a cluster wants that a machine does not, and what means less there, told to the author of a
job."""

from __future__ import annotations

from collections.abc import Iterator

from regatta.api.errors import InvalidJob
from regatta.api.job import Job, RestartScope
from regatta.api.load import Loaded
from regatta.api.problems import Problem
from regatta.controller.world import meets_by_name

_NO_IMAGE = "missing; a cluster runs images: name the one that holds the program"


def refuse_what_has_no_image(loaded: Loaded) -> None:
    """Raises InvalidJob. The API server takes such a job, and no pod of it could be created."""
    problems = []
    spec = loaded.job.spec
    for name, role in spec.roles().items():
        pod = role.template.get("spec") or {}
        for kind in ("initContainers", "containers"):
            for number, container in enumerate(pod.get(kind) or ()):
                if not container.get("image"):
                    place = f"{spec.path_of(name)}.template.spec.{kind}[{number}].image"
                    problems.append(Problem(place, _NO_IMAGE))
    if problems:
        raise InvalidJob([*problems, *loaded.warnings])


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
