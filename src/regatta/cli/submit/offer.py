"""The line that runs a job file which names only an image: the person's own, and what it lacks."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from regatta.api.errors import InvalidJob, RegattaError
from regatta.api.job import Job
from regatta.cli.submit.programs import folders_of, paddle_beside, program_of, shortest
from regatta.engines.base import Shell, Submission

_LACKS = ".containers[0].command"
#: Runs anywhere, and shows what Regatta does for a program.
_NO_PROGRAM = ["env"]


def offer(error: InvalidJob, submission: Submission, shell: Shell | None, words: list[str]) -> str:
    """What to do about roles that say only which image they are; empty where all say more.
    `words` is the command line that was refused."""
    if shell is None or not any(problem.path.endswith(_LACKS) for problem in error.problems):
        return ""
    from regatta.engines.submission import read_submission

    try:
        job = read_submission(submission, shell).job
    except RegattaError:
        return ""  # what else is wrong comes first
    lacking = {role: container for role, container in _firsts(job).items() if _lacks(container)}
    if not lacking:
        return ""
    line, found = _line(job, lacking, Path(shell.directory), words)
    if not found:
        return (
            f"There is no program in {shell.directory} that it could mean. Put it there, or name "
            "its folder with --workdir. Until then this line runs, and shows what a replica is "
            f"told:\n      {line}"
        )
    errors = [problem for problem in error.problems if problem.severity == "error"]
    alone = all(problem.path.endswith(_LACKS) for problem in errors)
    when = "With a command" if alone else "With a command, and the rest corrected,"
    return f"{when} it runs on this machine:\n      {line}"


def as_run(words: list[str], file: str, files: tuple[str, ...]) -> list[str]:
    """The line that runs one of the files which a `validate` was given."""
    left = list(words)
    left[left.index("validate")] = "run"
    for other in files:
        if other != file:
            left.remove(other)
    for i, word in enumerate(left):
        if word in ("-o", "--output"):
            return [*left[:i], *left[i + 2 :]]
    return left


def _line(
    job: Job, lacking: dict[str, dict[str, Any]], home: Path, words: list[str]
) -> tuple[str, bool]:
    """The line, and whether there is a program for every role."""
    role, first = next(iter(lacking.items()))
    places = [home] if _has("--workdir", words) else folders_of(_image(first), home)
    folder = next((place for place in places if _program(place, role, first)), home)
    commands = {
        role: _program(folder, role, container) or _NO_PROGRAM
        for role, container in lacking.items()
    }
    said = _said(commands, everyone=len(lacking) == len(_firsts(job)))
    if folder != home:
        said += ["--workdir", shortest(folder)]
    if not _has("--python", words):
        python = paddle_beside(next(iter(commands.values())), folder)
        said += ["--python", shortest(python)] if python else []
    line = shlex.join([_called(), *_with(words, said)])
    if "-" in words:
        line += " < FILE"  # standard input is used up
    return line, _NO_PROGRAM not in commands.values()


def _said(commands: dict[str, list[str]], *, everyone: bool) -> list[str]:
    lines = {role: shlex.join(command) for role, command in commands.items()}
    if everyone and len(set(lines.values())) == 1:
        return ["--command", next(iter(lines.values()))]
    return [word for role, line in lines.items() for word in ("--role", role, "--command", line)]


def _with(words: list[str], said: list[str]) -> list[str]:
    """At the end of the options; what stands behind `--` is no option."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *said, *words[at:]]


def _has(option: str, words: list[str]) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in words)


def _called() -> str:
    """`regatta`, or the path that it was started by where the shell does not find it."""
    if os.path.basename(sys.argv[0]) == "regatta" and shutil.which("regatta") is None:
        return sys.argv[0]
    return "regatta"


def _firsts(job: Job) -> dict[str, dict[str, Any]]:
    return {name: role.template["spec"]["containers"][0] for name, role in job.spec.roles().items()}


def _lacks(container: dict[str, Any]) -> bool:
    return not container.get("command")


def _program(folder: Path, role: str, container: dict[str, Any]) -> list[str]:
    args = [str(word) for word in container.get("args") or ()]
    return program_of(folder, role, args, _image(container))


def _image(container: dict[str, Any]) -> str:
    return container.get("image") or ""
