"""A cluster as an `Engine`: everything a door can ask of it, one method each."""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from regatta.api.errors import NoCluster
from regatta.api.job import Job
from regatta.controller.plan import Instant
from regatta.engines.base import (
    Accepted,
    JobUpdate,
    LogQuery,
    LogUpdate,
    Lost,
    Preview,
    Shell,
    Submission,
    WatchUpdate,
)
from regatta.engines.blocking import Blocking, in_loop_thread
from regatta.engines.inventory import (
    Capacity,
    EventView,
    PodView,
    Removal,
    RunView,
    Storage,
    Traits,
)
from regatta.engines.kubernetes.access.config import ClusterAccess, load_access
from regatta.engines.kubernetes.api.client import ClientSettings, KubeClient
from regatta.engines.kubernetes.api.exchange import CallObserver
from regatta.engines.kubernetes.api.kube_errors import ApiError, ConfigError
from regatta.engines.kubernetes.api.resources import EVENTS, PADDLE_JOBS
from regatta.engines.kubernetes.cache.informer import InformerSettings
from regatta.engines.kubernetes.cache.shared import SharedInformers
from regatta.engines.kubernetes.engine import capacity, events, job_secrets, patches, watch
from regatta.engines.kubernetes.engine.asking import asked, streamed
from regatta.engines.kubernetes.engine.jobs import (
    find_document,
    get_document,
    get_job,
    no_such_run_here,
    read_job,
    run_view,
)
from regatta.engines.kubernetes.engine.logs import job_logs
from regatta.engines.kubernetes.engine.logs.follower import Follower
from regatta.engines.kubernetes.engine.members.member_namespaces import MemberNamespaces
from regatta.engines.kubernetes.engine.memory.departures import MOST_DEPARTED, Departures
from regatta.engines.kubernetes.engine.memory.followed import MOST_FOLLOWED, FollowedPods
from regatta.engines.kubernetes.engine.pod_views import (
    going,
    gone,
    list_pods,
    main_first,
    pod_view,
    remembered,
)
from regatta.engines.kubernetes.engine.subscriptions import Subscriptions
from regatta.engines.kubernetes.engine.unattended import with_note
from regatta.engines.kubernetes.objects.job_document import JobDocument
from regatta.engines.listing import ended_last
from regatta.engines.one_run import the_run
from regatta.engines.shell_refusal import refuse_shell

if TYPE_CHECKING:
    from regatta.api.load import Loaded

# What reads job files needs pydantic; it is imported by those that submit, so that the others
# start quickly.

#: Somebody waits for the answer: a cluster that is away should be told so soon.
CLIENT = ClientSettings(retries=2)
INFORMERS = InformerSettings(first_pause_seconds=0.2, longest_pause_seconds=5.0)
#: A server's readers come and go; what it knows of the cluster is kept for the next one.
LINGER_SECONDS = 10.0

# Informers say on their log what a stream tells as `Lost`; a terminal need not see it twice.
logging.getLogger("regatta.engines.kubernetes").addHandler(logging.NullHandler())


