"""An operator under test, in this process or as a process of its own, and a look at its jobs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.cache.informer import InformerSettings
from regatta.engines.kubernetes.operator.leader import LeaderSettings
from regatta.engines.kubernetes.operator.operator import Operator, OperatorSettings
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.api import Api
from tests.kubernetes.operator.builders import Document, JobBuilder
from tests.patience import Patience

REPOSITORY = Path(__file__).parents[3]
QUICK_LEADER = LeaderSettings(lease_seconds=12.0, renew_seconds=10.0, retry_seconds=0.3)


class RunningOperator:
    """An operator on an event loop in a thread of its own."""

    def __init__(self, kubeconfig: Path, **settings: Any) -> None:
        settings.setdefault("leader", QUICK_LEADER)
        settings.setdefault("informer", InformerSettings(first_pause_seconds=0.1))
        self.operator = Operator(load_access(kubeconfig), OperatorSettings(**settings))
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> RunningOperator:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._thread.is_alive() and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the operator did not stop"

    @property
    def leads(self) -> bool:
        return self.metric("regatta_leader") == 1

    def metric(self, name: str, **labels: str) -> float:
        """The sum over all series of that name with these labels."""
        total = 0.0
        for family in self.operator.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    total += sample.value
        return total

    def writes(self, exempt: tuple[str, ...] = ("leases",)) -> float:
        return sum(
            sample.value
            for family in self.operator.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "regatta_api_requests_total"
            and sample.labels["verb"] in ("create", "update", "patch", "delete")
            and sample.labels["resource"] not in exempt
        )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        except BaseException as failure:  # noqa: BLE001 - the test looks at it
            self.failure = failure
        finally:
            self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self._started.set()
        await self.operator.run(self._stop)


@contextlib.contextmanager
def operator_process(
    kubeconfig: Path, log: Path, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """`regatta operator` as users run it; killed at the end if it still runs."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "regatta.cli.main", "operator"),
                *("--kubeconfig", str(kubeconfig)),
                *("--metrics-bind-address", "0", "--health-probe-bind-address", "0"),
                *arguments,
            ],
            stdout=output,
            stderr=output,
            cwd=REPOSITORY,
            env=dict(os.environ),
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Jobs:
    """The PaddleJobs of one namespace, as a user of the cluster sees and changes them."""

    def __init__(self, plane: Access, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.core = f"/api/v1/namespaces/{namespace}"
        self.path = f"/apis/batch.paddlepaddle.org/v1/namespaces/{namespace}/paddlejobs"

    @property
    def api(self) -> Api:
        return self.plane.api

    def create(self, job: JobBuilder | Document) -> Document:
        document = job if isinstance(job, dict) else job.document()
        created: Document = self.api.create(self.path, document)
        return created

    def get(self, name: str) -> Document:
        found: Document = self.api.get(f"{self.path}/{name}")
        return found

    def status(self, name: str) -> Document:
        status: Document = self.get(name).get("status", {})
        return status

    def change(self, name: str, **spec: Any) -> Document:
        changed: Document = self.api.patch(f"{self.path}/{name}", {"spec": spec})
        return changed

    def delete(self, name: str, **options: Any) -> None:
        self.api.delete(f"{self.path}/{name}", options or None)

    def moves(self) -> object:
        """What differs whenever a job or a pod of this namespace gets on."""
        return [
            (thing["metadata"]["uid"], thing["metadata"]["resourceVersion"])
            for path in (self.path, f"{self.core}/pods")
            for thing in self.api.metadata(path)
        ]

    def wait(
        self, name: str, condition: Callable[[Document], bool], what: str, seconds: float = 60
    ) -> Document:
        """The job's status once the condition holds for it; given up when nothing in the
        namespace has moved for so many seconds."""
        patience = Patience(seconds, self.moves)
        while True:
            found = self.api.find(f"{self.path}/{name}")
            status: Document = (found or {}).get("status", {})
            if found is not None and condition(status):
                return status
            if patience.over:
                raise TimeoutError(
                    f"{name}: {what} not seen in {patience}; status {status}; "
                    f"pods {[(p, q['status'].get('phase')) for p, q in self.pods(name).items()]}"
                )
            time.sleep(0.05)

    def wait_for_phase(self, name: str, phase: str, seconds: float = 60) -> Document:
        return self.wait(name, lambda s: s.get("phase") == phase, f"phase {phase}", seconds)

    def pods(self, name: str = "") -> dict[str, Document]:
        """By name, in order; of one job or of all."""
        found = sorted(self.api.items(f"{self.core}/pods"), key=lambda p: p["metadata"]["name"])
        return {
            pod["metadata"]["name"]: pod
            for pod in found
            if not name or pod["metadata"]["name"].startswith(f"{name}-")
        }

    def pod(self, name: str) -> Document | None:
        found: Document | None = self.api.find(f"{self.core}/pods/{name}")
        return found

    def wait_for_pods(
        self, name: str, condition: Callable[[dict[str, Document]], bool], what: str
    ) -> dict[str, Document]:
        patience = Patience(60, self.moves)
        while True:
            pods = self.pods(name)
            if condition(pods):
                return pods
            if patience.over:
                raise TimeoutError(
                    f"{name}: {what} not seen in {patience}; pods {list(pods)}; "
                    f"status {self.status(name)}"
                )
            time.sleep(0.05)

    def ends(self, pod: str, code: int = 0, **how: str) -> None:
        """Let a pod on a kwok node end."""
        from tests.kubernetes.controlplane.kwok import exits

        change = {"metadata": {"annotations": exits(code, **how)}}
        self.api.patch(f"{self.core}/pods/{pod}", change)

    def environment(self, name: str, revision: int) -> dict[str, str] | None:
        """What the ConfigMap of that revision says."""
        found = self.api.find(self._environment_path(name, revision))
        return None if found is None else found["data"]

    def wait_for_environment(self, name: str, revision: int) -> dict[str, str]:
        path = self._environment_path(name, revision)
        found = self.api.wait_for(path, lambda seen: seen is not None, what="the environment")
        data: dict[str, str] = found["data"]
        return data

    def wait_until_environment_is_gone(self, name: str, revision: int) -> None:
        path = self._environment_path(name, revision)
        self.api.wait_for(path, lambda seen: seen is None, what="the environment's end")

    def _environment_path(self, name: str, revision: int) -> str:
        uid = self.get(name)["metadata"]["uid"]
        return f"{self.core}/configmaps/{name}-env-{revision}-{uid[:8]}"

    def true_environment(self, name: str) -> dict[str, str]:
        """What the replicas of a running job read, once it names the workers that there are."""
        patience = Patience(60, self.moves)
        while True:
            status = self.wait_for_phase(name, "Running")
            data = self.wait_for_environment(name, status["revision"])
            workers = [p for n, p in self.pods(name).items() if "-worker-" in n]
            if data["PADDLE_TRAINERS"] == ",".join(p["status"].get("podIP", "") for p in workers):
                return data
            assert not patience.over, f"{name}: {data} is not where its workers are"
            time.sleep(0.05)

    def events(self, name: str) -> list[Document]:
        return [
            event
            for event in self.api.items(f"{self.core}/events")
            if event["involvedObject"]["name"] == name
            and event["involvedObject"]["kind"] == "PaddleJob"
        ]

    def wait_for_event(self, name: str, reason: str) -> Document:
        patience = Patience(30, self.moves)
        while True:
            for event in self.events(name):
                if event["reason"] == reason:
                    return event
            if patience.over:
                seen = [(e["reason"], e["message"]) for e in self.events(name)]
                raise TimeoutError(f"{name}: no event {reason}; seen {seen}")
            time.sleep(0.05)
