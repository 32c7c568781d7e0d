"""`regatta validate`: every problem of a job file that `run` would tell, and nothing started."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NamedTuple

import click

from regatta.api.errors import InvalidJob, PreflightFailed, RegattaError
from regatta.api.job import Job
from regatta.api.problems import Problem, how_many
from regatta.cli.engine_choice import LOCAL
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.explain import show_problems
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.submit.command_line import job_options, read_job_options
from regatta.cli.submit.offer import as_run, offer
from regatta.cli.submit.role_commands import RoleCommands
from regatta.engines.base import Shell, Submission

#: In HTTP's words: the request was understood, and what it brings cannot be.
JUDGED = 422


class Result(NamedTuple):
    valid: bool
    problems: list[Problem]
    about: str = ""
    hint: str = ""
    #: Why nobody could look at it.
    unread: str = ""


@verb("validate", RoleCommands)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@job_options
@output_option("json", "yaml")
@pass_settings
def command(
    settings: Settings, /, files: tuple[str, ...], output: str | None, **options: Any
) -> Exit:
    """Check job files as `run` would, with the same options, and start nothing.

    On this machine that includes commands, volumes, PaddlePaddle and whether the job fits; with
    --engine kubernetes, what a cluster needs. Needs neither a server nor a cluster.

    Exits with 0 when all files are good (warnings allowed), else with 2.
    """
    results = [(file, _check(settings, file, files, options)) for file in files]
    if output:
        shown = [
            {"file": file, "valid": result.valid, "problems": plain(result.problems)}
            for file, result in results
        ]
        print(dump(shown if len(shown) > 1 else shown[0], output))
    else:
        for file, result in results:
            _show(file, result, settings)
    return Exit.OK if all(result.valid for _, result in results) else Exit.INVALID


def _show(file: str, result: Result, settings: Settings) -> None:
    sys.stdout.flush()
    if result.valid:
        print(f"{file}: {result.about}", flush=True)
    elif result.unread:
        print(result.unread, file=sys.stderr)
        return
    else:
        print(f"{file}: {how_many(result.problems)}", file=sys.stderr)
    show_problems(result.problems, settings)
    if result.hint:
        print(f"  {result.hint}", file=sys.stderr)


def _check(
    settings: Settings, file: str, files: tuple[str, ...], options: dict[str, Any]
) -> Result:
    submission: Submission | None = None
    shell: Shell | None = None
    try:
        taken = partial(_takes_shell, settings)
        submission, shell = read_job_options(settings, file, options, taken)
        job, warnings = _asked(settings, submission, shell)
    except Stop as unread:  # the other files have results all the same
        why = f"{unread.message}. {unread.hint}"
        return Result(False, [Problem("", why)], unread=why)
    except RegattaError as refused:
        if refused.status != JUDGED:
            raise  # nobody looked at the file
        hint = ""
        if submission is not None:
            hint = offer(refused, submission, shell, as_run(settings.words, file, files))
        if isinstance(refused, PreflightFailed) and not hint:
            hint = (
                "Where a check is mistaken, `--no-preflight` leaves them out; `--engine "
                "kubernetes` checks the file for a cluster."
            )
        told = isinstance(refused, InvalidJob | PreflightFailed)
        first = [] if told else [Problem("", str(refused))]
        return Result(False, [*first, *refused.problems], hint=hint)
    spec = job.spec
    count = spec.replicas
    about = f"valid, a {spec.mode} job of {count} replica{'' if count == 1 else 's'}"
    return Result(True, list(warnings), about)


def _takes_shell(settings: Settings) -> bool:
    if settings.server and settings.chosen.engine == LOCAL:
        return settings.engine().traits().takes_shell
    return settings.chosen.engine == LOCAL


def _asked(
    settings: Settings, submission: Submission, shell: Shell | None
) -> tuple[Job, tuple[Problem, ...]]:
    """A server that is named is asked itself: only it knows where it would run the job."""
    if settings.server and settings.chosen.engine == LOCAL:
        preview = settings.engine().preview(submission, shell)
        return preview.job, preview.warnings
    return settings.chosen.check(submission, shell)
