"""A job's logs as they are: what the pods that are there have written so far."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, aclosing

from regatta.api.errors import NotPossible
from regatta.api.job import Job
from regatta.controller.observe import pod_name, size_in_effect
from regatta.engines.base import LogBatch, LogQuery, LogUpdate, Remark
from regatta.engines.kubernetes.api import models
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.refusal_words import plain_words
from regatta.engines.kubernetes.engine.logs.log_lines import Unreadable, read_lines
from regatta.engines.kubernetes.engine.logs.log_place import (
    ONLY_THE_TAIL,
    Place,
    Position,
    Read,
    in_batches,
    in_order_of_time,
    length_of,
)
from regatta.engines.kubernetes.engine.logs.sieve import Sieve, sieve_for
from regatta.engines.kubernetes.engine.pod_views import NOTHING_ELSE, list_pods
from regatta.engines.kubernetes.objects import podstate
from regatta.engines.kubernetes.objects.children import observe_pod
from regatta.engines.logs.selection import check_query, is_chosen, is_whole, listed
from regatta.engines.upcoming import next_of

#: So many logs are open, and put in the order of time, at once.
TOGETHER = 64


def replica_of(job: Job, pod: models.Pod) -> tuple[str, int]:
    seen = observe_pod(job, pod, NOTHING_ELSE)
    return seen.role, seen.index


def has_started(pod: models.Pod) -> bool:
    """Whether there is a log to ask for: the API refuses to show that of a container to come."""
    main = podstate.main_container(pod)
    if main is None:
        return False
    state, before = main.state, main.last_state
    return bool(state.running or state.terminated or before.terminated)


def restarts_of(pod: models.Pod) -> int:
    main = podstate.main_container(pod)
    return main.restart_count if main else 0


def may_be_a_later_run(pod: models.Pod, place: Place) -> bool:
    """Whether a log that is opened now may be that of a later run than the pod's status names, so
    that what was not read of the place's run is in the log before it: a node sends the log of a
    restarted container before the status tells of it."""
    # Where nothing was read of a later run than the first, the log before it would be one that
    # nobody asked for.
    return pod.spec.restart_policy != "Never" and (place.run == 0 or bool(place.since))


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


def unreadable(replica: str, why: str) -> Remark:
    return Remark(f"the log of {replica} cannot be read: {why}")


async def read_logs(
    client: KubeClient, job: Job, query: LogQuery
) -> AsyncGenerator[LogUpdate, None]:
    """All that is there now, pods interleaved by time."""
    check_query(job, query, follow=False)
    if query.attempt not in (None, job.status.attempt):
        raise NotPossible(
            "the log of an earlier attempt went with its pods: a cluster keeps the present one's; "
            "`regatta logs -f` reads along while a job runs"
        )
    with sieve_for(query) as sieve:
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
                "no replica has run before in its present pod; the pods of earlier tries were "
                "removed, and on a cluster their logs with them"
            )
        after = {pod.metadata.uid: starting_text(pod, query) for _, pod in readable}
        after = {uid: text for uid, text in after.items() if text}
        troubles: list[Remark] = []
        for first in range(0, len(readable), TOGETHER):
            sources = [
                _log(client, replica, pod, query, sieve, troubles)
                for replica, pod in readable[first : first + TOGETHER]
            ]
            async with aclosing(merged(sources)) as batches:
                async for reads in batches:
                    after |= {read.uid: str(read.position) for read in reads}
                    yield LogBatch(tuple(read.line for read in reads), dict(after))
        for trouble in troubles:
            yield trouble


def starting_text(pod: models.Pod, query: LogQuery) -> str:
    """Where a pod's log begins for a query, as it is told while no line of it was."""
    if query.after:
        return query.after.get(pod.metadata.uid, "")
    return ONLY_THE_TAIL if query.tail is not None else ""


def _is_readable(pod: models.Pod, query: LogQuery) -> bool:
    return restarts_of(pod) > 0 if query.previous else has_started(pod)


