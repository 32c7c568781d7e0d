"""The line that runs a job file which was written for another machine, or for an image: the
person's own, and what it lacks here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from regatta.api.errors import NeverFits, RegattaError
from regatta.api.job import EVERY_ROLE, Job
from regatta.api.problems import Problem
from regatta.cli.submit.programs import (
    folders_of,
    paddle_beside,
    shortest,
    start_in,
    words_of,
)
from regatta.engines.base import Shell, Submission

_LACKS = ".containers[0].command"
#: How a refusal names what may help; the places that its capitals stand for are looked for here.
_ADVICE = re.compile(r"--(?:workdir(?= DIR)|python(?= PATH)|command(?= LINE)|no-gpu\b)")
_VOLUME = re.compile(r"--volume (\S+)=DIR\b")
#: Runs anywhere, and shows what Regatta does for a program.
_NO_PROGRAM = ["env"]


def offer(
    error: RegattaError, submission: Submission, shell: Shell | None, words: list[str]
) -> str:
    """What to do about programs, folders, Pythons and GPUs that the file counts on and that are not
    where it would run; empty where nothing is known. `words` is the command line that was
    refused."""
    problems = [problem for problem in error.problems if problem.severity == "error"]
    if isinstance(error, NeverFits):
        problems.append(Problem("", str(error)))
    advised = {option for problem in problems for option in _advice(problem)}
    if shell is None or not advised:
        return ""
    from regatta.engines.submission import read_submission

    try:
        job = read_submission(submission, shell).job
    except RegattaError:
        return ""  # what else is wrong comes first
    named = (name for problem in problems for name in _VOLUME.findall(problem.message))
    volumes = [name for name in dict.fromkeys(named) if name not in shell.volumes]
    said = _lacking(job, Path(shell.directory), words, submission.commands, advised, volumes)
    if not [word for word in said if word != "--volume" and not word.endswith("=DIR")]:
        return ""
    line = shlex.join([_called(), *_with(words, said)])
    if "-" in words:
        line += " < FILE"  # standard input is used up
    if shlex.join(_NO_PROGRAM) in said:
        return (
            f"There is no program in {shell.directory} that it could mean. Put it there, or name "
            "its folder with --workdir. Until then this line runs, and shows what a replica is "
            f"told:\n      {line}"
        )
    given = {
        "a command": any(problem.path.endswith(_LACKS) for problem in problems),
        "a folder of yours in place of DIR": any(word.endswith("=DIR") for word in said),
        "the rest corrected": not all(_advice(problem) & set(said) for problem in problems),
    }
    clauses = [clause for clause, true in given.items() if true]
    when = f"With {', and '.join(clauses)}{',' * (len(clauses) > 1)}" if clauses else "So"
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


def _advice(problem: Problem) -> set[str]:
    """The options that may help, by what the problem says."""
    if problem.path.endswith(_LACKS):
        return {"--command"}
    volume = {"--volume"} if _VOLUME.search(problem.message) else set()
    return {*_ADVICE.findall(problem.message), *volume}


def _lacking(
    job: Job,
    home: Path,
    words: list[str],
    spoken: Container[str],
    advised: set[str],
    volumes: list[str],
) -> list[str]:
    """The options that the line lacks, of those that were advised."""
    firsts = _firsts(job)
    folder, starts = home, {role: words_of(container) for role, container in firsts.items()}
    said: list[str] = []
    if advised & {"--workdir", "--command"}:
        folder, starts = _found(firsts, home, moves=not _has("--workdir", words))
        commands = {
            role: start
            for role, start in starts.items()
            if not firsts[role].get("command") or start != words_of(firsts[role])
        }
        if any(role in spoken or EVERY_ROLE in spoken for role in commands):
            return []  # what the person said is not said again
        said += _said(commands, everyone=len(commands) == len(firsts))
    if folder != home:
        said += ["--workdir", shortest(folder)]
    if advised & {"--workdir", "--command", "--python"} and not _has("--python", words):
        pythons = (paddle_beside(start, folder) for start in starts.values())
        python = next(filter(None, pythons), None)
        said += ["--python", shortest(python)] if python else []
    if "--no-gpu" in advised:
        said += ["--no-gpu"]
    for name in volumes:
        # A path without a start is one from here.
        there = next((at / name for at in (folder, home, Path()) if (at / name).is_dir()), None)
        said += ["--volume", f"{name}={shortest(there) if there else 'DIR'}"]
    return said


def _found(
    firsts: Mapping[str, dict[str, Any]], home: Path, *, moves: bool
) -> tuple[Path, dict[str, list[str]]]:
    """The first folder where every role has what it starts, and how. Where none has it all, the
    job's own, with something that runs for those that say nothing."""
    images = dict.fromkeys(container.get("image") or "" for container in firsts.values())
    places = [home, *(at for image in images for at in folders_of(image, home) if moves)]
    for place in dict.fromkeys(places):
        starts = {role: start_in(place, role, first) for role, first in firsts.items()}
        if all(starts.values()):
            return place, starts
    return home, {
        role: start_in(home, role, first)
        or (words_of(first) if first.get("command") else _NO_PROGRAM)
        for role, first in firsts.items()
    }


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
