"""Jobs, pods and clocks for tests of the brain, said in as few words as a case needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from regatta.api.job import (
    CleanPodPolicy,
    Completion,
    Intranet,
    Job,
    JobSpec,
    JobStatus,
    Metadata,
    Mode,
    RoleSpec,
    RunPolicy,
)
from regatta.controller.labels import environment_name
from regatta.controller.plan import Instant, Plan
from regatta.controller.reconcile import reconcile
from regatta.controller.world import Children, Exit, Pod, PodPhase

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "main", "command": ["true"]}]}}


def at(seconds: float) -> Instant:
    return Instant(wall=EPOCH + timedelta(seconds=seconds), awake=seconds)


class JobBuilder:
    def __init__(self, name: str = "j") -> None:
        self._name = name
        self._roles: dict[str, RoleSpec] = {}
        self._tasks: list[RoleSpec] = []
        self._policy = RunPolicy()
        self._changes: dict[str, Any] = {}
        self._status = JobStatus()

    def with_ps(self, replicas: int) -> JobBuilder:
        self._roles["ps"] = RoleSpec(replicas=replicas, template=TEMPLATE)
        return self

    def with_workers(self, replicas: int, template: dict[str, Any] = TEMPLATE) -> JobBuilder:
        self._roles["worker"] = RoleSpec(replicas=replicas, template=template)
        return self

    def with_heter(self, replicas: int) -> JobBuilder:
        self._roles["heter"] = RoleSpec(replicas=replicas, template=TEMPLATE)
        return self

    def with_task(
        self, name: str, replicas: int, completion: Completion | None = None, **more: Any
    ) -> JobBuilder:
        more = {"template": TEMPLATE, "completion": completion, **more}
        self._tasks.append(RoleSpec(name=name, replicas=replicas, **more))
        return self

    def clean(self, policy: CleanPodPolicy) -> JobBuilder:
        self._changes["clean_pod_policy"] = policy
        return self

    def intranet(self, intranet: Intranet) -> JobBuilder:
        self._changes["intranet"] = intranet
        return self

    def gloo(self, level: int) -> JobBuilder:
        self._changes["with_gloo"] = level
        return self

    def policy(self, **changes: Any) -> JobBuilder:
        self._policy = replace(self._policy, **changes)
        return self

    def obj(self) -> Job:
        if self._tasks:
            mode = Mode.CUSTOM
        elif "ps" in self._roles:
            mode = Mode.HETER if "heter" in self._roles else Mode.PS
        else:
            mode = Mode.COLLECTIVE if self._roles["worker"].replicas > 1 else Mode.SINGLE
        spec = JobSpec(
            mode=mode,
            ps=self._roles.get("ps"),
            worker=self._roles.get("worker"),
            heter=self._roles.get("heter"),
            tasks=tuple(self._tasks),
            run_policy=self._policy,
            **self._changes,
        )
        return Job(
            metadata=Metadata(name=self._name, uid="uid-" + self._name),
            spec=spec,
            status=self._status,
        )


def a_job(name: str = "j") -> JobBuilder:
    return JobBuilder(name)


def a_failed(
    pod: Pod, code: int | None, finished: float = 0.0, reason: str = "Error", **more: Any
) -> Pod:
    exit = Exit(code=code, reason=reason, message="boom", finished_at=at(finished).wall)
    return replace(pod, phase=PodPhase.FAILED, exit=exit, **more)


class Scene:
    """A job and its children, moved on by hand: the smallest engine that is one."""

    def __init__(self, job: Job, services: bool = False) -> None:
        self.job = job
        self.children = Children(
            services=frozenset() if services else None, hears_progress=not services
        )
        self.now = 0.0
        self.serial = 0
        self.events: list[str] = []
        self.plan = Plan()
        #: What is wrong with the spec that somebody wrote; the job has the one that holds.
        self.problem = ""

    def tick(self, seconds: float = 0.0) -> Plan:
        """One pass of the brain, applied in full."""
        self.now += seconds
        plan = self.plan = reconcile(self.job, self.children, at(self.now), self.problem)
        if plan.status is not None:
            self.job = replace(self.job, status=plan.status)
        pods = {pod.name: pod for pod in self.children.pods}
        for ref in plan.stop:
            pod = pods[ref.name]
            pods[ref.name] = replace(a_failed(pod, 143, self.now), stopping=True)
        for ref in plan.delete:
            if ref.kind == "Pod":
                del pods[ref.name]
        gone = {ref.name for ref in plan.delete if ref.kind != "Pod"}
        left = (r for r in self.children.environments if environment_name(self.job, r) not in gone)
        for new in plan.pods:
            assert new.name not in pods, f"{new.name} was created twice"
            self.serial += 1
            pods[new.name] = Pod(
                name=new.name,
                uid=f"pod-{self.serial}",
                role=new.role,
                index=new.index,
                attempt=new.attempt,
                revision=new.revision,
            )
        services = self.children.services
        self.children = replace(
            self.children,
            pods=tuple(pods.values()),
            environments=frozenset(left) | {e.revision for e in plan.environments},
            services=None
            if services is None
            else (services - gone) | {s.name for s in plan.services},
        )
        self.events += [event.reason for event in plan.events]
        return plan

    def change(self, name: str, **changes: Any) -> Scene:
        pods = tuple(
            replace(pod, **changes) if pod.name == name else pod for pod in self.children.pods
        )
        self.children = replace(self.children, pods=pods)
        return self

    def fail(self, name: str, code: int | None, **more: Any) -> Scene:
        pod = self.pod(name)
        ended = a_failed(pod, code, self.now, **more)
        self.children = replace(
            self.children,
            pods=tuple(ended if p.name == name else p for p in self.children.pods),
        )
        return self

    def succeed(self, *names: str) -> Scene:
        for name in names:
            self.change(name, phase=PodPhase.SUCCEEDED, exit=Exit(code=0, reason="Completed"))
        return self

    def lose(self, name: str) -> Scene:
        pods = tuple(pod for pod in self.children.pods if pod.name != name)
        self.children = replace(self.children, pods=pods)
        return self

    def pod(self, name: str) -> Pod:
        return next(pod for pod in self.children.pods if pod.name == name)

    @property
    def names(self) -> list[str]:
        return sorted(pod.name for pod in self.children.pods)

    def run(self) -> Scene:
        """Create, place, address, environment, all running."""
        self.tick()
        self.place()
        self.tick()
        for pod in self.children.pods:
            if pod.phase is PodPhase.PENDING:
                self.change(pod.name, phase=PodPhase.RUNNING)
        self.tick()
        return self

    def place(self) -> Scene:
        for number, pod in enumerate(self.children.pods):
            if not pod.scheduled:
                self.change(pod.name, scheduled=True, host=f"127.64.0.{number + 1}")
        return self

    def edit(self, **policy: Any) -> Scene:
        spec = self.job.spec
        spec = replace(spec, run_policy=replace(spec.run_policy, **policy))
        return self._with_spec(spec)

    def scale(self, **counts: int) -> Scene:
        spec = self.job.spec
        roles = {
            role: replace(getattr(spec, role), replicas=count) for role, count in counts.items()
        }
        return self._with_spec(replace(spec, **roles))

    def write(self, spec: JobSpec, problem: str = "") -> Scene:
        """Somebody writes a spec, and this is what holds from then on."""
        self.problem = problem
        return self._with_spec(spec)

    def _with_spec(self, spec: JobSpec) -> Scene:
        metadata = replace(self.job.metadata, generation=self.job.metadata.generation + 1)
        self.job = replace(self.job, spec=spec, metadata=metadata)
        return self


def a_scene(builder: JobBuilder, services: bool = False) -> Scene:
    return Scene(builder.obj(), services)
