"""What every operation of a team's server is to people: a table, and nothing that acts.

An operation that is not in it fails the tests, as does one in it that the server does not have. One
that can be asked for in several ways has a line for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from regatta.server.accounts.visibility import Visibility
from tests.doors import shell_job
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
    #: How the request is sent, as `TeamServer.ask` takes it.
    sends: Callable[[Place], dict[str, Any]] = _nothing
    #: What is used up by those for whom it is; the others try it on what stays.
    spends: Callable[[World], dict[str, str]] = lambda _: {}
    #: It uses up the token that is shown.
    spends_token: bool = False
    #: A stream that does not end: what the last word is that matters.
    until: str = ""
    #: Ends the server: those for whom it is do so in a test of its own.
    ends_server: bool = False
    #: What only admins find in the answer.
    for_admins: str = ""


def a_job(world: World) -> dict[str, str]:
    return {"name": world.a_job()}


def a_running_job(world: World) -> dict[str, str]:
    return {"name": world.a_job(suspend=False)}


def _submits(**more: Any) -> Callable[[Place], dict[str, Any]]:
    def sends(place: Place) -> dict[str, Any]:
        text = shell_job(place["new"], runPolicy={"suspend": True})
        return {"body": {"text": text, **{k: v.format(**place) for k, v in more.items()}}}

    return sends


_API = "/regatta/v1"
_JOBS = _API + "/namespaces/{namespace}/jobs"
_JOB = _JOBS + "/{name}"
_SEES, _CHANGES = For.THOSE_WHO_SEE, For.THOSE_WHO_CHANGE

OURS: dict[tuple[str, str], tuple[Ask, ...]] = {
    ("GET", "/healthz"): (Ask(whom=For.EVERYBODY),),
    ("GET", _API + "/jobs"): (
        Ask(whom=For.LISTS),
        Ask(whom=For.LISTS, query="?finished=100"),
        Ask(whom=For.LISTS_OF_OWNER, query="?namespace={namespace}"),
    ),
    ("POST", _API + "/jobs"): (
        Ask(whom=For.THE_SIGNED_IN, ok=201, sends=_submits()),
        Ask(whom=For.THE_SIGNED_IN, query="?dryRun=true", sends=_submits()),
        Ask(whom=For.WHO_FILLS, ok=201, sends=_submits(namespace="{namespace}")),
        Ask(
            whom=For.WHO_FILLS,
            query="?dryRun=stored",
            sends=_submits(namespace="{namespace}", name="{name}"),
        ),
    ),
    ("GET", _API + "/runs"): (
        Ask(whom=For.LISTS),
        Ask(whom=For.LISTS_OF_OWNER, query="?namespace={namespace}"),
        Ask(whom=For.LISTS_OF_OWNER, query="?namespace={namespace}&name={name}"),
        Ask(whom=_SEES, query="?uid={uid}"),
    ),
    ("GET", _JOB): (Ask(whom=_SEES), Ask(whom=_SEES, query="?uid={uid}")),
    ("DELETE", _JOB): (Ask(whom=_CHANGES, spends=a_job),),
    ("DELETE", _JOBS): (Ask(whom=For.WHO_CLEARS), Ask(whom=For.WHO_CLEARS, query="?live=false")),
    ("POST", _JOB + "/stop"): (Ask(whom=_CHANGES, spends=a_job),),
    ("POST", _JOB + "/scale"): (
        Ask(whom=_CHANGES, spends=a_job, sends=lambda _: {"body": {"replicas": 1}}),
    ),
    ("POST", _JOB + "/suspend"): (Ask(whom=_CHANGES, spends=a_running_job),),
    ("POST", _JOB + "/resume"): (Ask(whom=_CHANGES, spends=a_job),),
    ("GET", _JOB + "/pods"): (Ask(whom=_SEES), Ask(whom=_SEES, query="?uid={uid}")),
    ("GET", _API + "/watch"): (
        Ask(whom=For.LISTS, until="event: synced"),
        Ask(whom=For.LISTS_OF_OWNER, until="event: synced", query="?namespace={namespace}"),
        Ask(
            whom=For.LISTS_OF_OWNER,
            until="event: synced",
            query="?namespace={namespace}&name={name}",
        ),
    ),
    ("GET", _API + "/events"): (
        Ask(whom=For.LISTS),
        Ask(whom=For.LISTS_OF_OWNER, query="?namespace={namespace}"),
        Ask(whom=_SEES, query="?namespace={namespace}&job={name}"),
        Ask(whom=_SEES, query="?namespace={namespace}&job={name}&uid={uid}"),
        Ask(whom=For.LISTS, query="?follow=true", until="{last}"),
    ),
    ("GET", _JOB + "/logs"): (
        Ask(whom=_SEES),
        Ask(whom=_SEES, query="?uid={uid}"),
        Ask(whom=_SEES, query="?follow=true&status=true", until="speaks"),
    ),
    ("GET", _API + "/capacity"): (
        Ask(whom=For.LISTS),
        Ask(whom=For.LISTS_OF_OWNER, query="?namespace={namespace}"),
    ),
    ("GET", _API + "/storage"): (Ask(whom=For.THE_SIGNED_IN, for_admins='"retention":{'),),
    ("GET", _API + "/server"): (Ask(whom=For.THE_SIGNED_IN),),
    ("POST", _API + "/server/stop"): (Ask(whom=For.ADMINS, ok=202, ends_server=True),),
}

#: Not of the description, but it itself.
DESCRIPTION = {("GET", _API + "/openapi.json"): (Ask(whom=For.THE_SIGNED_IN),)}

OPERATIONS = {**OURS}
