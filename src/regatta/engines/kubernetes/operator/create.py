"""Asking the cluster for an object, and finding out what a refusal means.

Objects are posted, never applied: a forced apply onto somebody else's pod would succeed. A 409 is
not "done" either; only a look at what holds the name tells whose it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec

from regatta.api.job import Job
from regatta.controller import labels
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.models import Bare, KubeObject, Metadata
from regatta.engines.kubernetes.api.refusal_words import in_a_sentence
from regatta.engines.kubernetes.api.resources import PODS
from regatta.engines.kubernetes.cache.informer import Informer
from regatta.engines.kubernetes.objects.children import is_predecessors
from regatta.engines.kubernetes.operator.job_memory import JobMemory, Note, Stranger
from regatta.engines.kubernetes.operator.job_reader import CREATE_REFUSED, NAME_TAKEN

#: Requests in flight at once, over all jobs: more only queue up inside the API server.
IN_FLIGHT = 32


class Wanted(msgspec.Struct, frozen=True):
    """An object to create, and the copy in which it will appear."""

    informer: Informer[Any]
    name: str
    manifest: dict[str, Any]


class Outcome(msgspec.Struct):
    """What came of a batch."""

    created: int = 0
    #: What the cluster said to the first that it did not take.
    note: Note | None = None
    #: Something that holds a name is going, or went in this moment.
    wait: bool = False


class Creator:
    def __init__(self, client: KubeClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    @property
    def busy(self) -> bool:
        """Whether somebody has to wait for a turn."""
        return self._slots.locked()

    async def create_all(self, job: Job, memory: JobMemory, wanted: list[Wanted]) -> Outcome:
        """In this order and in parallel. After a refusal nothing more is begun: what one replica
        is refused, its peers would be too."""
        outcome = Outcome()
        queue = iter(wanted)

        async def work() -> None:
            for item in queue:
                if outcome.note is not None:
                    return
                async with self._slots:
                    await self._create(job, memory, item, outcome)

        await _all(work() for _ in range(min(IN_FLIGHT, len(wanted))))
        return outcome

    async def in_turn(self, steps: list[Coroutine[None, None, None]]) -> None:
        """Other writes, side by side, within the same limit."""

        async def work(step: Coroutine[None, None, None]) -> None:
            async with self._slots:
                await step

        await _all(work(step) for step in steps)

    async def _create(self, job: Job, memory: JobMemory, item: Wanted, outcome: Outcome) -> None:
        informer: Informer[KubeObject] = item.informer
        try:
            answer = await self._client.create(
                informer.resource,
                item.manifest,
                namespace=job.namespace,
                strict=informer.resource is PODS,
            )
        except ApiError as refused:
            if refused.already_exists:
                await self._find_out(job, memory, item, outcome)
            elif is_refusal(refused):
                outcome.note = outcome.note or Note(CREATE_REFUSED, in_words(item, refused))
            else:
                raise
        else:
            memory.expectations.wrote(informer, answer.identity.resource_version, self._clock())
            outcome.created += 1

    async def _find_out(self, job: Job, memory: JobMemory, item: Wanted, outcome: Outcome) -> None:
        """Who holds the name that we wanted?"""
        try:
            answer = await self._client.get(
                item.informer.resource, item.name, namespace=job.namespace
            )
        except ApiError as refused:
            if not refused.not_found:
                raise
            outcome.wait = True  # it went in this moment
            return
        holder = answer.into(Bare).metadata
        now = self._clock()
        if holder.controller_uid == job.uid:
            # An earlier write of ours, of this attempt or another: the cache has yet to show it.
            memory.expectations.wrote(item.informer, holder.resource_version, now)
            outcome.wait = True
        elif holder.deletion_timestamp is not None or is_predecessors(job, holder):
            outcome.wait = True
        elif item.informer.resource is PODS and not _is_watched(holder):
            memory.strangers[item.name] = Stranger(holder, now)
            outcome.wait = True
        elif item.informer.resource is not PODS:
            outcome.note = outcome.note or _taken(item)
        else:
            outcome.wait = True  # the cache will show it, and the brain will say so


def is_refusal(error: ApiError) -> bool:
    """Not a matter of trying again at once: a rule, a quota or a webhook says no."""
    if error.status in (400, 403, 404, 422):
        return True
    return error.status >= 500 and "webhook" in error.message


def in_words(item: Wanted, error: ApiError) -> str:
    kind = item.informer.resource.kind
    return f"{kind} {item.name} cannot be created: {in_a_sentence(error)}"


def _is_watched(metadata: Metadata) -> bool:
    return labels.UPSTREAM_ROLE in metadata.labels


def _taken(item: Wanted) -> Note:
    kind = item.informer.resource.kind
    return Note(
        NAME_TAKEN,
        f"a {kind} named {item.name} that belongs to somebody else has a name this job needs; "
        "delete or rename it, or give the job another name",
    )


async def _all(steps: Iterable[Coroutine[None, None, None]]) -> None:
    """Each to its end, because what was sent has perhaps happened; then the first failure."""
    for ended in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
