"""A team on a real node: what a member's process finds there, and what is on record of its end.

Kubelet, containers and their exit codes are real; the operator is ours, in this process.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.base import LogBatch, LogQuery, Submission
from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.engine.engine import KubernetesEngine
from regatta.server.records.moments import now_millis
from regatta.server.records.recording.event_writes import gaps_between
from regatta.server.records.team_database import Database
from tests.api.builders import a_job
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import build_image, remove_image
from tests.kubernetes.controlplane.node import import_image
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.server.records.recording.stories import Records, eventually, recording

pytestmark = pytest.mark.timeout(900)

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
#: A program that ends when it is told to.
WAITS = "while [ ! -e /tmp/end ]; do sleep 0.1; done"
Engine = KubernetesEngine
_numbers = count(1)


@pytest.fixture(scope="module")
def image(real_cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nUSER 1000\n")
    tag = import_image(build_image(folder, f"registry.local/member-{folder.parent.name}:1"))
    remove_image(tag)  # the node has it now
    return tag


class Members:
    """Accounts of a team on the real cluster, and their jobs."""

    def __init__(self, cluster: Access, image: str, suffix: str) -> None:
        self.cluster, self._image = cluster, image
        self.ann, self.bob = f"user-ann-{suffix}", f"user-bob-{suffix}"

    def play(self, story: Callable[[Engine], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            async with self.engine() as engine:
                await engine.make_namespace(self.ann)
                await engine.make_namespace(self.bob)
                await story(engine)

        asyncio.run(whole())

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        access = load_access(self.cluster.admin_kubeconfig)
        engine = Engine(access, wide=True, members_only=True, recorded=True)
        try:
            yield engine
        finally:
            await engine.close()

    def submission(
        self, namespace: str, name: str, script: str, workers: int = 1, **spec: Any
    ) -> Submission:
        return Submission(text=self.job(name, script, workers, **spec).text(), namespace=namespace)

    def job(self, name: str, script: str, workers: int = 1, **spec: Any) -> a_job:
        job = a_job(name).workers(workers).spec(**{"cleanPodPolicy": "Never", **spec})
        asks = {"requests": {"cpu": "20m"}}
        job.with_container(image=self._image, command=["sh", "-c", script], resources=asks)
        return job.pod(terminationGracePeriodSeconds=1)

    async def phase(self, engine: Engine, namespace: str, name: str, *phases: str) -> str:
        async def reached() -> str:
            status = (await engine.get(namespace, name)).status
            return str(status.phase) if str(status.phase) in phases else ""

        return await eventually(reached, f"{' or '.join(phases)} of {name}")


@pytest.fixture
def members(real_cluster: Access, real_turn: None, image: str) -> Iterator[Members]:
    install_crd(real_cluster)
    found = Members(real_cluster, image, f"{os.getpid()}-{next(_numbers)}")
    yield found
    for namespace in (found.ann, found.bob):
        real_cluster.kubectl("delete", "namespace", namespace, "--wait=false", check=False)


@pytest.fixture
def operator(members: Members) -> Iterator[RunningOperator]:
    with RunningOperator(members.cluster.admin_kubeconfig) as running:
        yield running


async def _said(engine: Engine, namespace: str, name: str) -> str:
    lines = [
        line.text
        async for update in engine.logs(namespace, name, LogQuery())
        if isinstance(update, LogBatch)
        for line in update.lines
    ]
    return "\n".join(lines)


@pytest.mark.usefixtures("operator")
def test_no_process_of_a_member_has_a_token_of_the_cluster(
    members: Members, real_namespace: str
) -> None:
    look = f"if [ -e {TOKEN}/token ]; then echo found; exit 7; else echo none; fi"

    async def story(engine: Engine) -> None:
        await engine.submit(members.submission(members.ann, "look", look))
        assert await members.phase(engine, members.ann, "look", "Completed", "Failed") == (
            "Completed"
        )
        assert await _said(engine, members.ann, "look") == "none"
        # The same elsewhere in this cluster, where nobody closed the account.
        plain = Jobs(members.cluster, real_namespace)
        plain.create(members.job("look", look).doc())
        await members.phase(engine, real_namespace, "look", "Failed")
        assert await _said(engine, real_namespace, "look") == "found"

    members.play(story)


@pytest.mark.usefixtures("operator")
def test_a_job_that_names_another_members_secret_does_not_start(members: Members) -> None:
    secret = {"metadata": {"name": "keys"}, "stringData": {"key": "planted"}}
    api = members.cluster.api
    variable = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}

    def wants(namespace: str) -> Submission:
        job = members.job("wants", "echo key: $KEY")
        return Submission(text=job.with_container(env=[variable]).text(), namespace=namespace)

    async def story(engine: Engine) -> None:
        api.create(f"/api/v1/namespaces/{members.bob}/secrets", secret)
        await engine.submit(wants(members.ann))
        await engine.submit(wants(members.bob))
        await members.phase(engine, members.bob, "wants", "Completed")
        assert await _said(engine, members.bob, "wants") == "key: planted"

        async def told() -> bool:
            job = await engine.get(members.ann, "wants")
            return 'secret "keys" not found' in job.status.message

        await eventually(told, "that a Secret is not there")
        (pod,) = await engine.pods(members.ann, "wants")
        assert pod.started_at is None

    members.play(story)
    for text in (members.ann, "planted", base64.b64encode(b"planted").decode()):
        found = str(api.items(f"/api/v1/namespaces/{members.ann}/pods"))
        assert (text in found) is (text == members.ann)


def test_ends_codes_and_reasons_are_on_record_when_nothing_else_is(
    members: Members, tmp_path: Path
) -> None:
    """Pods are cleaned, jobs deleted, the operator is restarted and the recorder away: all of it to
    processes that really ended."""
    database = Database(f"sqlite:///{tmp_path}/team/records.sqlite")
    records, ann = Records(database), members.ann
    jobs = Jobs(members.cluster, ann)
    kubeconfig = members.cluster.admin_kubeconfig

    def pods_of(*names: str) -> list[str]:
        return [pod for name in names for pod in jobs.pods(name)]

    def ends(name: str) -> None:
        members.cluster.touch_in(ann, f"{name}-worker-0", "/tmp/end")

    async def gone(*names: str) -> None:
        async def none() -> bool:
            return not pods_of(*names)

        await eventually(none, f"the end of the pods of {names}")

    async def story(engine: Engine) -> None:
        async with recording(engine, database, engine_name="kubernetes"):
            with RunningOperator(kubeconfig):
                # The first fails, and its peer is ended for its sake.
                script = (
                    f'if [ "$PADDLE_TRAINER_ID" = 0 ]; then {WAITS}; echo no data; exit 3; fi; '
                    "trap 'exit 9' TERM; echo set; while :; do sleep 0.1; done"
                )
                cleaned = members.submission(
                    ann, "cleaned", script, workers=2, cleanPodPolicy="Always"
                )
                await engine.submit(cleaned)
                await records.shows("cleaned", "RUNNING")
                await eventually(
                    lambda: _has_said(jobs, "cleaned-worker-1", "set"), "a peer that hears TERM"
                )
                ends("cleaned")
                row = await records.settles("cleaned", "FAILED")
                await gone("cleaned")
                assert (row.exit_code, row.trigger_role, row.trigger_index) == (3, "worker", 0)
                first, second = await records.replicas("cleaned")
                assert (first.phase, first.exit_code, first.reason) == ("Failed", 3, "Error")
                assert "no data" in first.message
                assert (second.phase, second.finished_at is not None) == ("Failed", True)
                assert second.exit_code == 9

                # Deleted by somebody as soon as it has ended.
                await engine.submit(members.submission(ann, "deleted", f"{WAITS}; exit 4"))
                await records.shows("deleted", "RUNNING")
                ends("deleted")
                while jobs.status("deleted").get("phase") != "Failed":
                    pass
                members.cluster.kubectl("delete", "pdj", "deleted", "-n", ann)

                async def farewell() -> bool:
                    found = await records.of("deleted")
                    return found is not None and found.gone_at is not None

                await eventually(farewell, "the farewell")
                found = await records.of("deleted")
                assert found is not None
                assert (found.state, found.exit_code, found.end_seen) == ("FAILED", 4, True)
                (replica,) = await records.replicas("deleted")
                assert (replica.phase, replica.exit_code) == ("Failed", 4)

                await engine.submit(members.submission(ann, "restarted", f"{WAITS}; exit 5"))
                unseen = members.submission(
                    ann, "unseen", f"{WAITS}; exit 6", cleanPodPolicy="Always"
                )
                await engine.submit(unseen)
                await records.shows("restarted", "RUNNING")
                await records.shows("unseen", "RUNNING")
            # No operator, while one ends.
            ends("restarted")
            await eventually(
                lambda: _ended(jobs, "restarted-worker-0"), "the end of a pod without operator"
            )
            with RunningOperator(kubeconfig):
                row = await records.settles("restarted", "FAILED")
                assert row.exit_code == 5
        # No recorder, while another does.
        with RunningOperator(kubeconfig):
            ends("unseen")
            await members.phase(engine, ann, "unseen", "Failed")
            await gone("unseen")
            async with (
                members.engine() as later,
                recording(later, database, engine_name="kubernetes"),
            ):
                row = await records.settles("unseen", "FAILED")
                gap = await eventually(
                    lambda: database.read(gaps_between, 0, now_millis()), "the gap"
                )
        assert row.exit_code == 6
        (replica,) = await records.replicas("unseen")
        assert (replica.phase, replica.exit_code) == ("Failed", 6)
        assert replica.node
        assert [each.why for each in gap] == ["the server was not running"]

    try:
        members.play(story)
    finally:
        database.close()


async def _ended(jobs: Jobs, pod: str) -> bool:
    found = jobs.pod(pod) or {}
    return found.get("status", {}).get("phase") == "Failed"


async def _has_said(jobs: Jobs, pod: str, line: str) -> bool:
    asked = jobs.plane.kubectl("logs", "-n", jobs.namespace, pod, check=False)
    return line in asked.stdout
