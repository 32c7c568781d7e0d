"""OpenPAI's operations on jobs and clusters: what each is to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.server.team.authorisation.asks import Ask, For, Place, Table
from tests.server.team.authorisation.our_operations import a_job
from tests.server.team.authorisation.world import (
    OWNER,
    SPARE_CLUSTER,
    As,
    World,
    kept,
    openpai_config,
)

_SEES, _CHANGES = For.THOSE_WHO_SEE, For.THOSE_WHO_CHANGE
_JOB = "/api/v2/jobs/{framework}"
_TASK = _JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"
TAG = "blue"


def a_tagged_job(world: World) -> dict[str, str]:
    name = world.a_job()
    path = f"/api/v2/jobs/{OWNER}~{name}/tag"
    assert world.ask("PUT", path, As.OWNER, body={"value": TAG}).status == 200
    return {"name": name}


def a_link(world: World) -> dict[str, str]:
    """To what the owner's job printed."""
    return {"signed": world.links(kept(OWNER))[0].rpartition("/")[2]}


def _config(place: Place) -> dict[str, Any]:
    return {"text": openpai_config(place["new"], "true"), "headers": {"Content-Type": "text/yaml"}}


def _old_config(place: Place) -> dict[str, Any]:
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    task = {**role, "command": "true"}
    return {"body": {"jobName": place["new"], "image": "none", "taskRoles": [task]}}


def _says(value: str) -> dict[str, Any]:
    return {"sends": lambda _: {"body": {"value": value}}}


_STOPS: Mapping[str, Any] = {"whom": _CHANGES, "ok": 202, "spends": a_job, **_says("STOP")}
_LISTS = (Ask(whom=For.LISTS), Ask(whom=For.LISTS_OF_OWNER, query="?username={username}"))

V2: Table = {
    ("POST", "/api/v2/jobs"): (Ask(whom=For.THE_SIGNED_IN, ok=202, sends=_config),),
    ("GET", "/api/v2/jobs"): (
        *_LISTS,
        Ask(whom=For.LISTS, query="?withTotalCount=true"),
        Ask(whom=For.LISTS, query="?keyword=keeps&state=RUNNING&order=jobName,ASC"),
        Ask(whom=For.LISTS_OF_OWNER, query="?keyword={name}"),
    ),
    ("GET", _JOB): (Ask(whom=_SEES),),
    ("GET", _JOB + "/attempts/{attempt}"): (Ask(whom=_SEES),),
    ("GET", _JOB + "/config"): (Ask(whom=_SEES),),
    ("PUT", _JOB + "/executionType"): (Ask(**_STOPS),),
    ("GET", _JOB + "/ssh"): (Ask(whom=_SEES, ok=404),),  # there never is any
    ("PUT", _JOB + "/tag"): (Ask(whom=_CHANGES, spends=a_job, **_says(TAG)),),
    ("DELETE", _JOB + "/tag"): (Ask(whom=_CHANGES, spends=a_tagged_job, **_says(TAG)),),
    ("GET", _JOB + "/job-attempts/healthz"): (Ask(whom=For.THE_SIGNED_IN),),
    ("GET", _JOB + "/job-attempts"): (Ask(whom=_SEES),),
    ("GET", _JOB + "/job-attempts/{attempt}"): (Ask(whom=_SEES),),
    ("GET", _JOB + "/events"): (Ask(whom=_SEES),),
    ("GET", _TASK): (Ask(whom=_SEES, shows="worker"),),
    ("GET", _TASK + "/{life}/logs"): (
        Ask(whom=_SEES, shows="/api/v2/logs/"),
        Ask(whom=_SEES, shows="/api/v2/logs/", query="?tail-mode=true"),
    ),
    ("GET", "/api/v2/logs/{signed}"): (Ask(whom=For.EVERYBODY, spends=a_link),),
}

#: How v1's paths name a job: below its owner, or in one word.
_BELOW = ("/api/v1/user/{username}/jobs", "/api/v2/user/{username}/jobs")
_ALL = "/api/v1/jobs"
_NEW = {"name": "{new}"}
_WHOLE = {"name": "{framework}"}


def _one_job(base: str, braces: Mapping[str, str]) -> Table:
    path = base + "/{name}"
    return {
        ("GET", path): (Ask(whom=_SEES, braces=braces),),
        ("DELETE", path): (Ask(whom=_CHANGES, ok=202, spends=a_job, braces=braces),),
        ("GET", path + "/config"): (Ask(whom=_SEES, braces=braces),),
        ("GET", path + "/ssh"): (Ask(whom=_SEES, ok=404, braces=braces),),
        ("PUT", path + "/executionType"): (Ask(**_STOPS, braces=braces),),
    }


def _below(base: str) -> Table:
    submits = {"whom": For.WHO_FILLS, "ok": 201, "sends": _old_config}
    return {
        ("GET", base): (Ask(whom=For.LISTS_OF_OWNER),),
        ("POST", base): (Ask(**submits),),  # type: ignore[arg-type]
        ("PUT", base + "/{name}"): (Ask(**submits, braces=_NEW),),  # type: ignore[arg-type]
        **_one_job(base, {}),
    }


V1: Table = {
    ("GET", _ALL): _LISTS,
    ("POST", _ALL): (Ask(whom=For.THE_SIGNED_IN, ok=201, sends=_old_config),),
    ("PUT", _ALL + "/{name}"): (
        Ask(whom=For.THE_SIGNED_IN, ok=201, sends=_old_config, braces=_NEW),
        Ask(whom=For.WHO_FILLS, ok=201, sends=_old_config, braces={"name": "{username}~{new}"}),
    ),
    **_one_job(_ALL, _WHOLE),
    **_below(_BELOW[0]),
    **_below(_BELOW[1]),
}

_ANYBODY, _ADMINS = (Ask(whom=For.THE_SIGNED_IN),), (Ask(whom=For.ADMINS),)
#: Nothing of it can be changed over REST.
_FIXED = (Ask(whom=For.ADMINS, ok=501, braces={"vc": SPARE_CLUSTER}),)
CLUSTERS: Table = {
    **{
        operation: asks
        for version in ("/api/v1/virtual-clusters", "/api/v2/virtual-clusters")
        for operation, asks in {
            ("GET", version): (*_ANYBODY, Ask(whom=For.THE_SIGNED_IN, query="?nodes")),
            ("GET", version + "/{vc}"): _ANYBODY,
            ("PUT", version + "/{vc}"): _FIXED,
            ("DELETE", version + "/{vc}"): _FIXED,
            ("PUT", version + "/{vc}/status"): _FIXED,
        }.items()
    },
    ("GET", "/api/v2/virtual-clusters/{vc}/sku-types"): _ANYBODY,
    ("GET", "/api/v2/cluster/sku-types"): _ANYBODY,
    ("GET", "/api/v2/storages"): _ANYBODY,
    ("GET", "/api/v2/storages/{storage}"): (Ask(whom=For.THE_SIGNED_IN, ok=404),),
    ("GET", "/api/v2/kubernetes/nodes"): _ADMINS,
    ("GET", "/api/v2/kubernetes/pods"): _ADMINS,
    ("GET", "/api/v2/alerts"): _ANYBODY,
}

JOBS: Table = {**V2, **V1, **CLUSTERS}
