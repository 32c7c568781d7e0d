"""OpenPAI's routes about what there is: virtual clusters, machines, storage. Both versions."""

from __future__ import annotations

import asyncio
import re
from functools import partial

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from regatta.server.accounts.account_rules import DEFAULT_CLUSTER
from regatta.server.accounts.caller import Caller, require_admin
from regatta.server.openpai.cluster_answers import (
    clusters,
    gpus_by_node,
    node_list,
    pod_list,
    skus,
)
from regatta.server.openpai.cluster_shapes import (
    KubernetesList,
    NodeGpus,
    Sku,
    StorageSummary,
    VirtualCluster,
)
from regatta.server.openpai.jobs.job_schemas import either, map_of
from regatta.server.openpai.openpai_schemas import openpai_answers
from regatta.server.openpai_errors import (
    OpenPaiError,
    default_cluster_stays,
    invalid_parameters,
    no_storage,
    no_virtual_cluster,
)
from regatta.server.records.job_story import live_jobs
from regatta.server.responses import answer, answer_many
from regatta.server.routes.answers_in_turn import LONG
from regatta.server.schemas import of
from regatta.server.team.gate import Asking
from regatta.server.team.team import Team

NOT_HERE = (
    "{} is not implemented: virtual clusters are those under team.virtualClusters in the server's "
    "config.yaml, and machines are not divided among them. {} there, and start the server again."
)
_NAME = re.compile(r"[A-Za-z0-9_]+")


def cluster_routes(team: Team) -> APIRouter:
    routes = APIRouter(tags=["OpenPAI clusters"])

    for version in ("/api/v1", "/api/v2"):
        _virtual_clusters(routes, team, f"{version}/virtual-clusters")

    @routes.get(
        "/api/v2/virtual-clusters/{vc}/sku-types", responses=openpai_answers({200: map_of(Sku)})
    )
    async def cluster_skus(caller: Asking, vc: str) -> Response:
        require_cluster(team, vc)
        return answer(skus((await team.engine.capacity()).nodes))

    @routes.get("/api/v2/cluster/sku-types", responses=openpai_answers({200: map_of(Sku)}))
    async def sku_types(caller: Asking, vc: str | None = None) -> Response:
        if vc:
            require_cluster(team, vc)
        return answer(skus((await team.engine.capacity()).nodes))

    @routes.get("/api/v2/storages", responses=openpai_answers({200: of(StorageSummary)}))
    async def storages(caller: Asking) -> Response:
        return answer(StorageSummary())

    @routes.get("/api/v2/storages/{storage}", status_code=404, responses=openpai_answers({}))
    async def storage(caller: Asking, storage: str) -> Response:
        raise no_storage(storage[:255])

    @routes.get("/api/v2/kubernetes/nodes", responses=openpai_answers({200: of(KubernetesList)}))
    async def nodes(caller: Asking) -> Response:
        require_admin(caller)
        return answer(node_list((await team.engine.capacity()).nodes))

    @routes.get(
        "/api/v2/kubernetes/pods",
        responses=openpai_answers({200: of(KubernetesList)}),
        dependencies=LONG,
    )
    async def pods(caller: Asking, namespace: str | None = None) -> Response:
        """Replicas that hold something now."""
        require_admin(caller)
        found = (await team.engine.capacity()).replicas
        return await answer_many(partial(pod_list, found, namespace))

    @routes.get(
        "/api/v2/alerts",
        responses=openpai_answers({200: {"type": "array", "items": {"type": "object"}}}),
    )
    async def alerts(caller: Asking) -> Response:
        """None: nothing here raises any."""
        return answer([])

    return routes


def _virtual_clusters(routes: APIRouter, team: Team, path: str) -> None:
    @routes.get(
        path,
        responses=openpai_answers({200: either(map_of(VirtualCluster), map_of(NodeGpus))}),
    )
    async def virtual_clusters(
        request: Request, caller: Asking, nodes: str | None = None
    ) -> Response:
        """By name; with `nodes` the GPUs of each machine instead."""
        if nodes is not None:
            return answer(gpus_by_node((await team.engine.capacity()).nodes))
        return answer(await _all(team))

    @routes.get(path + "/{vc}", responses=openpai_answers({200: of(VirtualCluster)}))
    async def virtual_cluster(caller: Asking, vc: str) -> Response:
        require_cluster(team, vc)
        return answer((await _all(team))[vc])

    nothing = openpai_answers({})

    @routes.put(path + "/{vc}", status_code=501, responses=nothing)
    async def make(caller: Asking, vc: str) -> Response:
        require_changeable(team, caller, vc, "Update")
        if vc in team.settings.virtual_clusters:
            raise _not_here("Changing a virtual cluster", "Rename or remove it")
        raise _not_here("Making a virtual cluster", "Add its name")

    @routes.put(path + "/{vc}/status", status_code=501, responses=nothing)
    async def close(caller: Asking, vc: str) -> Response:
        require_changeable(team, caller, vc, "Update")
        require_cluster(team, vc)
        raise _not_here("Starting or stopping a virtual cluster", "To stop it, remove its name")

    @routes.delete(path + "/{vc}", status_code=501, responses=nothing)
    async def remove(caller: Asking, vc: str) -> Response:
        require_changeable(team, caller, vc, "Remove")
        require_cluster(team, vc)
        raise _not_here("Removing a virtual cluster", "Remove its name")


def require_cluster(team: Team, name: str) -> None:
    """404 where it is asked for; a job that names one that is not there is refused otherwise."""
    if name not in team.settings.virtual_clusters:
        raise no_virtual_cluster(name[:255], 404)


async def _all(team: Team) -> dict[str, VirtualCluster]:
    capacity = await team.engine.capacity()
    live = await team.database.read(live_jobs, team.engine_name)
    return await asyncio.to_thread(clusters, team.settings.virtual_clusters, capacity, live)


def require_changeable(team: Team, caller: Caller, name: str, verb: str) -> None:
    """That OpenPAI would let the caller change it. Raises OpenPaiError (403, 400)."""
    require_admin(caller)
    if name == DEFAULT_CLUSTER:
        raise default_cluster_stays(verb)
    if not _NAME.fullmatch(name) and name not in team.settings.virtual_clusters:
        raise invalid_parameters(
            f"Virtual cluster {name[:64]!r} cannot be: a name has letters, digits and `_`."
        )


def _not_here(what: str, instead: str) -> OpenPaiError:
    return OpenPaiError(501, "NotImplementedError", NOT_HERE.format(what, instead))