async def _log(
    client: KubeClient,
    replica: str,
    pod: models.Pod,
    query: LogQuery,
    sieve: Sieve,
    troubles: list[Remark],
) -> AsyncGenerator[list[Read], None]:
    known = starting_text(pod, query)
    run = restarts_of(pod) - (1 if query.previous else 0)
    resumed = known not in ("", ONLY_THE_TAIL)
    place = Place(pod.metadata.uid, Position.read(known) if resumed else Position(run))
    try:
        if resumed and not query.previous and place.run < run:
            async with aclosing(end_of_last_run(client, replica, pod, place, sieve)) as end:
                async for reads in end:
                    yield reads
        place.next_run(run)
        tail = query.tail if known == ONLY_THE_TAIL else None
        look_back = resumed and not query.previous and may_be_a_later_run(pod, place)
        async with aclosing(
            one_run(
                client,
                replica,
                pod,
                place,
                sieve,
                tail=tail,
                previous=query.previous,
                look_back=look_back,
            )
        ) as run_log:
            async for reads in run_log:
                yield reads
    except ApiError as refused:
        if refused.forbidden or refused.status == 401:
            raise
        # One node that is away must not hide what the others have to say.
        troubles.append(unreadable(replica, plain_words(refused)))
    except Unreadable as words:
        troubles.append(unreadable(replica, str(words)))


async def end_of_last_run(
    client: KubeClient, replica: str, pod: models.Pod, place: Place, sieve: Sieve
) -> AsyncGenerator[list[Read], None]:
    """What a container wrote before it was restarted in place, as far as the node still has it."""
    try:
        async with aclosing(one_run(client, replica, pod, place, sieve, previous=True)) as end:
            async for reads in end:
                yield reads
    except ApiError as refused:
        if refused.status not in (400, 404):
            raise
    except Unreadable:
        pass


async def one_run(
    client: KubeClient,
    replica: str,
    pod: models.Pod,
    place: Place,
    sieve: Sieve,
    *,
    tail: int | None = None,
    previous: bool = False,
    look_back: bool = False,
) -> AsyncGenerator[list[Read], None]:
    """What one run of a container has written so far: from the place on, only what was asked for.
    Of that the last `tail` lines, where given. With `look_back`, behind what the run before it
    wrote from the place on."""
    # With a pattern the last lines are counted among those that match, so all must be read. And
    # at least one is read, to know where the log ends.
    tail_lines = None if tail is None or sieve.has_pattern else max(tail, 1)
    last: deque[Read] = deque(maxlen=tail)
    place.reopened()
    async with client.logs(
        pod.metadata.name,
        namespace=pod.metadata.namespace,
        container=pod.spec.containers[0].name,
        timestamps=True,
        previous=previous,
        tail_lines=tail_lines,
        since_time=place.since or sieve.since,
    ) as parts:
        waiting: list[Read] = []
        async for lines in read_lines(replica, parts):
            if look_back:
                look_back = False
                async with aclosing(end_of_last_run(client, replica, pod, place, sieve)) as end:
                    async for reads in end:
                        yield reads
                place.reopened()
            waiting += place.news(lines)
            if not is_whole(len(waiting), length_of(waiting)):
                continue
            chosen, waiting = await sieve.choose(waiting), []
            if tail is not None:
                last.extend(chosen)
            elif chosen:
                yield chosen
        chosen = await sieve.choose(waiting)
    if tail is not None:
        last.extend(chosen)
        chosen = list(last)
    if chosen:
        yield chosen


async def merged(
    sources: list[AsyncGenerator[list[Read], None]],
) -> AsyncGenerator[list[Read], None]:
    """By time, in batches. Every source is ahead of what was told."""
    async with AsyncExitStack() as stack:
        for source in sources:
            await stack.enter_async_context(aclosing(source))
        # A source can be closed only while it is not at work: what one is refused for waits until
        # all have begun.
        heads = await asyncio.gather(
            *(next_of(source) for source in sources), return_exceptions=True
        )
        ahead: dict[int, list[Read]] = {}
        for number, head in enumerate(heads):
            if isinstance(head, BaseException):
                raise head
            if head:
                ahead[number] = head
        while ahead:
            # Up to here every source has said what it has to say.
            horizon = min(reads[-1].line.at for reads in ahead.values())
            ready: list[Read] = []
            for number, reads in list(ahead.items()):
                count = _up_to(reads, horizon)
                ready += reads[:count]
                ahead[number] = reads[count:]
                if count == len(reads):
                    del ahead[number]
                    if (more := await next_of(sources[number])) is not None:
                        ahead[number] = more
            ready = in_order_of_time(ready)
            for batch in in_batches(ready):
                yield batch


def _up_to(reads: list[Read], horizon: str) -> int:
    """How many from the front; a line that is out of order waits for nobody."""
    if reads[-1].line.at <= horizon:
        return len(reads)
    count = 0
    for number, read in enumerate(reads, 1):
        if read.line.at <= horizon:
            count = number
    return count
