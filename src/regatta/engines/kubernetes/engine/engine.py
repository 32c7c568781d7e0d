"""Everything a door can ask of a cluster, one method each, as it would ask the local server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

from regatta.api.errors import NoCluster
from regatta.api.job import Job
from regatta.controller.plan import Instant
from regatta.engines.base import (
    Accepted,
    EventView,
    Gone,
    LogQuery,
    Lost,
    PodView,
    Preview,
    Submission,
    Synced,
)
from regatta.engines.kubernetes.access.config import ClusterAccess, load_access
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.errors import ConfigError
from regatta.engines.kubernetes.api.resources import EVENTS, PADDLE_JOBS
from regatta.engines.kubernetes.engine import capacity, changes, events, logs, watch
from regatta.engines.kubernetes.engine.bridge import Bridge
from regatta.engines.kubernetes.engine.find import get_job
from regatta.engines.kubernetes.engine.follow import Follower
from regatta.engines.kubernetes.engine.logs import Update
from regatta.engines.kubernetes.engine.pod_views import gone, list_pods, pod_view, remembered
from regatta.engines.kubernetes.engine.reading import read_job
from regatta.engines.kubernetes.objects.documents import JobDocument

# What reads job files needs pydantic; it is imported by those that submit, so that the others
# start quickly.


class KubernetesDoor:
    def __init__(self, access: ClusterAccess, *, namespace: str = "") -> None:
        self.access = access
        #: Where jobs are when nobody says where.
        self.namespace = namespace or access.namespace
        self._bridge = Bridge(access)
        #: Pods by uid, of each job that was followed: some may be gone by now.
        self._followed: dict[str, dict[str, models.Pod]] = {}

    def close(self) -> None:
        self._bridge.close()

    # jobs

    def submit(self, submission: Submission) -> Accepted:
        from regatta.engines.kubernetes.engine import submit

        loaded = submit.read_submission(submission, self.namespace)
        return self._bridge.call(lambda client: submit.submit(client, submission, loaded))

    def preview(self, submission: Submission) -> Preview:
        """What the operator would create. Asks nothing of the cluster."""
        from regatta.engines.kubernetes.engine import rehearsal, submit

        loaded = submit.read_submission(submission, self.namespace)
        return rehearsal.preview(loaded, Instant(datetime.now(UTC), 0.0))

    def ask_server(self, submission: Submission) -> Preview:
        """What the API server would store, or its refusal; nothing is stored."""
        from regatta.engines.kubernetes.engine import submit

        loaded = submit.read_submission(submission, self.namespace)
        answer = self._bridge.call(lambda client: submit.ask_server(client, submission, loaded))
        return Preview(
            job=loaded.job,
            warnings=answer.warnings,
            objects=answer.objects,
            environment={},
            ports={},
            notes=answer.notes,
        )

    def get(self, namespace: str, name: str) -> Job:
        return self._bridge.call(lambda client: get_job(client, namespace, name))

    def jobs(self, namespace: str | None) -> list[Job]:
        """Oldest first."""

        async def listed(client: KubeClient) -> list[Job]:
            found = await client.list(PADDLE_JOBS, JobDocument, namespace=namespace or "")
            return watch.oldest_first([read_job(document) for document in found.items])

        return self._bridge.call(listed)

    def stop(self, namespace: str, name: str) -> Job:
        return self._bridge.call(lambda client: changes.stop(client, namespace, name))

    def delete(self, namespace: str, name: str) -> None:
        self._bridge.call(lambda client: changes.delete(client, namespace, name))

    def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        return self._bridge.call(
            lambda client: changes.scale(client, namespace, name, role, replicas)
        )

    def suspend(self, namespace: str, name: str) -> Job:
        return self._bridge.call(lambda client: changes.suspend(client, namespace, name, True))

    def resume(self, namespace: str, name: str) -> Job:
        return self._bridge.call(lambda client: changes.suspend(client, namespace, name, False))

    # what happened to them

    def pods(self, namespace: str, name: str) -> list[PodView]:
        async def listed(client: KubeClient) -> list[PodView]:
            job = await get_job(client, namespace, name)
            present = await list_pods(client, job)
            there = {pod.metadata.uid for pod in present}
            views = [
                gone(pod_view(job, pod))
                for uid, pod in self._followed.get(job.uid, {}).items()
                if uid not in there
            ]
            views += [pod_view(job, pod) for pod in present]
            views += list(remembered(job, views))
            order = {role: number for number, role in enumerate(job.spec.roles())}
            return sorted(views, key=lambda v: (order.get(v.role, 99), v.index, v.attempt))

        return self._bridge.call(listed)

    def events(self, namespace: str | None, name: str | None, after: int = 0) -> list[EventView]:
        """Of one job and its pods, or of all jobs."""

        async def listed(client: KubeClient) -> list[EventView]:
            story = None
            kinds = [events.ABOUT_JOBS]
            if namespace is not None and name is not None:
                story = events.Story(await get_job(client, namespace, name))
                kinds.append(events.ABOUT_PODS)
            found: list[EventView | None] = []
            for kind in kinds:
                listing = await client.list(
                    EVENTS, events.Event, namespace=namespace or "", field_selector=kind
                )
                view = story.view if story else events.job_event
                found += [view(event) for event in listing.items]
            return events.in_order(
                view
                for view in found
                if view is not None and view.id > after and name in (None, view.job)
            )

        return self._bridge.call(listed)

    def usage(self, namespace: str | None) -> capacity.ClusterUse:
        return self._bridge.call(lambda client: capacity.look(client, namespace, self.namespace))

    def version(self) -> str:
        async def asked(client: KubeClient) -> str:
            return str((await client.read_path("/version")).json().get("gitVersion", ""))

        return self._bridge.call(asked)

    # streams

    def follow_job(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> Iterator[Update]:
        """A job's log lines, and its status whenever it changed; with `query.follow` until it is
        over and drained."""

        async def updates(client: KubeClient) -> AsyncGenerator[Update, None]:
            job = await get_job(client, namespace, name)
            source: AsyncGenerator[Update, None] = logs.read_logs(client, job, query)
            if query.follow:
                source = Follower(client, job, query, status=status, seen=self._note).run()
            async with aclosing(source) as following:
                async for update in following:
                    yield update

        return self._bridge.stream(updates)

    def watch_jobs(
        self, namespace: str | None, name: str | None = None
    ) -> Iterator[Job | Gone | Synced | Lost]:
        return self._bridge.stream(lambda client: watch.watch_jobs(client, namespace, name))

    def follow_events(self, namespace: str | None, name: str | None) -> Iterator[EventView | Lost]:
        async def updates(client: KubeClient) -> AsyncGenerator[EventView | Lost, None]:
            job = None
            if namespace is not None and name is not None:
                job = await get_job(client, namespace, name)
            async with aclosing(watch.follow_events(client, namespace, job)) as following:
                async for update in following:
                    yield update

        return self._bridge.stream(updates)

    def _note(self, job: Job, pod: models.Pod) -> None:
        self._followed.setdefault(job.uid, {})[pod.metadata.uid] = pod


def open_door(kubeconfig: Path | None, context: str | None, namespace: str = "") -> KubernetesDoor:
    """The cluster of a kubeconfig's context: the one named, else the current one."""
    try:
        access = load_access(kubeconfig, context)
    except ConfigError as wrong:
        raise NoCluster(str(wrong)) from wrong
    return KubernetesDoor(access, namespace=namespace)
