"""A job that is given another name or namespace takes what stands beside it along."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from regatta.api.source.companions import Companions

#: Namespace and name of a job, as far as its document has them.
Identity = tuple[object, object]


def follow_the_job(companions: Companions, was: Identity, now: Identity) -> Companions:
    """Its PodGroup and its claims, as a local job reads them."""
    (old_space, old_name), (new_space, new_name) = was, now
    if was == now or not isinstance(new_space, str) or not isinstance(new_name, str):
        return companions
    groups = tuple(
        msgspec.structs.replace(
            group, namespace=new_space, name=new_name if group.name == old_name else group.name
        )
        if group.namespace == old_space
        else group
        for group in companions.pod_groups
    )
    claims = tuple(
        msgspec.structs.replace(claim, namespace=new_space)
        if claim.namespace == old_space
        else claim
        for claim in companions.claims
    )
    return msgspec.structs.replace(companions, pod_groups=groups, claims=claims)


def companion_documents(
    beside: Iterable[dict[str, Any]], was: Identity, now: Identity
) -> tuple[dict[str, Any], ...]:
    """The same for the documents themselves, each with the namespace that it belongs to."""
    return tuple(_moved(copy.deepcopy(document), was, now) for document in beside)


def _moved(document: dict[str, Any], was: Identity, now: Identity) -> dict[str, Any]:
    (old_space, old_name), (new_space, new_name) = was, now
    metadata = document.setdefault("metadata", {})
    if document["kind"] == "PersistentVolume":
        claim = (document.get("spec") or {}).get("claimRef")
        if isinstance(claim, dict) and claim.get("namespace", old_space) == old_space:
            claim["namespace"] = new_space
        return document
    if metadata.get("namespace", old_space) != old_space:
        return document
    metadata["namespace"] = new_space
    if document["kind"] == "PodGroup" and metadata.get("name") == old_name:
        metadata["name"] = new_name
    return document
