"""A job's children, sorted and counted once, so that no policy looks through pods again."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from regatta.api.job import Job, RoleSpec, RoleStatus
from regatta.controller.world import Children, Pod, PodPhase

#: Roles whose success is the job's; servers only serve.
TRAINERS = ("worker", "heter")


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One place that the job wants filled, and the pod that fills it, if any."""

    role: str
    index: int
    #: Its place among all replicas; decides its port block.
    ordinal: int
    #: Its role's place among the roles.
    role_number: int
    name: str
    spec: RoleSpec
    pod: Pod | None
    #: Has succeeded in this attempt, whether or not its pod is still there.
    done: bool
    #: Was seen in this attempt and is gone without having succeeded.
    vanished: bool

    @property
    def running(self) -> bool:
        return self.pod is not None and self.pod.phase is PodPhase.RUNNING

    @property
    def failed(self) -> bool:
        """Ended badly, and not because we asked it to end."""
        pod = self.pod
        return pod is not None and pod.phase is PodPhase.FAILED and not pod.stopping


class World(msgspec.Struct, frozen=True, kw_only=True):
    replicas: tuple[Replica, ...]
    #: Ours, but of an earlier attempt, of no role, or beyond the role's count.
    stale: tuple[Pod, ...]
    #: Pods of a larger size that the job is growing to; they wait for the others.
    growth: tuple[Replica, ...]
    #: Somebody else's pods under names that this job needs.
    foreign: tuple[Pod, ...]
    #: Every pod name in use, by whomever.
    taken: frozenset[str]
    children: Children

    @property
    def live(self) -> tuple[Pod, ...]:
        """All pods of ours that have not ended: what abort and failure must stop."""
        current = (r.pod for r in (*self.replicas, *self.growth) if r.pod is not None)
        return tuple(pod for pod in (*current, *self.stale) if not pod.phase.over)

    @property
    def own(self) -> tuple[Pod, ...]:
        current = (r.pod for r in (*self.replicas, *self.growth) if r.pod is not None)
        return (*current, *self.stale)

    @property
    def late(self) -> bool:
        """Nobody may start again for the sake of another size."""
        return too_late(replica.role for replica in self.replicas if replica.done)

    def of(self, role: str) -> tuple[Replica, ...]:
        return tuple(replica for replica in self.replicas if replica.role == role)


def observe(job: Job, children: Children) -> World:
    ours = {(p.role, p.index): p for p in children.pods if not p.foreign}
    size = size_in_effect(job)
    places = _places(job, size, ours)
    replicas = [place for place in places if place.index < size.get(place.role, 0)]
    growth = [place for place in places if place.index >= size.get(place.role, 0)]
    if job.finished or too_late(r.role for r in replicas if r.done):
        growth = []

    filled = {place.pod.uid for place in (*replicas, *growth) if place.pod is not None}
    names = {place.name for place in places}
    return World(
        replicas=tuple(replicas),
        growth=tuple(growth),
        stale=tuple(p for p in children.pods if not p.foreign and p.uid not in filled),
        foreign=tuple(p for p in children.pods if p.foreign and p.name in names),
        taken=frozenset(pod.name for pod in children.pods),
        children=children,
    )


def too_late(succeeded: Iterable[str]) -> bool:
    """Whether a job can no longer change size or templates, for which all replicas start again.

    Once a trainer has succeeded, its share of the work would be done twice. `succeeded`: the role
    of each replica that has.
    """
    return any(role in TRAINERS for role in succeeded)


def _places(job: Job, size: dict[str, int], ours: dict[tuple[str, int], Pod]) -> list[Replica]:
    """Every place of the present size and of the one the spec asks for."""
    remembered = job.status.roles()
    places: list[Replica] = []
    for number, (role, spec) in enumerate(job.spec.roles().items()):
        memory = remembered.get(role, RoleStatus())
        seen, done = {ref.name for ref in memory.refs}, frozenset(memory.done)
        present = size.get(role, 0)
        for index in range(max(spec.replicas, present)):
            pod = ours.get((role, index))
            if pod is not None and not is_current(pod, memory):
                pod = None
            if pod is not None and index >= present and not _awaits_growth(job, pod):
                pod = None  # another takes its place
            numbers = (ordinal_of(job, role, index), number)
            places.append(_replica(job, role, index, numbers, spec, pod, seen, done))
    return places


def _awaits_growth(job: Job, pod: Pod) -> bool:
    """Not one that ended while it waited for the others, nor one that a former size left behind:
    that would read an environment in which it has no place."""
    return not pod.phase.over and pod.revision > job.status.revision


def size_in_effect(job: Job) -> dict[str, int]:
    """Replica counts the job is run with now: those its environment was written for.

    They follow the spec at once before anything was written, and through a scaling afterwards.
    """
    return job.status.shape or spec_size(job)


def spec_size(job: Job) -> dict[str, int]:
    return {role: spec.replicas for role, spec in job.spec.roles().items()}


def size_wanted(job: Job) -> dict[str, int] | None:
    """What a job would hold if all were well; one that is over, ending or suspended wants nothing
    (what it still runs is another matter)."""
    policy = job.spec.run_policy
    if job.finished or job.deleting or policy.abort or policy.suspend:
        return None
    return spec_size(job)


def ordinal_of(job: Job, role: str, index: int) -> int:
    """A replica's place among all, which decides its address and ports on a shared host.

    Replicas that the job is growing to are counted as they will stand when it has grown.
    """
    present = size_in_effect(job)
    size = present if index < present.get(role, 0) else spec_size(job)
    names = list(job.spec.roles())
    return sum(size.get(name, 0) for name in names[: names.index(role)]) + index


def is_current(pod: Pod, memory: RoleStatus) -> bool:
    expected = max(memory.attempt, memory.replica_attempts.get(str(pod.index), 0))
    return not pod.deleting and pod.attempt >= expected


def pod_name(job: Job, role: str, index: int) -> str:
    return f"{job.name}-{role}-{index}"


def _replica(
    job: Job,
    role: str,
    index: int,
    numbers: tuple[int, int],
    spec: RoleSpec,
    pod: Pod | None,
    seen_before: Collection[str],
    done_before: Collection[int],
) -> Replica:
    name = pod_name(job, role, index)
    succeeded = pod is not None and pod.phase is PodPhase.SUCCEEDED and not pod.stopping
    done = succeeded or index in done_before
    return Replica(
        role=role,
        index=index,
        ordinal=numbers[0],
        role_number=numbers[1],
        name=name,
        spec=spec,
        pod=pod,
        done=done,
        vanished=pod is None and name in seen_before and not done,
    )
