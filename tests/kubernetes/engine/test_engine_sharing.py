"""Many readers of one engine: what they cost the cluster, and that each is told its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from regatta.api.errors import NotAllowed
from regatta.api.job import Job
from regatta.engines.base import Gone, LogQuery, Synced
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.engines import wide
from tests.kubernetes.operator.running import Jobs

READERS = 50
#: What alice needs to follow jobs of one namespace.
LOOKING = (
    *("--verb=get,list,watch", "--resource=pods,pods/log,events"),
    "--resource=paddlejobs.batch.paddlepaddle.org",
)


@pytest.fixture
def jobs(plane: ControlPlane, namespace: str) -> Jobs:
    """An operator may be at work on them, or not."""
    return Jobs(plane, namespace)


class Told:
    """What a stream has said so far, read in a task of its own."""

    def __init__(self, stream: AsyncGenerator[Any, None]) -> None:
        self.updates: list[Any] = []
        self.task = asyncio.create_task(self._read(stream))

    async def _read(self, stream: AsyncGenerator[Any, None]) -> None:
        async with aclosing(stream) as updates:
            async for update in updates:
                self.updates.append(update)

    def steps_of(self, name: str) -> set[str]:
        return {
            update.metadata.labels.get("step", "")
            for update in self.updates
            if isinstance(update, Job) and update.name == name
        }

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def step(jobs: Jobs, name: str, number: int) -> None:
    change = {"metadata": {"labels": {"step": str(number)}}}
    jobs.api.patch(f"{jobs.path}/{name}", change)


@in_a_loop
async def test_readers_of_many_jobs_open_one_watch_for_each_kind_of_thing(
    plane: ControlPlane, jobs: Jobs
) -> None:
    names = [f"job-{number}" for number in range(READERS)]
    for name in names:
        jobs.create(jobfiles.running(name, workers=1))
    async with wide(plane.admin_kubeconfig, linger_seconds=0.2) as (engine, calls):
        space = jobs.namespace
        watchers = {name: Told(engine.watch(space, name)) for name in names}
        followers = {name: Told(engine.follow(space, name, LogQuery())) for name in names}
        stories = [Told(engine.follow_events(space, name)) for name in names]
        everybody = [*watchers.values(), *followers.values(), *stories]
        await eventually(lambda: all(Synced() in told.updates for told in watchers.values()))
        await eventually(lambda: all(told.updates for told in followers.values()))
        await eventually(lambda: engine.informers_running == 4)

        step(jobs, "job-7", 1)
        await eventually(lambda: watchers["job-7"].steps_of("job-7") == {"", "1"})
        await eventually(lambda: followers["job-7"].steps_of("job-7") == {"", "1"})
        step(jobs, "job-8", 1)
        await eventually(lambda: watchers["job-8"].steps_of("job-8") == {"", "1"})

        for name, told in watchers.items():
            assert {update.name for update in told.updates if isinstance(update, Job)} == {name}
            assert told.steps_of(name) == ({"", "1"} if name in ("job-7", "job-8") else {""})
        wanted = {
            ("list", "paddlejobs"): 1,
            ("watch", "paddlejobs"): 1,
            ("list", "pods"): 1,
            ("watch", "pods"): 1,
            ("list", "events"): 2,
            ("watch", "events"): 2,
        }
        await eventually(lambda: {c: n for c, n in calls.items() if c[0] != "get"} == wanted)
        assert not any(told.task.done() for told in everybody)
        for told in everybody:
            await told.leave()
        await eventually(lambda: engine.informers_running == 0)


@in_a_loop
async def test_a_watcher_of_everything_hears_of_every_namespace_and_of_the_end(
    plane: ControlPlane, jobs: Jobs
) -> None:
    jobs.create(jobfiles.running("here", workers=1))
    async with wide(plane.admin_kubeconfig) as (engine, _):
        told = Told(engine.watch())
        one = Told(engine.watch(None, "here"))
        await eventually(lambda: Synced() in told.updates and Synced() in one.updates)
        assert told.steps_of("here") == one.steps_of("here") == {""}

        jobs.create(jobfiles.running("there", workers=1))
        jobs.delete("here")

        gone = Gone(jobs.namespace, "here")
        await eventually(lambda: gone in told.updates and gone in one.updates)
        await eventually(lambda: told.steps_of("there"))
        assert one.steps_of("there") == set()
        await told.leave()
        await one.leave()
        assert engine.informers_running == 0


@in_a_loop
async def test_where_not_everything_may_be_looked_at_readers_of_a_namespace_share(
    plane: ControlPlane, jobs: Jobs
) -> None:
    space = jobs.namespace
    plane.kubectl("create", "role", "looking", *LOOKING, "-n", space)
    plane.kubectl("create", "rolebinding", "alice", "--role=looking", "--user=alice", "-n", space)
    for name in ("a", "b"):
        jobs.create(jobfiles.running(name, workers=1))
    kubeconfig = plane.kubeconfig("alice")
    async with wide(kubeconfig) as (engine, calls), AsyncExitStack() as stack:
        await eventually_allowed(engine, space)
        calls.clear()
        told = [Told(engine.watch(space, name)) for name in ("a", "b", "a", "b")]
        told += [Told(engine.follow(space, name, LogQuery())) for name in ("a", "b")]
        for each in told:
            stack.push_async_callback(each.leave)
        await eventually(lambda: all(each.updates for each in told))
        await eventually(lambda: engine.informers_running == 2)

        await eventually(lambda: calls["watch", "paddlejobs"] == calls["watch", "pods"] == 1)
        with pytest.raises(NotAllowed, match="alice, who may not list paddlejobs in all namesp"):
            await anext(engine.watch())


async def eventually_allowed(engine: Any, namespace: str) -> None:
    async def may() -> bool:
        try:
            await engine.list(namespace)
        except NotAllowed:
            return False
        return True

    async with asyncio.timeout(60):
        while not await may():
            await asyncio.sleep(0.05)
