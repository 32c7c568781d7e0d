"""What a submission says of its author's machine, and what there is instead where that means
nothing: on a cluster, and on a server that takes other people's jobs."""

from __future__ import annotations

from collections.abc import Mapping

from regatta.api.errors import ShellRefused
from regatta.api.problems import Problem
from regatta.engines.base import Shell

#: By field: what its author knows it as, and what a cluster has instead. Which checks are skipped
#: (`no_preflight`) is nothing to refuse: a cluster makes none.
ON_CLUSTER = {
    "volumes": ("--volume", "its volumes are those that the job file names"),
    "python": ("--python", "the image brings the interpreter"),
    "directory": (
        "--workdir",
        "the image, or workingDir of the container, says where commands run",
    ),
    "runtime": ("--runtime", "the nodes have their own container runtime"),
    "no_gpu": (
        "--no-gpu",
        "take nvidia.com/gpu out of its requests and limits; in one of OpenPAI's files, write "
        "gpuNumber: 0 (v1) or gpu: 0 (v2)",
    ),
    "environment": ("the shell's environment", "variables are those of the job file and of --env"),
}
#: The same, of a team's server on a machine of its own; which checks are skipped is its author's to
#: say there.
ON_SERVER = {
    "volumes": (
        "--volume",
        "volumes are those of the job file; its hostPath is a folder of the server's machine",
    ),
    "python": ("--python", "its settings say what `python` is; the job's command may name a path"),
    "directory": (
        "--workdir",
        "a job starts in a folder of its own; name a folder of the server's machine as the "
        "container's workingDir",
    ),
    "runtime": ("--runtime", "whoever runs it says with --isolation what runs jobs"),
    "no_gpu": ON_CLUSTER["no_gpu"],
    "environment": ON_CLUSTER["environment"],
}
_SILENT = Shell()


def refuse_shell(
    shell: Shell | None,
    where: str = "a cluster",
    instead: Mapping[str, tuple[str, str]] = ON_CLUSTER,
) -> None:
    """`instead`: what there is, by field. One that says nothing is as good as none. Raises
    ShellRefused."""
    if shell is None:
        return
    said = [
        named
        for field, named in instead.items()
        if getattr(shell, field) != getattr(_SILENT, field)
    ]
    if not said:
        return
    options = " and ".join(option for option, _ in said)
    raise ShellRefused(
        f"{options} {'is' if len(said) == 1 else 'are'} about jobs on this machine; "
        f"on {where} {'; '.join(there for _, there in said)}",
        [Problem(option, f"on {where} {there}") for option, there in said],
    )
