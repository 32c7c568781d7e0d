"""From a command line to a submission, and to the shell that it was said in."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import click
import msgspec

from regatta.cli.settings import Settings
from regatta.cli.submit.env_file import pairs, read_env_file
from regatta.cli.submit.jobfile import absolute, read_job_file
from regatta.cli.submit.role_commands import by_role
from regatta.engines.base import Shell, Submission
from regatta.engines.local.replicas.variables import inherited, inherited_by_client

_JOB_OPTIONS = (
    click.option("--name", metavar="NAME", help="Run under another name."),
    click.option("--command", "commands", multiple=True, metavar="LINE", callback=by_role,
                 help="What every replica runs, in place of the file's command and args."),
    click.option("--role", "roles", multiple=True, metavar="ROLE",
                 help="Before a --command: it is for this role alone."),
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
)  # fmt: skip
_SUBMIT_OPTIONS = (
    click.argument("file", metavar="FILE", type=click.Path()),
    *_JOB_OPTIONS,
    click.option("--replace", is_flag=True, help="End a live job of the same name first."),
    click.option("--dry-run", is_flag=True,
                 help="Print the pods, environment and ports that would be created; "
                      "--dry-run=server asks a cluster's API server."),
    click.option("--dry-run-by-server", is_flag=True, hidden=True),
)  # fmt: skip


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a command line may say of a job."""
    return _with(_JOB_OPTIONS, function)


def submission_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, the file, and how it is handed in."""
    return _with(_SUBMIT_OPTIONS, function)


def _with(options: tuple[Any, ...], function: Callable[..., Any]) -> Callable[..., Any]:
    return reduce(lambda wrapped, option: option(wrapped), reversed(options), function)


def read_options(settings: Settings, options: Mapping[str, Any]) -> tuple[Submission, Shell | None]:
    """What the parsed options above ask for."""

    def takes_shell() -> bool:
        return settings.engine().traits().takes_shell

    return read_job_options(settings, options["file"], options, takes_shell)


def read_job_options(
    settings: Settings, file: str, options: Mapping[str, Any], takes_shell: Callable[[], bool]
) -> tuple[Submission, Shell | None]:
    """Whether the engine takes a shell is asked last: what cannot be read needs no server."""
    text, source, folder = read_job_file(file)
    env: dict[str, str] = {}
    for file in options["env_file"]:
        env.update(read_env_file(Path(file)))
    env.update(pairs("--env", options["env"]))
    submission = Submission(
        text=text,
        source=source,
        name=options["name"],
        namespace=settings.named_namespace,
        env=env,
        sets=tuple(options["sets"]),
        commands=options["commands"],
        strict=options["strict"],
        replace=options.get("replace", False),
        # Should its answer be lost, it can be sent again and is still one.
        key=os.urandom(16).hex(),
        user=_login(),
        default_fs_uri=os.environ.get("PAI_DEFAULT_FS_URI", ""),
    )
    return submission, _shell(options, folder, takes_shell())


def _login() -> str:
    """Who this is, as far as the system can tell."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a number without a name, as containers have
        return os.environ.get("USER", "")


def _shell(options: Mapping[str, Any], folder: str, taken: bool) -> Shell | None:
    """The whole of it where the engine takes one. Else only what the person said about it, most of
    which the engine refuses by name: nothing that was asked for is passed over."""
    said = Shell(
        python=_interpreter(options["python"]),
        runtime=options["runtime"],
        volumes={
            name: absolute(place) for name, place in pairs("--volume", options["volumes"]).items()
        },
        no_gpu=options["no_gpu"],
        no_preflight=options["no_preflight"],
    )
    if options["workdir"]:
        said = msgspec.structs.replace(said, directory=absolute(options["workdir"]))
    if not taken:
        return None if said == Shell() else said
    return msgspec.structs.replace(
        said,
        directory=absolute(options["workdir"] or folder),
        environment=(inherited if said.runtime == "none" else inherited_by_client)(os.environ),
    )


def _interpreter(given: str | None) -> str | None:
    # A bare name is looked up on the PATH of this shell; a path is relative to this directory.
    if given is None or os.sep not in given:
        return given
    return absolute(os.path.expanduser(given))
