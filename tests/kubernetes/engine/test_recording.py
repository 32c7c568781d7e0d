"""What is on record of jobs of a cluster, which keeps none itself: pods are cleaned, jobs deleted,
the operator or the recorder away for a while, and states, codes and reasons are still told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.engine.engine import KubernetesEngine
from regatta.server.records.job_rows import JobRow, ReplicaRow, events_of
from regatta.server.records.moments import now_millis
from regatta.server.records.recording.event_writes import Gap, gaps_between
from regatta.server.records.recording.recorder import Recorder
from regatta.server.records.team_database import Database
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.operator.builders import JobBuilder, a_job
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.server.records.recording.stories import Records, eventually, recording

Story = Callable[["Scene"], Coroutine[Any, Any, None]]
Play = Callable[[Story], None]


class Scene:
    """A cluster's jobs and what is on record of them. A recorder is there while `looking`."""

    def __init__(self, kubeconfig: Path, jobs: Jobs, database: Database) -> None:
        self.kubeconfig, self.jobs, self._database = kubeconfig, jobs, database
        self.records = Records(database)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Recorder]:
        engine = KubernetesEngine(load_access(self.kubeconfig), wide=True, recorded=True)
        try:
            async with recording(engine, self._database, engine_name="kubernetes") as recorder:
                yield recorder
        finally:
            await engine.close()

    async def pods_gone(self, name: str) -> None:
        async def none() -> bool:
            return not self.jobs.pods(name)

        await eventually(none, f"the end of {name}'s pods")

    async def phase(self, name: str, phase: str) -> None:
        """In the cluster, whoever looks."""

        async def seen() -> bool:
            return bool(self.jobs.status(name).get("phase") == phase)

        await eventually(seen, f"phase {phase} of {name}")

    async def over(self, name: str, state: str) -> JobRow:
        """On record, with every replica: kwok removes those that run without an end."""
        await self.records.shows(name, state)

        async def ended() -> JobRow | None:
            found = await self.records.replicas(name)
            over = found and all(r.phase in ("Succeeded", "Failed", "Unknown") for r in found)
            return await self.records.of(name) if over else None

        return await eventually(ended, f"the end of {name}'s replicas")

    async def farewell(self, name: str) -> JobRow:
        async def gone() -> JobRow | None:
            row = await self.records.of(name)
            return row if row is not None and row.gone_at is not None else None

        return await eventually(gone, f"the farewell of {name}")

    async def events(self, row: JobRow) -> list[str]:
        """Their reasons, the newest first."""
        return [event.reason for event in await self._database.read(events_of, row.id)]

    async def gaps(self) -> list[Gap]:
        return await self._database.read(gaps_between, 0, now_millis() + 1000)


def ends_of(replicas: list[ReplicaRow]) -> list[tuple[str, int, int, str, int | None]]:
    return [(r.role, r.replica_index, r.attempt, r.phase, r.exit_code) for r in replicas]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/team/records.sqlite")
    yield database
    database.close()


@pytest.fixture
def play(jobs: Jobs, plane: ControlPlane, database: Database) -> Play:
    scene = Scene(plane.admin_kubeconfig, jobs, database)
    return lambda story: asyncio.run(story(scene))


def failing(name: str, code: int = 3, **more: Any) -> JobBuilder:
    """Its first worker fails as soon as it is told to; nothing of it stays."""
    return a_job(name).workers(2, **more).spec(cleanPodPolicy="Always")


def test_pods_that_were_cleaned_at_once_are_on_record_with_codes_and_reasons(
    play: Play, name: str
) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(failing(name))
            await scene.records.shows(name, "RUNNING")
            how = {"reason": "OOMKilled", "message": "no room left"}
            scene.jobs.ends(f"{name}-worker-0", 137, **how)
            row = await scene.over(name, "FAILED")
            await scene.pods_gone(name)
        assert (row.exit_code, row.trigger_role, row.trigger_index) == (137, "worker", 0)
        assert "exited with code 137" in row.message
        first, second = await scene.records.replicas(name)
        assert (first.phase, first.exit_code, first.reason) == ("Failed", 137, "OOMKilled")
        assert first.message == "no room left"
        assert first.finished_at
        # Its peer was removed for its sake, by kwok without an end.
        assert (second.phase, second.reason) == ("Unknown", "NotSeen")
        assert second.node
        assert await scene.gaps() == []

    play(story)


def test_jobs_that_complete_and_are_cleaned_have_a_zero_for_each_and_their_events(
    play: Play, name: str
) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(a_job(name).workers(3).that_succeeds())
            row = await scene.over(name, "SUCCEEDED")
            await scene.pods_gone(name)

            async def told() -> bool:
                return "Completed" in await scene.events(row)

            await eventually(told, "the event of its end")
            scene.jobs.delete(name)
            await scene.farewell(name)
        assert "Completed" in await scene.events(row)
        assert ends_of(await scene.records.replicas(name)) == [
            ("worker", index, 0, "Succeeded", 0) for index in range(3)
        ]

    play(story)


def test_a_job_that_is_deleted_right_after_its_end_ended_as_it_did(play: Play, name: str) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(failing(name))
            await scene.records.shows(name, "RUNNING")
            scene.jobs.ends(f"{name}-worker-1", 5, message="no data")
            while scene.jobs.status(name).get("phase") != "Failed":  # nobody else runs meanwhile
                pass
            scene.jobs.plane.kubectl("delete", "pdj", name, "-n", scene.jobs.namespace)
            row = await scene.farewell(name)
        assert (row.state, row.exit_code, row.trigger_index) == ("FAILED", 5, 1)
        assert "exited with code 5" in row.message
        replicas = {r.replica_index: r for r in await scene.records.replicas(name)}
        assert (replicas[1].phase, replicas[1].exit_code) == ("Failed", 5)
        assert replicas[1].message == "no data"

    play(story)