class KubernetesEngine:
    def __init__(
        self,
        access: ClusterAccess,
        *,
        namespace: str = "",
        wide: bool = False,
        members_only: bool = False,
        recorded: bool | None = None,
        linger_seconds: float | None = None,
        observer: CallObserver | None = None,
    ) -> None:
        """Made inside the loop that it lives in.

        `wide`: many readers share what is watched of the whole cluster, as in a server. Else as
        little is watched as one reader needs.

        `members_only`: jobs are those of a team's members, who have no rights of their own in the
        cluster. They run in namespaces that `make_namespace` made, and ask for no more than
        `member_rules` lets them.

        `recorded`: somebody watches all jobs and writes down what becomes of them; then what the
        cluster has no more can be asked for a while (`departed`). As a team's server does, unless
        it is said.
        """
        recorded = members_only if recorded is None else recorded
        self.access = access
        self._namespace = namespace or access.namespace
        self._client = KubeClient(access, CLIENT, observer=observer)
        linger = (LINGER_SECONDS if wide else 0.0) if linger_seconds is None else linger_seconds
        self._informers = SharedInformers(self._client, INFORMERS, linger_seconds=linger)
        self._subscriptions = Subscriptions(self._informers, wide=wide)
        self._followed = FollowedPods(MOST_DEPARTED if recorded else MOST_FOLLOWED)
        self._departures = Departures(self._subscriptions, self._followed) if recorded else None
        self._members_only = members_only
        self._namespaces = MemberNamespaces(self._client)

    @property
    def informers_running(self) -> int:
        return self._informers.running

    async def close(self) -> None:
        await self._informers.close()
        await self._client.close()

    async def traits(self) -> Traits:
        return Traits(engine="kubernetes", namespace=self._namespace, takes_shell=False)

    @asked
    async def version(self) -> str:
        return str((await self._client.read_path("/version")).json().get("gitVersion", ""))

    # Jobs

    @asked
    async def submit(self, submission: Submission, shell: Shell | None = None) -> Accepted:
        from regatta.engines.kubernetes.engine import submit

        loaded = await self._read(submission, shell)
        namespace = loaded.job.namespace
        if self._members_only:
            await self._namespaces.require(namespace)
        try:
            return await submit.submit(self._client, submission, loaded)
        except ApiError as refused:
            if refused.forbidden or refused.not_found:
                self._namespaces.forget(namespace)
            raise

    async def _read(self, submission: Submission, shell: Shell | None) -> Loaded:
        from regatta.engines.kubernetes.engine import submit

        refuse_shell(shell)
        return await asyncio.to_thread(
            submit.read, submission, self._namespace, members_only=self._members_only
        )

    @asked
    async def make_namespace(self, namespace: str) -> None:
        """For an account of a team: its own, in which its jobs are nobody else. Again and again
        costs nothing. Raises ClusterRefused, NotAllowed or NotPossible, with what to do."""
        await self._namespaces.ensure(namespace)

    @asked
    async def preview(
        self, submission: Submission, shell: Shell | None = None, *, stored: bool = False
    ) -> Preview:
        """What the operator would create, without a word to the cluster; `stored`: what the API
        server would store, or its refusal."""
        from regatta.engines.kubernetes.engine import paper, submit

        loaded = await self._read(submission, shell)
        if stored:
            if self._members_only:
                await self._namespaces.require(loaded.job.namespace)
            return await submit.ask_server(self._client, submission, loaded)
        return paper.preview(loaded, Instant(datetime.now(UTC), 0.0))

    @asked
    async def get(self, namespace: str, name: str, uid: str = "") -> Job:
        return with_note(await get_job(self._client, namespace, name, uid), datetime.now(UTC))

    @asked
    async def list(
        self, namespace: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        return ended_last(await self._list(namespace), finished)

    async def _list(self, namespace: str | None) -> builtins.list[Job]:
        found = await self._client.list(PADDLE_JOBS, JobDocument, namespace=namespace or "")
        now = datetime.now(UTC)
        return watch.oldest_first([with_note(read_job(document), now) for document in found.items])

    @asked
    async def history(
        self,
        namespace: str | None = None,
        name: str | None = None,
        *,
        uid: str = "",
        limit: int | None = None,
    ) -> builtins.list[RunView]:
        """The jobs that are there: a cluster keeps no record of others."""
        jobs = await self._list(namespace)
        if not uid:
            named = [run_view(job) for job in reversed(jobs) if name in (None, job.name)]
            return named[:limit]
        found = the_run(uid, [run_view(job) for job in jobs], namespace, name)
        if found is None:
            raise no_such_run_here(uid)
        return [found]

    @asked
    async def stop(self, namespace: str, name: str) -> Job:
        return await patches.stop(self._client, namespace, name)

    @asked
    async def delete(self, namespace: str, name: str) -> None:
        self._let_go(await patches.delete(self._client, namespace, name))

    def _let_go(self, job: Job) -> None:
        if self._departures is None:  # else it is asked for yet
            self._followed.forget(job)

    @asked
    async def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        def goes(job: Job) -> bool:
            if not job.finished:
                return live
            ended = job.status.completion_time
            return ended_before is None or (ended is not None and ended < ended_before)

        doomed = [job for job in await self._list(namespace) if goes(job) and not job.deleting]
        batch = doomed[: patches.AT_ONCE]
        await patches.delete_many(self._client, batch)
        for job in batch:
            self._let_go(job)
        ending = {job.name: job.uid for job in batch}
        return Removal(ending=ending, left=len(doomed) - len(batch))

    @asked
    async def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job:
        return await patches.scale(self._client, namespace, name, role, replicas)

    @asked
    async def suspend(self, namespace: str, name: str) -> Job:
        return await patches.suspend(self._client, namespace, name, True)

    @asked
    async def resume(self, namespace: str, name: str) -> Job:
        return await patches.suspend(self._client, namespace, name, False)

    # What happened to them

    @asked
    async def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]:
        return await self._pods(await get_job(self._client, namespace, name, uid))

    async def _pods(self, job: Job) -> builtins.list[PodView]:
        awaited = self._departures.not_gone_yet(job) if self._departures is not None else []
        present = await list_pods(self._client, job)
        there = {pod.metadata.uid for pod in present}
        left = [pod for pod in self._followed.of(job) if pod.metadata.uid not in there]
        there |= {pod.metadata.uid for pod in left}
        views = [pod_view(job, pod) for pod in present]
        views += [gone(pod_view(job, main_first(job, pod))) for pod in left]
        views += [going(pod_view(job, p)) for p in awaited if p.metadata.uid not in there]
        views += [*remembered(job, views)]
        order = {role: number for number, role in enumerate(job.spec.roles())}
        return sorted(views, key=lambda v: (order.get(v.role, 99), v.index, v.attempt))

    @asked
    async def departed(self, *, uid: str) -> tuple[Job, builtins.list[PodView]] | None:
        """A job that is no more, as it was when it went, with all that is known of its replicas;
        None where nobody watched, or too long ago."""
        job = None if self._departures is None else self._departures.job(uid)
        return None if job is None else (job, await self._pods(job))

    @asked
    async def drop_secrets(self, job: Job) -> None:
        """Of one that is over."""
        await job_secrets.drop_of_ended(self._client, job)

    @asked
    async def drop_secrets_of_submit(self, namespace: str, name: str, key: str) -> None:
        """Of one that was cut off and made no job."""
        await job_secrets.drop_of_submit(self._client, namespace, name, key)

    @asked
    async def events(
        self, namespace: str | None, name: str | None, after: int = 0, uid: str = ""
    ) -> builtins.list[EventView]:
        """Of one job and its pods, or of all jobs."""
        story = None
        kinds = [events.ABOUT_JOBS]
        if namespace is not None and name is not None:
            story = events.Story(await get_job(self._client, namespace, name, uid))
            kinds.append(events.ABOUT_PODS)
        found: builtins.list[EventView | None] = []
        for kind in kinds:
            listing = await self._client.list(
                EVENTS, events.Event, namespace=namespace or "", field_selector=kind
            )
            view = story.view if story else events.job_event
            found += [view(event) for event in listing.items]
        return [
            view for view in events.in_order(found) if view.id > after and name in (None, view.job)
        ]

    @asked
    async def capacity(self, namespace: str | None = None) -> Capacity:
        return await capacity.look(self._client, namespace, self._namespace)

    async def storage(self) -> Storage:
        return Storage()

    # Streams

    @streamed
    async def logs(
        self, namespace: str, name: str, query: LogQuery
    ) -> AsyncGenerator[LogUpdate, None]:
        job = await get_job(self._client, namespace, name, query.uid)
        async with aclosing(job_logs.read_logs(self._client, job, query)) as updates:
            async for update in updates:
                yield update

    @streamed
    async def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> AsyncGenerator[JobUpdate, None]:
        found = await get_document(self._client, namespace, name, query.uid)
        follower = Follower(
            self._client,
            self._subscriptions,
            read_job(found),
            query,
            status=status,
            seen=self._followed.note,
            version=found.metadata.resource_version,
        )
        async with aclosing(follower.run()) as updates:
            async for update in updates:
                yield update

    @streamed
    async def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> AsyncGenerator[WatchUpdate, None]:
        seen = ""
        if namespace and name:
            found = await find_document(self._client, namespace, name)
            seen = found.metadata.resource_version if found else ""
        updates = watch.watch_jobs(self._subscriptions, namespace, name, seen=seen)
        async with AsyncExitStack() as stack:
            if self._departures is not None and not (namespace or name):
                await stack.enter_async_context(self._departures.watched())
            async for update in await stack.enter_async_context(aclosing(updates)):
                yield update

    @streamed
    async def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> AsyncGenerator[EventView | Lost, None]:
        job = None
        if namespace is not None and name is not None:
            job = await get_job(self._client, namespace, name)
        updates = watch.follow_events(self._subscriptions, namespace, name, job, after)
        async with aclosing(updates) as following:
            async for update in following:
                yield update


def open_cluster(kubeconfig: Path | None, context: str | None, namespace: str = "") -> Blocking:
    """The cluster of a kubeconfig's context: the one named, else the current one."""
    access = cluster_access(kubeconfig, context)
    return in_loop_thread(lambda: KubernetesEngine(access, namespace=namespace))


def cluster_access(kubeconfig: Path | None, context: str | None) -> ClusterAccess:
    """Where the cluster is and who we are there. Raises NoCluster."""
    try:
        return load_access(kubeconfig, context)
    except ConfigError as wrong:
        raise NoCluster(str(wrong)) from wrong
