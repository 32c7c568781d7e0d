"""One of several operators leads: whoever holds the Lease.

A leader stops working before its lease can run out in anybody else's eyes. Both sides measure on
their own clocks, and never compare wall clocks of two machines: a leader from the moment it *sent*
its last successful renewal, a contender from the moment it first *saw* the lease as it stands.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError
from regatta.engines.kubernetes.api.resources import LEASES

_log = logging.getLogger(__name__)


#: How long whoever ends may take to give the lease up; after that its time runs out by itself.
RELEASE_SECONDS = 5.0


class LeaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Contenders wait this long after the last renewal they saw.
    lease_seconds: float = 15.0
    #: A leader that has not renewed for this long stops. What remains of the lease is for its
    #: work to end in.
    renew_seconds: float = 10.0
    #: Between renewals, and between looks at somebody else's lease.
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise ValueError(
                f"lease {self.lease_seconds:g} s, renew {self.renew_seconds:g} s, retry "
                f"{self.retry_seconds:g} s: each must be longer than the next"
            )


DEFAULTS = LeaderSettings()


class LeadershipLost(KubeError):
    """Somebody else may lead by now. The process should end, and start over as a contender."""


class _LeaseSpec(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _LeaseMetadata(msgspec.Struct, kw_only=True, rename="camel"):
    name: str
    namespace: str
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Lease(msgspec.Struct, kw_only=True, rename="camel"):
    metadata: _LeaseMetadata
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


def steady_clock() -> float:
    """Seconds that also pass while the machine sleeps, as they do for everybody else."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaderElector:
    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        settings: LeaderSettings = DEFAULTS,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._settings = settings
        self._clock = clock
        #: The lease as last read or written, and when on our clock it came to stand so.
        self._lease: _Lease | None = None
        self._since = 0.0
        self._renewed_at = float("-inf")

    @property
    def leads(self) -> bool:
        """Whether nobody else can lead at this moment."""
        return self._left() > 0

    @property
    def holder(self) -> str:
        """Who was last seen to hold the lease."""
        return (self._lease.spec.holder_identity or "") if self._lease else ""

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Waits until we lead, then runs `lead`, and gives the lease up when it returns.

        If the lease cannot be renewed, `lead` is cancelled and `LeadershipLost` is raised.
        """
        await self._acquire()
        _log.info("%s leads", self._identity)
        work = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._keep())
        try:
            await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return
            renewing.result()
        finally:
            for task in (work, renewing):
                task.cancel()
            await asyncio.gather(work, renewing, return_exceptions=True)
            await self._release()

    async def _acquire(self) -> None:
        while not await self._try():
            await asyncio.sleep(self._settings.retry_seconds * random.uniform(1.0, 1.2))

    async def _keep(self) -> None:
        """Renews until that fails for too long, or somebody else has the lease."""
        while True:
            await asyncio.sleep(min(self._settings.retry_seconds, max(0.0, self._left())))
            if await self._try():
                continue
            taken = self._lease is not None and not self._ours()
            if taken or self._left() <= 0:
                raise LeadershipLost(
                    f"{self._identity} lost the lease {self._namespace}/{self._name}: not renewed "
                    f"for {self._clock() - self._renewed_at:.1f} s, last seen with {self.holder!r}"
                )

    def _left(self) -> float:
        return self._settings.renew_seconds - (self._clock() - self._renewed_at)

    async def _try(self) -> bool:
        """One look, and one write where the lease is ours or free. Failures are for the next."""
        left = self._left()
        try:
            # A leader has until its deadline: a later answer is of no use to it.
            async with asyncio.timeout(left if left > 0 else self._settings.renew_seconds):
                return await self._take(self._clock())
        except TimeoutError:
            return False
        except ApiError as refused:
            if not (refused.conflict or refused.already_exists):
                _log.warning("the lease %s/%s: %s", self._namespace, self._name, refused)
            await self._look_quietly()
            return False
        except KubeError as trouble:
            _log.warning("the lease %s/%s: %s", self._namespace, self._name, trouble)
            return False

    async def _take(self, began: float) -> bool:
        if self._lease is None or not self._ours():
            await self._look()
        lease = self._lease
        if lease is None:
            answer = await self._client.create(
                LEASES, self._filled(None), namespace=self._namespace
            )
        elif self._ours() or self._free():
            answer = await self._client.replace(
                LEASES, self._name, self._filled(lease), namespace=self._namespace
            )
        else:
            return False
        self._renewed_at = began
        self._saw(answer.into(_Lease))
        return True

    async def _look(self) -> None:
        try:
            answer = await self._client.get(LEASES, self._name, namespace=self._namespace)
        except ApiError as refused:
            if not refused.not_found:
                raise
            self._lease = None
            return
        self._saw(answer.into(_Lease))

    async def _look_quietly(self) -> None:
        """After a refused write: our copy is outdated, the next try needs a better one."""
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(self._settings.retry_seconds):
                await self._look()

    def _saw(self, lease: _Lease) -> None:
        known = self._lease
        if known is None or known.metadata.resource_version != lease.metadata.resource_version:
            self._since = self._clock()
        self._lease = lease

    def _ours(self) -> bool:
        return self.holder == self._identity

    def _free(self) -> bool:
        """Given up, or not renewed for as long as its holder itself said it may stay silent."""
        if self._lease is None or not self._lease.spec.holder_identity:
            return True
        said = self._lease.spec.lease_duration_seconds or 0
        return self._clock() - self._since >= max(said, self._settings.lease_seconds)

    def _filled(self, lease: _Lease | None) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        before = lease.spec if lease is not None else _LeaseSpec()
        same = before.holder_identity == self._identity
        spec = _LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=max(1, round(self._settings.lease_seconds)),
            acquire_time=before.acquire_time if same and before.acquire_time else now,
            renew_time=now,
            lease_transitions=(before.lease_transitions or 0) + (0 if same or lease is None else 1),
        )
        return self._document(lease, spec)

    def _document(self, lease: _Lease | None, spec: _LeaseSpec) -> dict[str, Any]:
        # With the resourceVersion we read: of two contenders only one can be right.
        metadata = (
            lease.metadata
            if lease is not None
            else _LeaseMetadata(name=self._name, namespace=self._namespace)
        )
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                key: value for key, value in msgspec.to_builtins(metadata).items() if value
            },
            "spec": msgspec.to_builtins(spec),
        }

    async def _release(self) -> None:
        """So that a successor need not wait. What the clock has already taken is left alone."""
        held = self.leads
        self._renewed_at = float("-inf")
        if not held:
            return
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                # A renewal may have been cut off after the server took it: look once more.
                await self._look()
                if self._lease is not None and self._ours():
                    body = self._document(self._lease, _given_up(self._lease.spec))
                    await self._client.replace(LEASES, self._name, body, namespace=self._namespace)


def _given_up(spec: _LeaseSpec) -> _LeaseSpec:
    return _LeaseSpec(
        lease_duration_seconds=1,
        acquire_time=spec.acquire_time,
        renew_time=spec.renew_time,
        lease_transitions=spec.lease_transitions,
    )
