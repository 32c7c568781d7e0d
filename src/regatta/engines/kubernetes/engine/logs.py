"""A job's logs as they are: what the pods that are there have written so far."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AsyncExitStack, aclosing

from regatta.api.errors import NotPossible
from regatta.api.job import Job
from regatta.controller.observe import pod_name, size_in_effect
from regatta.engines.base import Gone, LogLine, LogQuery, Lost, Remark
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.errors import ApiError
from regatta.engines.kubernetes.engine.log_lines import Unreadable, Wanted, read_lines
from regatta.engines.kubernetes.engine.pod_views import NOTHING_ELSE, list_pods
from regatta.engines.kubernetes.engine.refusals import plain_words
from regatta.engines.kubernetes.objects import podstate
from regatta.engines.kubernetes.objects.children import observe_pod

Update = Lines | Remark | Job | Gone | Lost

BATCH = 500
#: So many logs are open, and put in the order of time, at once.
TOGETHER = 64


def replica_of(job: Job, pod: models.Pod) -> tuple[str, int]:
    seen = observe_pod(job, pod, NOTHING_ELSE)
    return seen.role, seen.index


def is_chosen(query: LogQuery, role: str, index: int) -> bool:
    return query.role in (None, role) and query.index in (None, index)


def check_role(job: Job, query: LogQuery) -> None:
    roles = job.spec.roles()
    if query.role is not None and query.role not in roles:
        raise NotPossible(
            f"{job.name} has no role {query.role!r}; its roles are {', '.join(roles)}"
        )


def has_started(pod: models.Pod) -> bool:
    """Whether there is a log to ask for: the API refuses to show that of a container to come."""
    main = podstate.main_container(pod)
    if main is None:
        return False
    state, before = main.state, main.last_state
    return bool(state.running or state.terminated or before.terminated)


def lost_logs(job: Job, present: Iterable[tuple[str, int]], query: LogQuery) -> Remark | None:
    """Which replicas' logs went with their pods."""
    there = set(present)
    seen = {ref.name for role in job.status.roles().values() for ref in role.refs}
    missing = [
        f"{role}-{index}"
        for role, count in size_in_effect(job).items()
        for index in range(count)
        if is_chosen(query, role, index) and (role, index) not in there
        # A job that is over had all of them; a live one those that it remembers.
        if (job.finished and job.status.start_time) or pod_name(job, role, index) in seen
    ]
    if not missing:
        return None
    why = f" (cleanPodPolicy: {job.spec.clean_pod_policy})" if job.finished else ""
    return Remark(
        f"no longer there{why}: {listed(missing)}. On a cluster a log goes with its pod; "
        "`cleanPodPolicy: Never` keeps pods, and `regatta logs -f` reads along while a job runs"
    )


def listed(replicas: list[str]) -> str:
    more = f" and {len(replicas) - 8} more" if len(replicas) > 8 else ""
    return ", ".join(replicas[:8]) + more


async def read_logs(client: KubeClient, job: Job, query: LogQuery) -> AsyncGenerator[Update, None]:
    """All that is there now, pods interleaved by time."""
    check_role(job, query)
    wanted = Wanted(query)
    pods = await list_pods(client, job)
    chosen = [
        (f"{role}-{index}", pod)
        for pod in pods
        for role, index in [replica_of(job, pod)]
        if is_chosen(query, role, index)
    ]
    remark = lost_logs(job, [replica_of(job, pod) for pod in pods], query)
    if remark is not None:
        yield remark
    readable = [(replica, pod) for replica, pod in chosen if _is_readable(pod, query)]
    if query.previous and chosen and not readable:
        yield Remark(
            "no replica has run before in its present pod; the pods of earlier tries were removed, "
            "and on a cluster their logs with them"
        )
    troubles: list[str] = []
    for first in range(0, len(readable), TOGETHER):
        sources = [
            _log(client, replica, pod, query, wanted, troubles)
            for replica, pod in readable[first : first + TOGETHER]
        ]
        async with aclosing(_merged(sources)) as lines:
            async for batch in _batches(lines):
                yield Lines(batch)
    for trouble in troubles:
        yield Remark(trouble)


def _is_readable(pod: models.Pod, query: LogQuery) -> bool:
    if not query.previous:
        return has_started(pod)
    main = podstate.main_container(pod)
    return main is not None and main.restart_count > 0


async def _log(
    client: KubeClient,
    replica: str,
    pod: models.Pod,
    query: LogQuery,
    wanted: Wanted,
    troubles: list[str],
) -> AsyncGenerator[LogLine, None]:
    # With a pattern the last lines are counted among those that match, so all must be read.
    counted_here = query.tail is not None and wanted.filters
    last: deque[LogLine] = deque(maxlen=query.tail if counted_here else None)
    try:
        async with client.logs(
            pod.metadata.name,
            namespace=pod.metadata.namespace,
            container=pod.spec.containers[0].name,
            timestamps=True,
            previous=query.previous,
            tail_lines=None if counted_here else query.tail,
            since_time=wanted.since,
        ) as parts:
            async for line in read_lines(replica, parts):
                if line not in wanted:
                    continue
                if counted_here:
                    last.append(line)
                else:
                    yield line
    except ApiError as refused:
        if refused.forbidden or refused.status == 401:
            raise
        # One node that is away must not hide what the others have to say.
        troubles.append(f"the log of {replica} cannot be read: {plain_words(refused)}")
    except Unreadable as words:
        troubles.append(f"the log of {replica} cannot be read: {words}")
    for line in last:
        yield line


async def _merged(sources: list[AsyncGenerator[LogLine, None]]) -> AsyncGenerator[LogLine, None]:
    """By time. Every source is one line ahead of what was told."""
    async with AsyncExitStack() as stack:
        for source in sources:
            await stack.enter_async_context(aclosing(source))
        heads = await asyncio.gather(*(anext(source, None) for source in sources))
        ahead = {n: line for n, line in enumerate(heads) if line is not None}
        while ahead:
            number = min(ahead, key=lambda n: ahead[n].at)
            yield ahead.pop(number)
            line = await anext(sources[number], None)
            if line is not None:
                ahead[number] = line


async def _batches(lines: AsyncIterator[LogLine]) -> AsyncIterator[tuple[LogLine, ...]]:
    batch: list[LogLine] = []
    async for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)
