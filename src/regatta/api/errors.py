"""Everything that can be refused or go wrong between a person and their job: one family.

Each kind is something a caller can act on. Its `code` is stable, for machines, and the same through
every door; the message is a sentence for people that says what to do next. A server sends code,
message and problems, and its client raises the same kind again (`error_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from regatta.api.problems import Problem


class RegattaError(Exception):
    code: str = "Error"
    #: What it is in HTTP.
    status: int = 400

    #: Whole seconds after which to ask again, where that is known.
    retry_after: int | None = None

    _by_code: ClassVar[dict[str, type[RegattaError]]] = {}

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = problems

    def __init_subclass__(cls) -> None:
        # A kind that only narrows another keeps its parent's code, and the parent stands for both.
        if "code" in cls.__dict__:
            RegattaError._by_code[cls.code] = cls


def error_of(
    code: str, status: int, message: str, problems: Sequence[Problem] = ()
) -> RegattaError:
    """The error that a server told of: of its own kind, or of the general one for a later release's
    code."""
    kind = RegattaError._by_code.get(code)
    if kind is InvalidJob:
        return InvalidJob(list(problems) or [Problem("", message)])
    error = (kind or RegattaError)(message, problems)
    error.code, error.status = code, status
    return error


# What was asked for


class BadRequest(RegattaError):
    """The request itself could not be read."""

    code, status = "BadRequest", 400


class InvalidJob(RegattaError):
    """A file or document that cannot become a job. Carries every problem at once."""

    code, status = "InvalidJob", 422

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)), problems)


class InvalidConfig(InvalidJob):
    """The same of a job config of OpenPAI's: problems have the paths of its own fields."""

    def __init__(self, problems: list[Problem], protocol: Literal[1, 2]) -> None:
        super().__init__(problems)
        self.protocol = protocol

    @property
    def openpai_code(self) -> str:
        """What OpenPAI's own API calls it."""
        return "InvalidParametersError" if self.protocol == 1 else "InvalidProtocolError"


class ShellRefused(RegattaError):
    """What a submission says of its author's machine means nothing where it would run."""

    code, status = "ShellRefused", 422


class NeverFits(RegattaError):
    """More than there is, however long it waits."""

    code, status = "NeverFits", 422


class PreflightFailed(RegattaError):
    code, status = "PreflightFailed", 422


class PatternTooSlow(RegattaError):
    """The search was given up."""

    code, status = "PatternTooSlow", 422


# The job that was meant


class JobNotFound(RegattaError):
    code, status = "JobNotFound", 404


class JobIsLive(RegattaError):
    """A job of that name has not finished; `--replace` would end it."""

    code, status = "JobIsLive", 409


class NotPossible(RegattaError):
    """The job is in no state for that: resuming what runs, scaling what has finished."""

    code, status = "NotPossible", 409


# The engine of this machine


class DiskFull(RegattaError):
    """Nothing was changed."""

    code, status = "DiskFull", 507


class DatabaseLocked(RegattaError):
    """Another program holds the job database. Nothing was written."""

    code, status = "DatabaseLocked", 503


class NoPorts(RegattaError):
    """Every port block is reserved or taken."""

    code, status = "NoPorts", 503


class BadSetting(RegattaError):
    """An environment variable of the server, or its file, says something that cannot be."""

    code, status = "BadSetting", 500


class HomeRefused(RegattaError):
    """The state folder is in a place where state would not be safe."""

    code, status = "HomeRefused", 500


class EngineIsRunning(RegattaError):
    """Another engine already works on this home."""

    code, status = "EngineIsRunning", 409


class NewerDatabase(RegattaError):
    """The state was written by a later release than this one."""

    code, status = "NewerDatabase", 500


class BrokenDatabase(RegattaError):
    """The file is there, and SQLite cannot read it."""

    code, status = "BrokenDatabase", 500


# A team's records


class RecordsAway(RegattaError):
    """The team's database does not answer just now. Jobs run on, and it is tried again."""

    code, status = "RecordsAway", 503


class RecordsFull(RecordsAway):
    """Nothing can be written there until somebody makes room."""


class RecordsInUse(RegattaError):
    """Another server keeps its records in this database."""

    code, status = "RecordsInUse", 409


class NameTaken(RegattaError):
    """Its owner has a job of that name on record, live or over."""

    code, status = "NameTaken", 409


class NoRecord(RegattaError):
    """No job of that name is on record."""

    code, status = "NoRecord", 404


# A cluster


class NoCluster(RegattaError):
    """How to reach a cluster, or as whom, is not settled."""

    code, status = "NoCluster", 400


class ClusterUnreachable(RegattaError):
    code, status = "ClusterUnreachable", 503


class NotSignedIn(RegattaError):
    code, status = "NotSignedIn", 401


class NotAllowed(RegattaError):
    code, status = "NotAllowed", 403


class ForeignHost(RegattaError):
    """A request for a name that is not the server's own."""

    code, status = "ForeignHost", 403


class NotInstalled(RegattaError):
    code, status = "NotInstalled", 404


class ClusterRefused(RegattaError):
    """Any other no: an admission rule, a quota, a conflict."""

    code, status = "ClusterRefused", 422


# A server, and the way to it


class BadAddress(RegattaError):
    """What names a server, or opens it, cannot be one."""

    code = "BadAddress"


class Unauthorized(RegattaError):
    code, status = "Unauthorized", 401


class NotRegatta(RegattaError):
    """What answers there is something else, or of a version that we do not understand."""

    code, status = "NotRegatta", 502


class InternalError(RegattaError):
    code, status = "InternalError", 500


class ServerBusy(RegattaError):
    """The server has no room for it just now; nothing was done."""

    code, status, retry_after = "ServerBusy", 503, 5


class TooMuchAtOnce(RegattaError):
    """One caller has too much underway; nothing was done."""

    #: OpenPAI's word for all that is too much of one caller.
    code, status, retry_after = "TooManyRequestsError", 429, 5


class ServerUnreachable(RegattaError):
    """No server answers, and none could be started."""

    code, status = "ServerUnreachable", 503


class Unanswered(ServerUnreachable):
    """The request went out and no answer came back: it may have been carried out or not."""


class ServerHangs(ServerUnreachable):
    """The server's process is there and says nothing. Only a person can end it."""


class ServerStopped(ServerUnreachable):
    """Somebody ended the server on purpose; whoever only follows a job does not start another."""


class TeamServerDown(ServerUnreachable):
    """The jobs here are a team's, and commands do not start its server."""


class WrongDoor(ServerUnreachable):
    """Somebody answers there, by a certificate that is not trusted or by the other one of HTTP and
    HTTPS. Only a person can change that."""


class NoServerHere(ServerUnreachable):
    """What a server is made of is not installed."""


class UnusableFile(ServerUnreachable):
    """A file of the server's that this user cannot read or write."""
