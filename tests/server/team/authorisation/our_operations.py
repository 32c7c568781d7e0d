"""Our own operations: what each is to people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regatta.server.accounts.browser_sessions import REQUEST_HEADER
from tests.doors import shell_job
from tests.server.accounts.people import PASSWORD
from tests.server.team.authorisation.asks import Ask, For, Place, Table
from tests.server.team.authorisation.world import OWNER, World


def a_job(world: World) -> dict[str, str]:
    return {"name": world.a_job()}


def a_running_job(world: World) -> dict[str, str]:
    return {"name": world.a_job(suspend=False)}


def a_token(world: World) -> dict[str, str]:
    return {"handle": world.a_token(OWNER).split("_")[1]}


def _submits(**more: Any) -> Callable[[Place], dict[str, Any]]:
    def sends(place: Place) -> dict[str, Any]:
        text = shell_job(place["new"], runPolicy={"suspend": True})
        return {"body": {"text": text, **{k: v.format(**place) for k, v in more.items()}}}

    return sends


_API = "/regatta/v1"
_JOBS = _API + "/namespaces/{namespace}/jobs"
_JOB = _JOBS + "/{name}"
_SEES, _CHANGES = For.THOSE_WHO_SEE, For.THOSE_WHO_CHANGE

OURS: Table = {
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
    ("POST", _API + "/session"): (
        Ask(
            whom=For.EVERYBODY,
            ok=201,
            sends=lambda place: {
                "body": {"username": "bystander", "password": PASSWORD},
                "headers": {"Origin": place["url"], REQUEST_HEADER: "1"},
            },
        ),
    ),
    ("DELETE", _API + "/session"): (Ask(whom=For.PERSONS, spends_token=True),),
    ("GET", _API + "/tokens"): (Ask(whom=For.PERSONS),),
    ("POST", _API + "/tokens"): (Ask(whom=For.PERSONS, ok=201),),
    ("DELETE", _API + "/tokens/{handle}"): (Ask(whom=For.THE_HOLDER, spends=a_token),),
    ("GET", _API + "/whoami"): (Ask(whom=For.THE_SIGNED_IN),),
    ("GET", _API + "/audit"): (Ask(whom=For.ADMINS), Ask(whom=For.ADMINS, query="?who=ann")),
}

#: Not of the description, but it itself.
DESCRIPTION: Table = {("GET", _API + "/openapi.json"): (Ask(whom=For.THE_SIGNED_IN),)}
