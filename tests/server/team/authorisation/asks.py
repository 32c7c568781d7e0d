"""Whom an operation may be for, who is refused then and how, and how it is asked for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from regatta.server.accounts.visibility import Visibility
from tests.server.team.authorisation.world import As, World, sees

Place = Mapping[str, str]


class For(Enum):
    """Whom it is for. What is a job's is the owner's job here."""

    EVERYBODY = auto()
    THE_SIGNED_IN = auto()
    PERSONS = auto()  # who have no application's token
    ADMINS = auto()
    #: About an account: its own user, or an admin.
    THE_USER = auto()
    THOSE_WHO_SEE = auto()
    THOSE_WHO_CHANGE = auto()
    #: Everybody gets what they see: of everybody, or of the owner alone.
    LISTS = auto()
    LISTS_OF_OWNER = auto()
    #: All of the owner's jobs at once; and what goes into the owner's namespace.
    WHO_CLEARS = auto()
    WHO_FILLS = auto()
    #: About a token of the owner's.
    THE_HOLDER = auto()


_OWNS = (As.OWNER, As.APPLICATION)


def refusal_of(whom: For, who: As, visibility: Visibility) -> int | None:
    """The status that `who` must meet; None: it is for them."""
    if whom is For.EVERYBODY:
        return None
    if not who.known:
        return 401
    allowed = {
        For.THE_SIGNED_IN: True,
        For.LISTS: True,
        For.LISTS_OF_OWNER: True,
        For.PERSONS: who is not As.APPLICATION,
        For.ADMINS: who is As.ADMIN,
        For.THE_USER: who in (As.OWNER, As.ADMIN),
        For.WHO_CLEARS: who in (*_OWNS, As.ADMIN),
        For.WHO_FILLS: who in _OWNS,
        For.THE_HOLDER: who is As.OWNER,
        For.THOSE_WHO_SEE: True,
        For.THOSE_WHO_CHANGE: who in (*_OWNS, As.ADMIN),
    }[whom]
    about_a_job = whom in (For.THOSE_WHO_SEE, For.THOSE_WHO_CHANGE)
    if about_a_job and not sees(who, As.OWNER.user, visibility):
        return 404
    return None if allowed else 403


def _nothing(_: Place) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Ask:
    whom: For
    #: What those hear for whom it is.
    ok: int = 200
    query: str = ""
    #: What stands for the braces of its path, where that is not what it is called there.
    braces: Mapping[str, str] = field(default_factory=dict)
    #: How the request is sent, as `TeamServer.ask` takes it.
    sends: Callable[[Place], dict[str, Any]] = _nothing
    #: What is used up by those for whom it is; the others try it on what stays.
    spends: Callable[[World], dict[str, str]] = lambda _: {}
    #: It may use up the token that is shown: each person shows one more of theirs.
    spends_token: bool = False
    #: Its account is used up: the owner is whoever has it.
    spends_owner: bool = False
    #: A stream that does not end: what the last word is that matters.
    until: str = ""
    #: Ends the server: those for whom it is do so in a test of its own.
    ends_server: bool = False
    #: What those find in the answer who see the job.
    shows: str = "{name}"
    #: What only admins find in the answer.
    for_admins: str = ""


Table = Mapping[tuple[str, str], tuple[Ask, ...]]
