"""No second look at a job before the caches show what the first one wrote.

A watch lags behind our own writes by milliseconds, and a brain that looks in between would count
one failure twice. Versions of one resource only grow, so a write is seen when its informer has
come that far. A deletion answers with no version worth trusting: it is seen when that very object
is gone or going.
"""

from __future__ import annotations

import msgspec

from regatta.engines.kubernetes.api.models import KubeObject
from regatta.engines.kubernetes.cache.informer import Informer

#: After this long a watch has lost something (or a cluster counts anew): look all the same.
PATIENCE = 30.0


class _Deletion(msgspec.Struct, frozen=True):
    informer: Informer[KubeObject]
    key: str
    uid: str


class Expectations:
    """What one job's last passes wrote and the caches do not show yet."""

    def __init__(self) -> None:
        self._writes: dict[str, tuple[Informer[KubeObject], str]] = {}
        self._deletions: list[_Deletion] = []
        self._since = 0.0

    def wrote(self, informer: Informer[KubeObject], resource_version: str, now: float) -> None:
        """Only the latest write of each kind matters: an informer sees them in order."""
        if not resource_version:
            return
        kind = informer.resource.path()
        known = self._writes.get(kind)
        if known is None or int(known[1]) < int(resource_version):
            self._writes[kind] = (informer, resource_version)
        self._since = now

    def deleted(self, informer: Informer[KubeObject], key: str, uid: str, now: float) -> None:
        self._deletions.append(_Deletion(informer, key, uid))
        self._since = now

    def unmet(self, now: float) -> float | None:
        """Seconds after which to look in any case, or None when everything has been seen."""
        self._writes = {
            kind: (informer, version)
            for kind, (informer, version) in self._writes.items()
            if not informer.has_seen(version)
        }
        self._deletions = [waited for waited in self._deletions if not _seen(waited)]
        if not self._writes and not self._deletions:
            return None
        left = self._since + PATIENCE - now
        if left > 0:
            return left
        self._writes.clear()
        self._deletions.clear()
        return None


def _seen(waited: _Deletion) -> bool:
    held = waited.informer.store.get(waited.key)
    if held is None or held.metadata.uid != waited.uid:
        return True
    return held.metadata.deletion_timestamp is not None
