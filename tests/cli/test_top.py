"""What `top` asks of the server."""

from __future__ import annotations

from typing import Any

from regatta.api.job import (
    CleanPodPolicy,
    Job,
    JobSpec,
    JobStatus,
    Metadata,
    Mode,
    Phase,
    RoleSpec,
    RoleStatus,
)
from regatta.cli.verbs.top import _look


class Counting:
    """A server with these jobs, which counts whose replicas it is asked for."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self.asked: list[str] = []

    def jobs(self, _: str | None) -> list[Job]:
        return self._jobs

    def pods(self, _: str, name: str) -> list[Any]:
        self.asked.append(name)
        return []

    def machine(self) -> None: ...


def a_job(name: str, phase: Phase, policy: CleanPodPolicy, servers: int = 0) -> Job:
    spec = JobSpec(
        mode=Mode.SINGLE, worker=RoleSpec(replicas=1, template={}), clean_pod_policy=policy
    )
    status = JobStatus(phase=phase, ps=RoleStatus(running=servers))
    return Job(metadata=Metadata(name=name), spec=spec, status=status)


def test_only_jobs_that_may_have_something_running_are_asked_about() -> None:
    server = Counting(
        [
            a_job("live", Phase.RUNNING, CleanPodPolicy.ON_COMPLETION),
            a_job("done", Phase.COMPLETED, CleanPodPolicy.ON_COMPLETION, servers=1),
            a_job("done-plainly", Phase.COMPLETED, CleanPodPolicy.NEVER),
            a_job("failed", Phase.FAILED, CleanPodPolicy.NEVER, servers=1),
            a_job("left-servers", Phase.COMPLETED, CleanPodPolicy.NEVER, servers=1),
        ]
    )

    _look(server, None)  # type: ignore[arg-type]

    assert server.asked == ["live", "left-servers"]
