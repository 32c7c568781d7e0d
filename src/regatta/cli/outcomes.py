"""How a command ends: exit codes, and what a person is told when something went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from regatta.api.errors import (
    ClusterUnreachable,
    DatabaseLocked,
    DiskFull,
    ForeignHost,
    InternalError,
    InvalidJob,
    JobIsLive,
    JobNotFound,
    NameTaken,
    NeverFits,
    NoCluster,
    NoPorts,
    NoRecord,
    NoServerHere,
    NotAllowed,
    NotInstalled,
    NotPossible,
    NotRegatta,
    NotSignedIn,
    PreflightFailed,
    RecordsAway,
    RecordsInUse,
    RegattaError,
    ServerBusy,
    ServerHangs,
    ServerStopped,
    ServerUnreachable,
    ShellRefused,
    TeamServerDown,
    Unauthorized,
    UnusableFile,
    WrongDoor,
)
from regatta.api.job import Phase
from regatta.api.problems import Problem, how_many


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


class Ending(NamedTuple):
    """What a kind of error means for a command: its exit code, and what to do next where the
    error's own sentence does not say it."""

    code: Exit = Exit.INVALID
    hint: str = ""


#: By the error's code; any other is the default ending.
ENDINGS = {
    JobNotFound.code: Ending(Exit.CONFLICT),
    JobIsLive.code: Ending(Exit.CONFLICT),
    NotPossible.code: Ending(
        Exit.CONFLICT, "`regatta describe` shows a job's state, its roles and their sizes."
    ),
    InvalidJob.code: Ending(
        hint="Correct it and try again; `regatta validate` checks it and starts nothing."
    ),
    NeverFits.code: Ending(hint="`regatta top` shows what this machine has."),
    PreflightFailed.code: Ending(
        hint="Where a check is mistaken, `--no-preflight` submits without them."
    ),
    InternalError.code: Ending(Exit.FAILED),
    DiskFull.code: Ending(Exit.FAILED),
    DatabaseLocked.code: Ending(Exit.FAILED),
    NoPorts.code: Ending(Exit.FAILED),
    ServerUnreachable.code: Ending(
        Exit.UNREACHABLE, "`regatta server status` says where it is looked for."
    ),
    ServerBusy.code: Ending(Exit.UNREACHABLE),
    Unauthorized.code: Ending(Exit.UNREACHABLE),
    NotRegatta.code: Ending(Exit.UNREACHABLE),
    ForeignHost.code: Ending(Exit.UNREACHABLE),
    NoCluster.code: Ending(
        hint="--kubeconfig and --context name a cluster; --engine local is this machine."
    ),
    ClusterUnreachable.code: Ending(
        Exit.UNREACHABLE,
        "`kubectl cluster-info` asks the same cluster; --context names another.",
    ),
    NotSignedIn.code: Ending(Exit.UNREACHABLE),
    NotAllowed.code: Ending(Exit.UNREACHABLE),
    RecordsInUse.code: Ending(Exit.CONFLICT),
    RecordsAway.code: Ending(Exit.UNREACHABLE),
    NameTaken.code: Ending(Exit.CONFLICT),
    NoRecord.code: Ending(Exit.CONFLICT),
    NotInstalled.code: Ending(Exit.UNREACHABLE),
    # Of accounts, in the words of a team's server.
    "NoUserError": Ending(Exit.CONFLICT, "`regatta users list` lists those there are."),
    "NoGroupError": Ending(Exit.CONFLICT, "`regatta groups list` lists those there are."),
    "ConflictUserError": Ending(Exit.CONFLICT),
    "NoVirtualClusterError": Ending(
        hint="`regatta whoami` says which are yours; `team.virtualClusters` in the server's "
        "config.yaml says which there are."
    ),
    "RemoveAdminError": Ending(hint="`regatta users demote NAME` comes first."),
    "ConflictGroupError": Ending(Exit.CONFLICT),
    "IncorrectPasswordError": Ending(Exit.UNREACHABLE),
    "TooManyRequestsError": Ending(Exit.UNREACHABLE),
}


_SAY_IT_THEMSELVES = (
    ServerHangs,
    ServerStopped,
    TeamServerDown,
    WrongDoor,
    NoServerHere,
    UnusableFile,
)


class Stop(Exception):
    """Ends the command with a code and, perhaps, a message that says what to do next."""

    def __init__(
        self, code: Exit, message: str = "", hint: str = "", problems: Sequence[Problem] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.problems = tuple(problems)


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


def report(error: Stop | RegattaError, server: str | None = None) -> Report:
    """`server` is the address of one that the person named."""
    if isinstance(error, Stop):
        return Report(error.code, error.message, error.problems, error.hint)
    code, hint = ENDINGS.get(error.code, Ending())
    # Their own sentences say what to do.
    if isinstance(error, _SAY_IT_THEMSELVES):
        hint = ""
    elif server and isinstance(error, ServerUnreachable):
        hint = "Check the address, and that `regatta serve` runs there; --server names another."
    message = str(error)
    if isinstance(error, Unauthorized):
        from regatta.cli.sign_in_trouble import not_let_in

        message, hint = not_let_in(message, server)
    if isinstance(error, InvalidJob):  # whose message is its problems
        message = how_many(error.problems)
    if isinstance(error, ShellRefused):  # whose message says all of them
        named = " and ".join(problem.path for problem in error.problems)
        return Report(code, message, hint=f"Leave {named or 'it'} out.")
    return Report(code, message, tuple(error.problems), hint)
