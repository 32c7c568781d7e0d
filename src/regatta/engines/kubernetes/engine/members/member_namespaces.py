"""A namespace for each account of a team, in which its jobs can be nobody else.

A pod names Secrets, claims and accounts of its own namespace only, so a namespace of one's own is
what keeps members apart. Pod Security `baseline` keeps their pods off the node, and a default
ServiceAccount that mounts no token keeps them away from the API server.

A namespace that somebody else made is never taken over: who has rights there, and what lies there,
is not known here. An administrator who means it says so with the label.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from regatta.api.errors import ClusterRefused, NotAllowed, NotPossible
from regatta.api.job import GROUP
from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.resources import NAMESPACES, SERVICE_ACCOUNTS, Resource

#: On a namespace: jobs of a team's members may run in it. What a team's server may change ends
#: there, too: deploy/v1/team-server.yaml.
MARK = f"{GROUP}/team-members"
MARKED = "true"
LEVEL, STRICT_LEVEL = "baseline", "restricted"
ENFORCE = "pod-security.kubernetes.io/enforce"
LABELS = {
    "app.kubernetes.io/managed-by": "regatta",
    MARK: MARKED,
    **{f"pod-security.kubernetes.io/{how}": LEVEL for how in ("enforce", "warn", "audit")},
    **{
        f"pod-security.kubernetes.io/{how}-version": "latest"
        for how in ("enforce", "warn", "audit")
    },
}
ACCOUNT = "default"
#: The controller manager makes a namespace's account within a second, where it is not far behind.
ACCOUNT_SECONDS = 30.0
#: What was found in order is believed for so long: an administrator may change it.
TRUSTED_SECONDS = 300.0


class MemberNamespaces:
    """Those of one cluster, and which of them were found in order a moment ago."""

    def __init__(self, client: KubeClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._in_order: dict[str, float] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def ensure(self, name: str) -> None:
        """It is there, and as it should be, when this returns. Raises ClusterRefused, NotAllowed
        or NotPossible, each with what to do."""
        await self._look(name, make=True)

    async def require(self, name: str) -> None:
        """The same, and none is made."""
        await self._look(name, make=False)

    def forget(self, name: str) -> None:
        """The cluster refused something in it: it is looked at again before the next time."""
        self._in_order.pop(name, None)

    async def _look(self, name: str, *, make: bool) -> None:
        turn = self._turns.setdefault(name, asyncio.Lock())
        try:
            async with turn:
                if self._clock() < self._in_order.get(name, 0.0):
                    return
                refuse_unfit(name, await self._namespace(name, make=make))
                await self._close_account(name)
                self._in_order[name] = self._clock() + TRUSTED_SECONDS
        finally:
            if not turn.locked():
                self._turns.pop(name, None)

    async def _namespace(self, name: str, *, make: bool) -> dict[str, Any]:
        found = await self._find(NAMESPACES, name)
        if found is not None:
            return found
        if not make:
            raise NotAllowed(
                f"the cluster has no namespace {name}, and jobs of a team's members run only in "
                "those that were made for their accounts"
            )
        document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": LABELS},
        }
        try:
            return dict((await self._client.create(NAMESPACES, document)).json())
        except ApiError as refused:
            if not refused.already_exists:
                raise _without_right(refused, "create", "namespaces") from refused
        found = await self._find(NAMESPACES, name)  # somebody was quicker
        if found is None:
            raise NotPossible(f"namespace {name} came and went just now; try again")
        return found

    async def _close_account(self, name: str) -> None:
        """The controller manager makes it when it sees the namespace, which takes a moment."""
        deadline, pause = self._clock() + ACCOUNT_SECONDS, 0.02
        while (account := await self._find(SERVICE_ACCOUNTS, ACCOUNT, name)) is None:
            if self._clock() > deadline:
                raise ClusterRefused(
                    f"namespace {name} has no ServiceAccount `{ACCOUNT}` after "
                    f"{ACCOUNT_SECONDS:.0f} s, which the cluster's controller manager makes; see "
                    "whether it runs, and try again"
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)
        if account.get("automountServiceAccountToken") is False:
            return
        closed = {"automountServiceAccountToken": False}
        try:
            await self._client.patch(
                SERVICE_ACCOUNTS, ACCOUNT, closed, namespace=name, kind=PatchKind.MERGE
            )
        except ApiError as refused:
            raise _without_right(refused, "patch", "serviceaccounts") from refused

    async def _find(
        self, resource: Resource, name: str, namespace: str = ""
    ) -> dict[str, Any] | None:
        try:
            return dict((await self._client.get(resource, name, namespace=namespace)).json())
        except ApiError as refused:
            if refused.not_found:
                return None
            raise _without_right(refused, "get", resource.plural) from refused


def refuse_unfit(name: str, found: dict[str, Any]) -> None:
    """Raises ClusterRefused or NotPossible unless members' jobs may run in this Namespace."""
    metadata = found.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if metadata.get("deletionTimestamp"):
        raise NotPossible(
            f"namespace {name} is being deleted; try again when it is gone "
            f"(`kubectl get namespace {name}` says what holds it)"
        )
    if labels.get(MARK) != MARKED:
        raise ClusterRefused(
            f"the cluster has a namespace {name} that was not made for this team's account, and it "
            "is not taken over. If it is meant to be the account's, an administrator says so with "
            f"`kubectl label namespace {name} {MARK}={MARKED} {ENFORCE}={LEVEL}`; if not, it has "
            "to be removed, or the account needs another name"
        )
    if labels.get(ENFORCE) not in (LEVEL, STRICT_LEVEL):
        raise ClusterRefused(
            f"namespace {name} has {ENFORCE}: {labels.get(ENFORCE, 'nothing')}, which lets a job "
            "at its node; members' jobs run under baseline or restricted. An administrator sets it "
            f"with `kubectl label --overwrite namespace {name} {ENFORCE}={LEVEL}`"
        )


def _without_right(refused: ApiError, verb: str, what: str) -> Exception:
    """What the administrator has to grant; a quota or an admission rule speaks for itself."""
    if not refused.forbidden or f"cannot {verb} resource" not in refused.message:
        return refused
    return NotAllowed(
        f"the account of this server may not {verb} {what} in the cluster, which it needs to make "
        "a namespace for each member; its administrator grants it with "
        "`kubectl apply -f deploy/v1/team-server.yaml`"
    )
