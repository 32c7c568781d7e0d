"""The `regatta` command: which verbs there are, and how each one ends.

Start-up time is part of the interface. Verbs are modules that are imported on use; this module
and what it imports must stay free of pydantic, rich, FastAPI and asyncio.
"""

from __future__ import annotations

import os
import sys

try:
    import errno
    import importlib
    import io
    import signal
    from typing import Any

    import click

    from regatta.cli.settings import HELP_NAMES, ReaderLeft, Settings, shared_options
except KeyboardInterrupt:  # Ctrl-C before there is anybody to handle it
    sys.exit(130)

VERBS = {
    "run": "Submit a job, follow its logs, exit with its result.",
    "submit": "Submit a job and return.",
    "validate": "Check job files as run would; start nothing.",
    "get": "List jobs, or show one.",
    "describe": "Show everything about a job.",
    "history": "List runs, also of jobs that were replaced.",
    "logs": "Print the logs of a job's replicas.",
    "stop": "Stop jobs; records and logs stay.",
    "delete": "Delete jobs with their records and logs.",
    "scale": "Change a role's number of replicas.",
    "suspend": "Stop a job's replicas until it is resumed.",
    "resume": "Let a suspended job run again.",
    "events": "Show what happened to jobs.",
    "top": "Show what the machine and its jobs use.",
    "wait": "Wait until a job is in a given state.",
    "serve": "Run the server in the foreground.",
    "server": "Start, stop or look at the background server.",
    "users": "Look after the accounts of a team's server.",
    "groups": "Look after the groups of a team's server.",
    "login": "Sign in at a team's server.",
    "logout": "End your sign-in at a team's server.",
    "whoami": "Show as whom a team's server knows you.",
    "password": "Change your password at a team's server.",
    "tokens": "List, make and revoke your tokens.",
    "operator": "Look after the PaddleJobs of a Kubernetes cluster.",
    "version": "Print the versions of client and server.",
    "completion": "Print a shell completion script.",
}


#: Errors of writing; where they name no file it was the output.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Verbs(click.Group):
    """A group that knows its verbs' names and one-line helps without importing them."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        return super().parse_args(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"regatta.cli.verbs.{name}").command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        wanted = args[0] if args else ""
        if wanted and not wanted.startswith("-") and wanted not in VERBS:
            raise click.UsageError(f"there is no verb {wanted!r}{_nearest(wanted)}", context)
        return super().resolve_command(context, args)


@click.group(cls=Verbs, context_settings=HELP_NAMES, invoke_without_command=True)
@click.option("--version", "version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(context: click.Context, version: bool) -> None:
    """Runs distributed PaddlePaddle training jobs: one job file, on this machine or a cluster."""
    context.ensure_object(Settings)
    if version:
        from regatta import __version__

        click.echo(f"regatta {__version__}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


cli.params += shared_options()


def main() -> None:
    """The entry point: runs the command and exits with its code."""
    try:
        _prepare_streams()
        code = run()
        lost = _flush()
        if isinstance(lost, BrokenPipeError) or (lost is not None and not code):
            code = _unwritten(lost)
        # What comes now is the interpreter's end, which would answer a Ctrl-C with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def run(args: list[str] | None = None) -> int:
    """The exit code of a command line. Failures that can be expected become sentences."""
    settings = Settings()
    settings.words = sys.argv[1:] if args is None else list(args)
    try:
        # Verbs return their exit code, or nothing when all went well.
        outcome = cli.main(args, prog_name="regatta", standalone_mode=False, obj=settings)
        return int(outcome or 0)
    except click.UsageError as wrong:
        return _usage(wrong)
    except click.ClickException as wrong:
        click.echo(f"error: {wrong.format_message()}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except ReaderLeft:
        return 141
    except Exception as error:  # noqa: BLE001 - the last resort, see `explain_unexpected`
        return _explained(error, settings)
    finally:
        settings.close()


def _usage(wrong: click.UsageError) -> int:
    where = wrong.ctx.command_path if wrong.ctx else "regatta"
    click.echo(f"error: {wrong.format_message()}", err=True)
    click.echo(f"  `{where} --help` shows how it is used.", err=True)
    return 2


def _explained(error: Exception, settings: Settings) -> int:
    from regatta.api.errors import RegattaError
    from regatta.cli.outcomes import Stop
    from regatta.cli.show.explain import explain, explain_unexpected

    if isinstance(error, Stop | RegattaError):
        return explain(error, settings)
    if isinstance(error, OSError) and error.errno in _NO_ROOM and not error.filename:
        return _unwritten(error)
    return explain_unexpected(error, settings)


def _prepare_streams() -> None:
    """A stream that the shell has closed goes nowhere: else the next file that is opened would
    get its number, and what is printed. What cannot be encoded is no reason to stop printing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _flush() -> OSError | None:
    """What keeps the output from being written. The rest of it then goes nowhere, or the
    interpreter's own last flush would complain."""
    try:
        sys.stdout.flush()
    except OSError as lost:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return lost
    return None


def _unwritten(lost: OSError) -> int:
    if isinstance(lost, BrokenPipeError):
        return 141
    click.echo(f"error: the output cannot be written: {lost.strerror}", err=True)
    click.echo("  Make room, or send it somewhere else.", err=True)
    return 1


def _nearest(wanted: str) -> str:
    from difflib import get_close_matches

    from regatta.cli.other_words import other_verb

    other = other_verb(wanted)
    close: list[Any] = [other] if other else get_close_matches(wanted, VERBS, n=1, cutoff=0.6)
    return f"; did you mean `{close[0]}`?" if close else ""


if __name__ == "__main__":
    main()
