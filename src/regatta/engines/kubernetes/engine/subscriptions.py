"""Who looks at what of the cluster through which informer.

A server has many readers and one informer for each kind of thing, whatever namespaces and jobs they
look at; where it may not look everywhere, one for each namespace. A command has one reader, and
asks for no more than that one needs.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from regatta.api.job import KIND, Job
from regatta.controller import labels
from regatta.engines.base import Lost
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.kube_errors import ApiError, Unreachable
from regatta.engines.kubernetes.api.models import KubeObject
from regatta.engines.kubernetes.api.resources import EVENTS, PADDLE_JOBS, PODS
from regatta.engines.kubernetes.cache.index import by_controller
from regatta.engines.kubernetes.cache.mirror import Handler
from regatta.engines.kubernetes.cache.shared import (
    EVERYTHING,
    Part,
    Reader,
    Scope,
    SharedInformers,
)
from regatta.engines.kubernetes.engine.events import ABOUT_JOBS, ABOUT_PODS, Event
from regatta.engines.kubernetes.engine.pod_views import selector_of
from regatta.engines.kubernetes.objects.job_document import JobDocument

T = TypeVar("T", bound=KubeObject)

#: How long a stream looks for a cluster that is away before it gives up.
PATIENCE_SECONDS = 60.0


def _by_namespace(thing: KubeObject) -> Iterable[str]:
    return (thing.metadata.namespace,)


def events_by_job(event: Event) -> Iterable[str]:
    """Under the uid of the job that it is about, or under every name that the job of that pod may
    have: a role's name may have dashes, too."""
    about = event.involved_object
    if about.kind == KIND:
        return (about.uid,)
    words = about.name.split("-")
    if not words[-1].isdecimal():
        return ()
    names = ("-".join(words[:count]) for count in range(1, len(words) - 1))
    return tuple(f"{event.metadata.namespace}/{name}" for name in names)


_JOBS = Scope(PADDLE_JOBS, JobDocument, indexers=(("namespace", _by_namespace),))
_PODS = Scope(
    PODS,
    models.Pod,
    label_selector=labels.UPSTREAM_ROLE,
    indexers=(("job", by_controller),),
)
_JOB_EVENTS = Scope(
    EVENTS,
    Event,
    field_selector=ABOUT_JOBS,
    indexers=(("namespace", _by_namespace), ("job", events_by_job)),
)
_POD_EVENTS = replace(_JOB_EVENTS, field_selector=ABOUT_PODS)


class Subscriptions:
    def __init__(self, informers: SharedInformers, *, wide: bool) -> None:
        self._informers = informers
        self._wide = wide

    @asynccontextmanager
    async def jobs(
        self,
        namespace: str | None,
        name: str | None,
        changed: Handler[JobDocument],
        *,
        seen: str = "",
    ) -> AsyncIterator[Reader[JobDocument]]:
        """`seen` is the resource version that the caller has seen already: what is told is at
        least as new."""
        part = EVERYTHING
        if namespace:
            part = Part.one(f"{namespace}/{name}") if name else Part("namespace", namespace)
        elif name:
            changed = _named(name, changed)
        fields = f"metadata.name={name}" if name else ""
        narrow = replace(_JOBS, namespace=namespace or "", field_selector=fields)
        async with self._reading(_JOBS, narrow, namespace, part, changed, seen) as reader:
            yield reader

    @asynccontextmanager
    async def pods(
        self, job: Job, changed: Handler[models.Pod]
    ) -> AsyncIterator[Reader[models.Pod]]:
        part = Part("job", job.uid)
        narrow = replace(_PODS, namespace=job.namespace, label_selector=selector_of(job))
        found = False

        def noticed(old: models.Pod | None, new: models.Pod | None) -> None:
            nonlocal found
            found = True
            changed(old, new)

        async with AsyncExitStack() as stack:
            reader = await stack.enter_async_context(
                self._reading(_PODS, narrow, job.namespace, part, noticed)
            )
            if not (self._wide or found) and any(r.refs for r in job.status.roles().values()):
                # The former operator's pods have only its own labels.
                theirs = replace(_PODS, namespace=job.namespace)
                await stack.aclose()
                reader = await stack.enter_async_context(
                    self._informers.reader(theirs, part, changed)
                )
            yield reader

    def every_pod(
        self, changed: Handler[models.Pod]
    ) -> AbstractAsyncContextManager[Reader[models.Pod]]:
        """Of all jobs of all namespaces."""
        return self._informers.reader(_PODS, EVERYTHING, changed)

    def job_events(
        self, namespace: str | None, job: Job | None, changed: Handler[Event]
    ) -> AbstractAsyncContextManager[Reader[Event]]:
        part = Part("namespace", namespace) if namespace else EVERYTHING
        part = part if job is None else Part("job", job.uid)
        narrow = replace(_JOB_EVENTS, namespace=namespace or "")
        return self._reading(_JOB_EVENTS, narrow, namespace, part, changed)

    def pod_events(
        self, job: Job, changed: Handler[Event]
    ) -> AbstractAsyncContextManager[Reader[Event]]:
        part = Part("job", f"{job.namespace}/{job.name}")
        narrow = replace(_POD_EVENTS, namespace=job.namespace)
        return self._reading(_POD_EVENTS, narrow, job.namespace, part, changed)

    @asynccontextmanager
    async def _reading(
        self,
        whole: Scope[T],
        narrow: Scope[T],
        namespace: str | None,
        part: Part,
        changed: Handler[T],
        seen: str = "",
    ) -> AsyncIterator[Reader[T]]:
        async with AsyncExitStack() as stack:

            async def read(scope: Scope[T]) -> Reader[T]:
                return await stack.enter_async_context(
                    self._informers.reader(scope, part, changed, seen=seen)
                )

            if not self._wide:
                reader = await read(narrow)
            else:
                try:
                    reader = await read(whole)
                except ApiError as refused:
                    if not refused.forbidden or not namespace:
                        raise
                    reader = await read(replace(whole, namespace=namespace))
            yield reader


def _named(name: str, changed: Handler[T]) -> Handler[T]:
    def filtered(old: T | None, new: T | None) -> None:
        thing = new or old
        assert thing is not None
        if thing.metadata.name == name:
            changed(old, new)

    return filtered


class Troubles:
    """Notices that informers have lost the cluster, once each time, and for how long."""

    def __init__(self, *readers: Reader[Any]) -> None:
        self._readers = readers
        self._since: float | None = None

    @property
    def why(self) -> str:
        return next((reader.trouble for reader in self._readers if reader.trouble), "")

    def news(self) -> Lost | None:
        """Raises Unreachable once patience is at its end."""
        why = self.why
        if not why:
            self._since = None
            return None
        if self._since is None:
            self._since = time.monotonic()
            return Lost(why)
        if time.monotonic() - self._since > PATIENCE_SECONDS:
            raise Unreachable(why)
        return None
