"""How a command ends: exit codes, and what a person is told when something went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from regatta.api.errors import (
    InvalidJob,
    RegattaError,
    ServerHangs,
    ServerUnreachable,
    UnusableFile,
)
from regatta.api.job import Phase
from regatta.api.problems import Problem


class Exit(IntEnum):
    """Documented in docs/cli.md; scripts rely on them."""

    OK = 0
    FAILED = 1
    INVALID = 2
    STOPPED = 3
    CONFLICT = 4
    UNREACHABLE = 5
    TIMEOUT = 124
    DETACHED = 130


BY_PHASE = {Phase.COMPLETED: Exit.OK, Phase.FAILED: Exit.FAILED, Phase.ABORTED: Exit.STOPPED}

_BY_CODE = {
    "JobNotFound": Exit.CONFLICT,
    "JobIsLive": Exit.CONFLICT,
    "NotPossible": Exit.CONFLICT,
    "Unauthorized": Exit.UNREACHABLE,
    "ForeignHost": Exit.UNREACHABLE,
    "NotRegatta": Exit.UNREACHABLE,
    "InternalError": Exit.FAILED,
    "ClusterUnreachable": Exit.UNREACHABLE,
    "NotSignedIn": Exit.UNREACHABLE,
    "NotAllowed": Exit.UNREACHABLE,
    "NotInstalled": Exit.UNREACHABLE,
}

#: Where the engine's own sentence does not say it already.
_NEXT_BY_CODE = {
    "NotPossible": "`regatta describe` shows the state a job is in.",
    "InvalidJob": "Correct the file and try again; `regatta validate FILE` checks it offline.",
    "NeverFits": "Ask for less in the job file; `regatta top` shows what this machine has.",
    "PreflightFailed": "`--no-preflight` submits without these checks.",
    "Unauthorized": "Set REGATTA_TOKEN to the server's token.",
    "NoCluster": "--kubeconfig and --context name a cluster; --engine local is this machine.",
    "ClusterUnreachable": "`kubectl cluster-info` asks the same cluster; --context names another.",
}


class Stop(Exception):
    """Ends the command with a code and, perhaps, a message that says what to do next."""

    def __init__(self, code: Exit, message: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def replaced(name: str, named: str) -> Stop:
    """For a command that stays with one job and meets another under its name."""
    return Stop(
        Exit.CONFLICT,
        f"job {name} was replaced by another of the same name meanwhile",
        f"`regatta logs -f {named}` follows the new one.",
    )


class Report:
    """An error as it is shown: a sentence, the problems, and what to do next."""

    def __init__(
        self, code: Exit, message: str, problems: tuple[Problem, ...] = (), hint: str = ""
    ) -> None:
        self.code = code
        self.message = message
        self.problems = problems
        self.hint = hint


def report(error: Stop | RegattaError) -> Report:
    match error:
        case Stop():
            return Report(error.code, error.message, hint=error.hint)
        case InvalidJob():
            hint = _NEXT_BY_CODE["InvalidJob"]
            problems = error.problems
            return Report(Exit.INVALID, invalid_message(problems), tuple(problems), hint)
        case ServerHangs() | UnusableFile():  # their own sentences say what to do
            return Report(Exit.UNREACHABLE, str(error))
        case ServerUnreachable():
            hint = "`regatta server status` says where it is looked for."
            return Report(Exit.UNREACHABLE, str(error), hint=hint)
        case _:
            code = _BY_CODE.get(error.code, Exit.INVALID)
            hint = _NEXT_BY_CODE.get(error.code, "")
            return Report(code, str(error), tuple(error.problems), hint)


def invalid_message(problems: Sequence[Problem]) -> str:
    count = sum(problem.severity == "error" for problem in problems)
    return f"the job has {count} problem{'' if count == 1 else 's'}"