def test_a_job_that_is_deleted_while_it_runs_was_stopped(play: Play, name: str) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(a_job(name).workers(1))
            await scene.records.shows(name, "RUNNING")
            scene.jobs.delete(name)
            row = await scene.farewell(name)
        assert (row.state, row.reason) == ("STOPPED", "Deleted")
        assert "while it was Running" in row.message

    play(story)


def test_every_attempt_is_told_though_its_pods_are_gone(play: Play, name: str) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(failing(name).policy(backoffLimit=1))
            await scene.records.shows(name, "RUNNING")
            scene.jobs.ends(f"{name}-worker-0", 7, message="first")

            async def second() -> bool:
                found = scene.jobs.pod(f"{name}-worker-0")
                labels = (found or {}).get("metadata", {}).get("labels", {})
                return labels.get("batch.paddlepaddle.org/attempt") == "1"

            await eventually(second, "the second attempt")
            scene.jobs.ends(f"{name}-worker-0", 8, message="second")
            row = await scene.over(name, "FAILED")
            await scene.pods_gone(name)
        assert (row.exit_code, row.retries) == (8, 1)
        first, last = await scene.records.attempts(name)
        assert (first.outcome, first.exit_code, first.message) == ("Restarted", 7, "first")
        assert (last.outcome, last.exit_code) == ("Failed", 8)
        told = ends_of(await scene.records.replicas(name))
        assert ("worker", 0, 0, "Failed", 7) in told
        assert ("worker", 0, 1, "Failed", 8) in told

    play(story)


def test_what_ended_while_no_recorder_ran_is_caught_up_with_and_the_gap_is_told(
    play: Play, name: str
) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(failing(name))
            await scene.records.shows(name, "RUNNING")
        scene.jobs.ends(f"{name}-worker-0", 9, message="unseen")
        await scene.phase(name, "Failed")
        await scene.pods_gone(name)
        async with scene.looking():
            row = await scene.over(name, "FAILED")
            gaps = await eventually(scene.gaps, "the gap")
        assert (row.exit_code, row.trigger_index) == (9, 0)
        first, second = await scene.records.replicas(name)
        assert (first.phase, first.exit_code, first.message) == ("Failed", 9, "unseen")
        assert first.node, "what was seen of it before is lost"
        assert (second.phase, second.reason) == ("Unknown", "NotSeen")
        (gap,) = gaps
        assert gap.why == "the server was not running"
        assert gap.from_at < gap.until_at

    play(story)


def test_what_was_deleted_while_no_recorder_ran_says_that_its_end_was_not_seen(
    play: Play, name: str
) -> None:
    async def story(scene: Scene) -> None:
        async with scene.looking():
            scene.jobs.create(a_job(name).workers(1))
            await scene.records.shows(name, "RUNNING")
        scene.jobs.delete(name)
        await scene.pods_gone(name)
        async with scene.looking():
            row = await scene.farewell(name)
        assert (row.state, row.end_seen) == ("UNKNOWN", False)
        assert "it was Running at" in row.notes
        (replica,) = await scene.records.replicas(name)
        assert (replica.phase, replica.reason) == ("Unknown", "NotSeen")

    play(story)


def test_an_operator_that_is_away_while_pods_end_loses_nothing(
    start_plane: Callable[..., ControlPlane], database: Database
) -> None:
    plane = start_plane(kwok_nodes=2)
    install_crd(plane)
    jobs = Jobs(plane, "default")
    scene = Scene(plane.admin_kubeconfig, jobs, database)

    async def story() -> None:
        async with scene.looking():
            with RunningOperator(plane.admin_kubeconfig):
                jobs.create(failing("away"))
                jobs.create(a_job("fine").workers(1))
                await scene.records.shows("away", "RUNNING")
                await scene.records.shows("fine", "RUNNING")
            jobs.ends("away-worker-0", 3, message="nobody was there")
            jobs.ends("fine-worker-0", 0)
            with RunningOperator(plane.admin_kubeconfig):
                row = await scene.over("away", "FAILED")
                await scene.over("fine", "SUCCEEDED")
                await scene.pods_gone("away")
        assert (row.exit_code, row.end_seen) == (3, True)
        first = (await scene.records.replicas("away"))[0]
        assert (first.exit_code, first.message) == (3, "nobody was there")
        assert ends_of(await scene.records.replicas("fine")) == [("worker", 0, 0, "Succeeded", 0)]

    asyncio.run(story())


def test_a_cluster_that_was_away_and_is_quiet_since_is_seen_again(
    plane: ControlPlane, jobs: Jobs, database: Database, name: str, tmp_path: Path
) -> None:
    """The gap is as long as the loss, and not until something happens again."""
    with FaultProxy(plane.admin_kubeconfig, tmp_path / "proxy") as proxy:
        scene = Scene(proxy.kubeconfig, jobs, database)

        async def story() -> None:
            async with scene.looking() as recorder:

                async def sees() -> bool:
                    return recorder.sees

                async def blind() -> bool:
                    return not recorder.sees

                jobs.create(a_job(name).workers(1))
                await scene.records.shows(name, "RUNNING")
                proxy.cut()
                await eventually(blind, "the loss")
                proxy.restore()
                await eventually(sees, "a look at the cluster")

                async def away() -> bool:
                    gaps = await scene.gaps()
                    return any(gap.why.startswith("the engine was away") for gap in gaps)

                await eventually(away, "the gap")
            row = await scene.records.of(name)
            assert row is not None
            assert row.state == "RUNNING"

        asyncio.run(story())
