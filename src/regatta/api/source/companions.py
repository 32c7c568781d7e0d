"""The other documents of a job file: what stands beside the PaddleJob and is understood.

A tutorial's file often carries a PodGroup, or a PersistentVolume with its claim. On a cluster the
API server takes them; here they say how large the gang is and which folder a claim means.
"""

from __future__ import annotations

from typing import Any

import msgspec


class PodGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Volcano's (scheduling.volcano.sh): how many pods must start together."""

    name: str
    namespace: str = "default"
    min_member: int | None = None
    queue: str = ""
    priority_class_name: str = ""
    min_resources: dict[str, str] = {}


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    #: The directory of a `hostPath` or `local` volume.
    host_path: str = ""
    #: Server and exported path of an `nfs` volume.
    nfs_server: str = ""
    nfs_path: str = ""
    read_only: bool = False
    storage_class_name: str = ""
    labels: dict[str, str] = {}
    #: The claim it is kept for (`claimRef`), as namespace and name.
    claim: tuple[str, str] | None = None
    #: Its spec as written, for a source that is neither of the above.
    spec: dict[str, Any] = {}


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    namespace: str = "default"
    volume_name: str = ""
    #: None when unset: any class will do.
    storage_class_name: str | None = None
    selector: dict[str, str] = {}


class Companions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pod_groups: tuple[PodGroup, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()

    def pod_group(self, namespace: str, job: str) -> PodGroup | None:
        """The PodGroup of a job: the one of its name."""
        for group in self.pod_groups:
            if (group.namespace, group.name) == (namespace, job):
                return group
        return None

    def volume_of(self, namespace: str, claim_name: str) -> PersistentVolume | None:
        """The volume that a claim of this file would be bound to; None if it names none here."""
        claim = next(
            (c for c in self.claims if (c.namespace, c.name) == (namespace, claim_name)), None
        )
        reserved = next((v for v in self.volumes if v.claim == (namespace, claim_name)), None)
        if claim is None or reserved is not None:
            return reserved
        if claim.volume_name:
            return next((v for v in self.volumes if v.name == claim.volume_name), None)
        return next((v for v in self.volumes if v.claim is None and _fits(claim, v)), None)


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    same_class = claim.storage_class_name in (None, volume.storage_class_name)
    return same_class and claim.selector.items() <= volume.labels.items()
