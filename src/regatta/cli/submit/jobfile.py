"""From a command line to a submission: the file's text, what the options change, and the shell.

The file is not understood here; the server does that, so that every door says the same.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import IO, Any

import click

from regatta.api.errors import Unanswered
from regatta.api.source.limits import MAX_BYTES
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings
from regatta.cli.show.explain import show_problems
from regatta.engines.base import Accepted, Submission
from regatta.engines.local.replicas.variables import inherited

#: Tried in this order when a folder is given.
FILE_NAMES = ("job.yaml", "job.yml", "job.json")

_OPTIONS = (
    click.argument("file", metavar="FILE", type=click.Path()),
    click.option("--name", metavar="NAME", help="Run under another name."),
    click.option("--env", "env", multiple=True, metavar="K=V",
                 help="Set a variable in every replica."),
    click.option("--env-file", multiple=True, metavar="FILE",
                 help="Read such variables from a file."),
    click.option("--set", "sets", multiple=True, metavar="PATH=VALUE",
                 help="Change a field of the job, as in spec.worker.replicas=4."),
    click.option("--volume", "volumes", multiple=True, metavar="NAME=DIR",
                 help="Use a directory of this machine for a volume."),
    click.option("--python", metavar="PATH", help="Interpreter that `python` means in the job."),
    click.option("--workdir", metavar="DIR",
                 help="Where commands run; the job file's own folder unless given."),
    click.option("--runtime", type=click.Choice(["none", "docker", "podman"]), default="none",
                 help="Run images with a container runtime instead of plain processes."),
    click.option("--no-gpu", is_flag=True, help="Run without the GPUs that the job asks for."),
    click.option("--no-preflight", is_flag=True,
                 help="Skip the checks of the training environment."),
    click.option("--strict", is_flag=True, help="Unknown fields in pod templates are errors."),
    click.option("--replace", is_flag=True, help="End a live job of the same name first."),
    click.option("--dry-run", is_flag=True,
                 help="Print the pods, environment and ports that would be created; "
                      "--dry-run=server asks a cluster's API server."),
    click.option("--dry-run-by-server", is_flag=True, hidden=True),
)  # fmt: skip


#: Options about this machine, and what a cluster has instead.
_LOCAL_ONLY = {
    "volumes": ("--volume", "its volumes are those that the job file names"),
    "python": ("--python", "the image brings the interpreter"),
    "workdir": ("--workdir", "the image, or workingDir of the container, says where commands run"),
    "runtime": ("--runtime", "the nodes have their own container runtime"),
    "no_gpu": ("--no-gpu", "take nvidia.com/gpu out of the job's resources with --set or by hand"),
}


class DryRun(Enum):
    NO = ""
    CLIENT = "client"
    SERVER = "server"

    def __bool__(self) -> bool:
        return self is not DryRun.NO

    @classmethod
    def of(cls, options: dict[str, Any]) -> DryRun:
        """Takes its options out of the others."""
        here, by_server = options.pop("dry_run"), options.pop("dry_run_by_server")
        return cls.SERVER if by_server else cls.CLIENT if here else cls.NO


def submission_options(function: Callable[..., Any]) -> Callable[..., Any]:
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), function)


def make_submission(settings: Settings, options: Mapping[str, Any]) -> Submission:
    """A submission from the parsed options above."""
    if settings.on_cluster:
        _refuse_local_options(options)
    text, source, folder = read_job_file(options["file"])
    env: dict[str, str] = {}
    for file in options["env_file"]:
        env.update(read_env_file(Path(file)))
    env.update(pairs("--env", options["env"]))
    return Submission(
        text=text,
        source=source,
        name=options["name"],
        namespace=settings.named_namespace,
        env=env,
        sets=tuple(options["sets"]),
        volumes={
            name: absolute(folder) for name, folder in pairs("--volume", options["volumes"]).items()
        },
        strict=options["strict"],
        replace=options["replace"],
        no_gpu=options["no_gpu"],
        no_preflight=options["no_preflight"],
        directory=absolute(options["workdir"] or folder),
        shell=inherited(os.environ),
        python=_interpreter(options["python"]),
        runtime=options["runtime"],
    )


def hand_in(settings: Settings, submission: Submission) -> Accepted:
    """Submit it, and show what is worth a warning."""
    try:
        accepted = settings.connect().submit(submission)
    except KeyboardInterrupt:
        raise Stop(
            Exit.DETACHED,
            f"interrupted while {submission.source} was being submitted; it may have arrived",
            _whether_it_did(submission),
        ) from None
    except Unanswered as lost:
        raise Stop(
            Exit.UNREACHABLE,
            f"{lost}; {submission.source} was being submitted, and the job may have arrived",
            _whether_it_did(submission),
        ) from lost
    show_problems(accepted.warnings, settings)
    return accepted


def _whether_it_did(submission: Submission) -> str:
    # The file is not understood here, so its name is known only where the command line has one.
    named = f" {submission.name}" if submission.name else ""
    where = f" -n {submission.namespace}" if submission.namespace else ""
    return f"`regatta get{named}{where}` shows whether it did, and `regatta stop` ends it."


def _refuse_local_options(options: Mapping[str, Any]) -> None:
    for name, (option, instead) in _LOCAL_ONLY.items():
        if options[name] and options[name] != "none":
            raise Stop(
                Exit.INVALID,
                f"{option} is about jobs on this machine; on a cluster {instead}",
                f"Leave {option} out.",
            )


def read_job_file(file: str) -> tuple[str, str, str]:
    """The text, what to call it in messages, and the folder that its relative paths start at."""
    if file == "-":
        return _text(sys.stdin.buffer, "standard input"), "-", absolute(".")
    path = Path(file)
    if path.is_dir():
        found = [path / name for name in FILE_NAMES if (path / name).is_file()]
        if not found:
            raise Stop(
                Exit.INVALID,
                f"{file} is a folder without a {FILE_NAMES[0]}",
                "Name the job file itself.",
            )
        path = found[0]
    try:
        with path.open("rb") as opened:
            text = _text(opened, str(path))
            regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
        # A pipe (`<(...)`) lies in /proc, where nobody wants to run.
        return text, str(path), absolute(path.parent if regular else ".")
    except OSError as error:
        raise Stop(
            Exit.INVALID,
            f"{file} cannot be read: {error.strerror}",
            "Give the path of a job file, a folder that holds job.yaml, or - for standard input.",
        ) from error


def _text(opened: IO[bytes], source: str) -> str:
    raw = opened.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Stop(
            Exit.INVALID,
            f"{source} is larger than {MAX_BYTES // 1024} KiB, the most that a job file may have",
            "Name the job file; data belongs into other files.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(
            Exit.INVALID,
            f"{source} is not UTF-8 text (byte {error.start} is {raw[error.start]:#04x})",
            "Save the file as UTF-8.",
        ) from error


def absolute(path: str | Path) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError as gone:
        raise Stop(
            Exit.INVALID,
            "the current directory does not exist any more",
            "Change to another one (`cd`), and try again.",
        ) from gone


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise Stop(
                Exit.INVALID,
                f"{option} {pair!r} is not NAME=VALUE",
                f"Write it as `{option} {name or 'NAME'}=VALUE`.",
            )
        found[name] = value
    return found


def read_env_file(path: Path) -> dict[str, str]:
    """`K=V` lines; blank lines and `#` lines are skipped, one pair of quotes is removed."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(Exit.INVALID, f"--env-file {path} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise Stop(
                Exit.INVALID,
                f"--env-file {path}, line {number}: {line.strip()!r} is not NAME=VALUE",
                "Write one NAME=VALUE per line; lines that start with # are comments.",
            )
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name.strip()] = value
    return found


def _interpreter(given: str | None) -> str | None:
    # A bare name is looked up on the PATH of this shell; a path is relative to this directory.
    if given is None or os.sep not in given:
        return given
    return absolute(os.path.expanduser(given))
