"""What a submission says of its author's machine, and what there is instead where that means
nothing: on a cluster, and on a server that takes other people's jobs."""

from __future__ import annotations

from regatta.api.errors import ShellRefused
from regatta.api.problems import Problem
from regatta.engines.base import Shell

#: By field: what its author knows it as, and what a cluster has instead. Which checks are skipped
#: (`no_preflight`) is nothing to refuse: a cluster makes none.
_INSTEAD = {
    "volumes": ("--volume", "its volumes are those that the job file names"),
    "python": ("--python", "the image brings the interpreter"),
    "directory": (
        "--workdir",
        "the image, or workingDir of the container, says where commands run",
    ),
    "runtime": ("--runtime", "the nodes have their own container runtime"),
    "no_gpu": ("--no-gpu", "take nvidia.com/gpu out of the job's resources with --set or by hand"),
    "environment": ("the shell's environment", "variables are those of the job file and of --env"),
}
_SILENT = Shell()


def refuse_shell(shell: Shell | None, where: str = "a cluster") -> None:
    """Raises ShellRefused. One that says nothing is as good as none."""
    if shell is None:
        return
    said = [
        named
        for field, named in _INSTEAD.items()
        if getattr(shell, field) != getattr(_SILENT, field)
    ]
    if not said:
        return
    options = " and ".join(option for option, _ in said)
    raise ShellRefused(
        f"{options} {'is' if len(said) == 1 else 'are'} about jobs on this machine; "
        f"on {where} {'; '.join(instead for _, instead in said)}",
        [Problem(option, f"on {where} {instead}") for option, instead in said],
    )
