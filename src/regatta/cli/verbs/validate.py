"""`regatta validate`: every problem of a job file, without a server."""

from __future__ import annotations

import sys
from typing import Any

import click

from regatta.api.errors import InvalidJob
from regatta.api.problems import Problem, how_many
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.explain import show_problems
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.submit.env_file import pairs
from regatta.cli.submit.jobfile import read_job_file


@verb("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--strict", is_flag=True, help="Unknown fields in pod templates are errors.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Change a field first.")
@click.option("--env", "env", multiple=True, metavar="K=V", help="Set a variable first.")
@click.option("--name", metavar="NAME", help="Check under another name.")
@output_option("json", "yaml")
@pass_settings
def command(
    settings: Settings,
    files: tuple[str, ...],
    strict: bool,
    sets: tuple[str, ...],
    env: tuple[str, ...],
    name: str | None,
    output: str | None,
) -> Exit:
    """Check job files and print every problem with its place. Needs no server.

    Exits with 0 when all files are good (warnings allowed), else with 2.
    """
    overrides = {"name": name, "sets": sets, "env": pairs("--env", env)}
    results = [(file, *_check(file, strict, overrides)) for file in files]
    if output:
        shown = [
            {"file": file, "valid": valid, "problems": plain(problems)}
            for file, valid, problems, _ in results
        ]
        print(dump(shown if len(shown) > 1 else shown[0], output))
    else:
        for file, valid, problems, about in results:
            sys.stdout.flush()
            if valid:
                print(f"{file}: {about}", flush=True)
            else:
                print(f"{file}: {how_many(problems)}", file=sys.stderr)
            show_problems(problems, settings)
    return Exit.OK if all(valid for _, valid, _, _ in results) else Exit.INVALID


def _check(file: str, strict: bool, overrides: dict[str, Any]) -> tuple[bool, list[Problem], str]:
    from regatta.api.load import load_job

    try:
        text, source, _ = read_job_file(file)
        loaded = load_job(text, source=source, strict=strict, **overrides)
    except InvalidJob as invalid:
        return False, list(invalid.problems), ""
    except Stop as unread:  # the other files have results all the same
        return False, [Problem("", f"{unread.message}. {unread.hint}")], ""
    spec = loaded.job.spec
    count = spec.replicas
    about = f"valid, a {spec.mode} job of {count} replica{'' if count == 1 else 's'}"
    return True, list(loaded.warnings), about
