"""A random world for the brain: pods start, end, vanish and linger; users change their minds, make
mistakes and want what cannot be; the engine crashes between any two steps of a plan and forgets.
Everything follows from one seed. What must hold is in `claims.py`.
"""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from regatta.api.job import (
    CleanPodPolicy,
    Intranet,
    Job,
    JobSpec,
    JobStatus,
    Metadata,
    Mode,
    RestartScope,
    RoleSpec,
    RunPolicy,
)
from regatta.controller.labels import environment_name
from regatta.controller.memory import only_shows
from regatta.controller.plan import Instant, Plan
from regatta.controller.policies.wrong_spec import INVALID_SPEC
from regatta.controller.reconcile import reconcile
from regatta.controller.world import Children, Exit, Pod, PodPhase
from tests.controller import claims
from tests.controller.author import CHANGES, Author, change, is_forbidden
from tests.controller.builders import TEMPLATE, a_failed, at

#: Without any of these a world is quiet: what must happen next does, and nothing else.
_STORMS = ("crash", "fail", "vanish", "disrupt", "user", "mistake", "door", "late", "clock")


class History:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.cluster = self.random.random() < 0.5
        self.job = _random_job(self.random)
        self.pods: dict[str, Pod] = {}
        self.environments: dict[int, dict[str, str]] = {}
        self.services: set[str] = set()
        self.now = 0.0
        #: By how much somebody has set the clock on the wall.
        self.set_by = 0.0
        self.serial = 0
        self.gone = False
        self.aborted = False
        self.storms = {storm: self.random.random() < 0.6 for storm in _STORMS}
        self.author = Author(self.random, self.job.spec)
        self.right = self.job.spec
        #: Every backoffLimit that was in force.
        self.limits = {self.right.run_policy.backoff_limit}
        #: The last problem that an event told of.
        self.told = ""
        if self.storms["mistake"] and self.random.random() < 0.4:
            self.author.err()

    # -- the run ---------------------------------------------------------------------------

    def play(self) -> None:
        for _ in range(self.random.randint(5, 60)):
            self.step()
            if self.gone:
                return
        self.storms = dict.fromkeys(_STORMS, False)
        if self.author.mistake is not None:
            self.author.correct(self.right)
        if self.author.spec.run_policy.suspend:
            self.author.ask(suspend=False)
        for _ in range(400):
            if self.over or self.gone:
                break
            self.step()
        self.claim(self.gone or self.over, "the job never ended")
        self._settle()
        claims.ended_as_it_should(self)

    @property
    def over(self) -> bool:
        """Ended; one that was refused for its spec never began."""
        return self.job.finished and self.job.status.reason != INVALID_SPEC

    def step(self) -> None:
        actions = [self.tick, self.tick, self.schedule, self.start, self.end, self.linger]
        moods = [self.wait, self.stir, self.err, self.want, self.set_the_clock]
        self.random.choice([*actions, *moods])()

    def _settle(self) -> None:
        """With a world that only does as told, the plan runs dry."""
        for _ in range(200):
            self.linger()
            before = (self.job, dict(self.pods))
            self.tick()
            if self.gone or (before == (self.job, dict(self.pods)) and not self._lingering()):
                return
        self.claim(False, "the plan never ran dry")

    def _lingering(self) -> bool:
        return any(p.deleting or (p.stopping and not p.phase.over) for p in self.pods.values())

    # -- the brain and the engine ----------------------------------------------------------

    def children(self) -> Children:
        pods = list(self.pods.values())
        self.random.shuffle(pods)  # a cache has no order
        return Children(
            pods=tuple(pods),
            environments=frozenset(self.environments),
            services=frozenset(self.services) if self.cluster else None,
            hears_progress=not self.cluster,
        )

    def tick(self) -> None:
        self._read()
        children = self.children()
        plan = reconcile(self.job, children, self.instant, self.author.problem)
        claims.plan_is_sound(self, plan)
        claims.wrong_specs_do_nothing_new(self, plan, children)
        claims.work_is_not_done_twice(self, plan)
        steps = self._steps(plan)
        if self.storms["crash"] and self.random.random() < 0.2:
            for step in steps[: self.random.randint(0, len(steps))]:
                step()
            self.author.forget()
            self.told = ""  # nobody knows whether that was told
            return
        for step in steps:
            step()
        claims.the_spec_that_stands_is_told(self, plan)

    def _read(self) -> None:
        spec = self.author.read(self.job.status)
        metadata = replace(self.job.metadata, generation=self.author.generation)
        self.job = replace(self.job, spec=spec, metadata=metadata)
        self.limits.add(spec.run_policy.backoff_limit)

    def _steps(self, plan: Plan) -> list[Any]:
        """The plan as an engine applies it, in the order that plans promise to survive."""
        steps: list[Any] = []
        if plan.status is not None and not self._can_wait(plan.status, plan):
            steps.append(lambda: self._write(plan))
        steps += [lambda r=ref: self._stop(r.name) for ref in plan.stop]
        steps += [lambda r=ref: self._delete(r.kind, r.name) for ref in plan.delete]
        for new in plan.environments:
            steps.append(lambda e=new: self.environments.setdefault(e.revision, e.data))
        steps += [lambda s=new: self.services.add(s.name) for new in plan.services]
        steps += [lambda p=new: self._create(p) for new in plan.pods]
        if plan.delete_job:
            steps.append(self._forget)
        return steps

    def _can_wait(self, status: JobStatus, plan: Plan) -> bool:
        """A status that only shows what can be seen again may not be written for long."""
        told = self.job.status.revision in self.environments
        if not self.storms["late"] or not only_shows(self.job.status, status, plan, told=told):
            return False
        return self.random.random() < 0.6

    def _write(self, plan: Plan) -> None:
        assert plan.status is not None
        self.job = replace(self.job, status=plan.status)

    def _create(self, new: Any) -> None:
        self.serial += 1
        self.pods[new.name] = Pod(
            name=new.name,
            uid=str(self.serial),
            role=new.role,
            index=new.index,
            attempt=new.attempt,
            revision=new.revision,
        )

    def _stop(self, name: str) -> None:
        self.pods[name] = replace(self.pods[name], stopping=True)

    def _delete(self, kind: str, name: str) -> None:
        if kind == "Service":
            pod = self.pods.get(name)
            self.claim(pod is None or pod.deleting, f"the Service of {name} goes before its pod")
            self.services.discard(name)
        elif kind == "ConfigMap":
            (revision,) = (r for r in self.environments if environment_name(self.job, r) == name)
            readers = [pod.name for pod in self.pods.values() if pod.revision == revision]
            self.claim(not readers, f"{name} goes though {readers} read it")
            del self.environments[revision]
        elif name in self.pods:
            self.pods[name] = replace(self.pods[name], deleting=True)

    def _forget(self) -> None:
        self.gone = True

    # -- the world -------------------------------------------------------------------------

    def schedule(self) -> None:
        for pod in self._some(lambda p: not p.scheduled and not p.phase.over):
            self.pods[pod.name] = replace(pod, scheduled=True, host=self._host(pod))

    def _host(self, pod: Pod) -> str:
        """A cluster gives a new address each time, or a name that stays; this machine never a new
        one. It is the pod's, whatever becomes of the spec that it was made of."""
        if not self.cluster:
            return f"127.64.{ord(pod.role[0])}.{pod.index}"
        if self.right.intranet is Intranet.SERVICE:
            return pod.name
        self.serial += 1
        return f"10.0.0.{self.serial}"

    def start(self) -> None:
        """What a kubelet does: a pod whose environment exists starts, and not before."""
        for pod in self._some(lambda p: p.phase is PodPhase.PENDING and p.scheduled):
            if pod.revision in self.environments and not pod.deleting and not pod.stopping:
                claims.reads_its_own_place(self, pod)
                self.pods[pod.name] = replace(pod, phase=PodPhase.RUNNING)

    def end(self) -> None:
        for pod in self._some(lambda p: p.phase is PodPhase.RUNNING and not p.deleting):
            roll = self.random.random()
            if self.storms["fail"] and roll < 0.25:
                code = self.random.choice([1, 2, 134, 137, 139, 143, 250])
                self.pods[pod.name] = a_failed(pod, code, self.now + self.set_by)
            elif self.storms["disrupt"] and roll < 0.35:
                ended = a_failed(pod, None, self.now + self.set_by)
                self.pods[pod.name] = replace(ended, disruption="node lost")
            elif self.storms["vanish"] and roll < 0.4:
                del self.pods[pod.name]
            elif pod.role != "ps" and roll < 0.8:
                done = Exit(code=0, reason="Completed", finished_at=self.instant.wall)
                self.pods[pod.name] = replace(pod, phase=PodPhase.SUCCEEDED, exit=done)

    def linger(self) -> None:
        """What was told to go takes its time, and then goes."""
        for pod in self._some(lambda p: p.deleting):
            del self.pods[pod.name]
        for pod in self._some(lambda p: p.stopping and not p.phase.over and not p.deleting):
            self.pods[pod.name] = replace(a_failed(pod, 143, self.now + self.set_by), stopping=True)
        if self.job.deleting and not self.pods:
            self._forget()

    def wait(self) -> None:
        self.now += self.random.choice([0.1, 1, 5, 30, 600])

    def set_the_clock(self) -> None:
        if self.storms["clock"] and self.random.random() < 0.5:
            self.set_by += self.random.choice([-3600.0, -2.0, 2.0, 3600.0])

    @property
    def instant(self) -> Instant:
        return Instant(at(self.now + self.set_by).wall, self.now)

    def stir(self) -> None:
        """A user changes the job."""
        if not self.storms["user"] or self.random.random() < 0.5:
            return
        roll, author = self.random.random(), self.author
        if roll < 0.35:
            author.ask(suspend=not author.spec.run_policy.suspend)
        elif roll < 0.45:
            self.aborted = True
            author.ask(abort=True)
        elif roll < 0.5:
            author.ask(abort=False)  # too late, if it was seen
        elif roll < 0.95 and author.spec.worker is not None:
            worker = replace(author.spec.worker, replicas=self.random.randint(1, 4))
            author.write(replace(author.spec, worker=worker))

    def err(self) -> None:
        """A user makes a mistake, another one, or mends it."""
        if not self.storms["mistake"] or self.random.random() < 0.4:
            return
        if self.author.mistake is not None and self.random.random() < 0.4:
            self.author.correct(self.right)
        else:
            self.author.err()

    def want(self) -> None:
        """A user asks something of the job through a door, whether it is the moment or not."""
        if not self.storms["door"] or self.random.random() < 0.5:
            return
        kind = self.random.choice(CHANGES)
        if kind == "delete" and self.random.random() < 0.8:
            return  # or few jobs would live long
        running = [p for p in self.pods.values() if not p.phase.over and not p.stopping]
        seen = replace(self.job, spec=self.author.spec)
        replicas = self.random.randint(0, 4)
        after = change(seen, kind, replicas, self.now, runs_on=bool(running))
        if after is None or is_forbidden(seen, kind):
            self.claim(after is None, f"{kind} is possible, but should not be")
            return  # and nothing has changed: neither spec, nor generation, nor any pod
        if after.spec != seen.spec:
            self.claim(not self.over, f"{kind} changes a job that is over")
            self.author.write(after.spec)
            self.aborted = self.aborted or after.spec.run_policy.abort
        elif kind == "stop" and self.over:
            for pod in running:
                self._stop(pod.name)
        self.job = replace(self.job, metadata=after.metadata)

    def _some(self, which: Any) -> list[Pod]:
        """A random part of the matching pods, all of them in a calm world."""
        pods = [pod for pod in self.pods.values() if which(pod)]
        return [pod for pod in pods if self.random.random() < 0.7] or pods[:1]

    def claim(self, truth: bool, what: str) -> None:
        if not truth:
            status, pods = self.job.status, list(self.pods.values())
            raise AssertionError(f"seed {self.seed}: {what}\n{self.job.spec}\n{status}\n{pods}")


def _random_job(random: Random) -> Job:
    servers = random.choice([0, 0, 1, 2])
    scope = random.choice(list(RestartScope)) if servers else RestartScope.JOB
    intranet = random.choice([Intranet.POD_IP, Intranet.SERVICE])
    if scope is RestartScope.REPLICA:
        intranet = Intranet.SERVICE  # the only one where validation lets it through
    policy = RunPolicy(
        backoff_limit=random.choice([0, 0, 1, 3]),
        active_deadline_seconds=random.choice([None, None, None, 900]),
        ttl_seconds_after_finished=random.choice([None, None, 60]),
        suspend=random.random() < 0.1,
        restart_scope=scope,
    )
    spec = JobSpec(
        mode=Mode.PS if servers else Mode.COLLECTIVE,
        clean_pod_policy=random.choice(list(CleanPodPolicy)),
        intranet=intranet,
        ps=RoleSpec(replicas=servers, template=TEMPLATE) if servers else None,
        worker=RoleSpec(replicas=random.randint(1, 4), template=TEMPLATE),
        run_policy=policy,
    )
    return Job(metadata=Metadata(name="j", uid="uid-j"), spec=spec)
