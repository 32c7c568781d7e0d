"""What can go wrong between a door and the server, as kinds a caller can act on."""

from __future__ import annotations

from regatta.api.problems import Problem


class ClientError(Exception):
    """Anything this package raises. The message is a sentence for a person."""


class ServerUnreachable(ClientError):
    """No server answers, and none could be started."""


class Unanswered(ServerUnreachable):
    """The request went out and no answer came back: it may have been carried out or not."""


class ServerHangs(ServerUnreachable):
    """The server's process is there and says nothing. Only a person can end it."""


class UnusableFile(ServerUnreachable):
    """A file of the server's that this user cannot read or write."""


class Refused(ClientError):
    """The server answered no. `code` is stable, for machines."""

    def __init__(
        self, status: int, code: str, message: str, problems: tuple[Problem, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.problems = problems
