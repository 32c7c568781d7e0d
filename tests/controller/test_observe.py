"""Which pod fills which place, and what is stale, foreign, done or gone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Job, JobStatus, Phase, Ref, RoleStatus
from regatta.controller.changes import deleted
from regatta.controller.observe import observe, ordinal_of, size_wanted, too_late
from regatta.controller.world import Children, Exit, Pod, PodPhase
from tests.controller.builders import JobBuilder, a_job, at


def a_pod(role: str, index: int, **more: Any) -> Pod:
    fields = {"phase": PodPhase.RUNNING, "uid": f"{role}-{index}", "revision": 1, **more}
    return Pod(name=f"j-{role}-{index}", role=role, index=index, **fields)


def ended(role: str, index: int, code: int = 0, **more: Any) -> Pod:
    phase = PodPhase.FAILED if code else PodPhase.SUCCEEDED
    return a_pod(role, index, phase=phase, exit=Exit(code=code), **more)


def with_status(builder: JobBuilder, **status: Any) -> Job:
    return replace(builder.obj(), status=JobStatus(**status))


def seen(job: Job, *pods: Pod) -> Any:
    return observe(job, Children(pods=pods))


JOB = a_job().with_ps(1).with_workers(2)


def test_every_place_is_filled_by_its_own_pod_servers_first() -> None:
    world = seen(JOB.obj(), a_pod("worker", 1), a_pod("ps", 0))

    places = [(r.name, r.ordinal, r.role_number, r.pod is not None) for r in world.replicas]
    assert places == [
        ("j-ps-0", 0, 0, True),
        ("j-worker-0", 1, 1, False),
        ("j-worker-1", 2, 1, True),
    ]
    assert (world.stale, world.growth, world.foreign) == ((), (), ())


STALE: dict[str, tuple[Pod, JobStatus]] = {
    "of an attempt that is over": (
        a_pod("worker", 0, attempt=1),
        JobStatus(worker=RoleStatus(attempt=2)),
    ),
    "replaced by itself": (
        a_pod("worker", 0, attempt=1),
        JobStatus(worker=RoleStatus(attempt=1, replica_attempts={"0": 2})),
    ),
    "on its way out": (a_pod("worker", 0, deleting=True), JobStatus()),
    "beyond the count": (a_pod("worker", 7), JobStatus()),
    "of no role of the job": (a_pod("heter", 0), JobStatus()),
}


@pytest.mark.parametrize(("pod", "status"), STALE.values(), ids=STALE)
def test_a_pod_of_ours_that_fills_no_place_is_stale(pod: Pod, status: JobStatus) -> None:
    world = seen(replace(JOB.obj(), status=status), pod)

    assert world.stale == (pod,)
    assert all(replica.pod is None for replica in world.replicas)
    assert (world.own, world.live) == ((pod,), (pod,)), "it is to be ended with the others"


def test_only_the_replica_that_was_replaced_is_stale() -> None:
    memory = RoleStatus(attempt=1, replica_attempts={"0": 2})
    pods = (a_pod("worker", 0, attempt=1), a_pod("worker", 1, attempt=1))

    world = seen(replace(JOB.obj(), status=JobStatus(worker=memory)), *pods)

    assert world.stale == pods[:1]


def test_somebody_elses_pod_is_in_the_way_only_where_its_name_is_needed() -> None:
    theirs = [
        Pod(name=name, uid=name, foreign=True) for name in ("j-worker-1", "j-worker-9", "other")
    ]

    world = seen(JOB.obj(), *theirs)

    assert [pod.name for pod in world.foreign] == ["j-worker-1"]
    assert (world.own, world.stale) == ((), ())
    assert world.taken == {"j-worker-1", "j-worker-9", "other"}


DONE: dict[str, tuple[Pod | None, RoleStatus, tuple[bool, bool, bool]]] = {
    "it runs": (a_pod("worker", 0), RoleStatus(), (False, False, False)),
    "it has succeeded": (ended("worker", 0), RoleStatus(), (True, False, False)),
    "it had, and its pod is gone": (None, RoleStatus(done=(0,)), (True, False, False)),
    "it had, and its pod was seen before it went": (
        None,
        RoleStatus(done=(0,), refs=(Ref(name="j-worker-0"),)),
        (True, False, False),
    ),
    "it failed": (ended("worker", 0, 1), RoleStatus(), (False, True, False)),
    "we stopped it": (ended("worker", 0, 143, stopping=True), RoleStatus(), (False, False, False)),
    "we stopped it and it ended well": (
        ended("worker", 0, stopping=True),
        RoleStatus(),
        (False, False, False),
    ),
    "it is not there yet": (None, RoleStatus(), (False, False, False)),
    "it was there and is gone": (
        None,
        RoleStatus(refs=(Ref(name="j-worker-0"),)),
        (False, False, True),
    ),
}


@pytest.mark.parametrize(("pod", "memory", "state"), DONE.values(), ids=DONE)
def test_a_replica_is_done_failed_or_vanished(
    pod: Pod | None, memory: RoleStatus, state: tuple[bool, bool, bool]
) -> None:
    job = with_status(a_job().with_workers(1), worker=memory)

    (replica,) = seen(job, *([pod] if pod else [])).replicas

    assert (replica.done, replica.failed, replica.vanished) == state


# Growing


GROWING = a_job().with_ps(1).with_workers(4)
SHAPE = {"ps": 1, "worker": 2}


def test_what_a_larger_size_adds_waits_beside_what_runs() -> None:
    job = with_status(GROWING, shape=SHAPE)

    world = seen(job, *(a_pod("worker", index) for index in range(3)))

    assert [replica.name for replica in world.of("worker")] == ["j-worker-0", "j-worker-1"]
    assert [replica.name for replica in world.growth] == ["j-worker-2", "j-worker-3"]
    assert [pod.name for pod in world.own] == ["j-worker-0", "j-worker-1", "j-worker-2"]


def test_what_a_smaller_size_takes_away_still_has_its_place() -> None:
    job = with_status(a_job().with_workers(1), shape={"worker": 2})

    world = seen(job, a_pod("worker", 0), a_pod("worker", 1))

    assert [replica.pod is not None for replica in world.replicas] == [True, True]


def test_a_pod_that_a_former_size_left_behind_is_no_growth() -> None:
    """It would read the environment of those that there are, in which it has no place."""
    job = replace(a_job().with_workers(2).obj(), status=JobStatus(shape={"worker": 1}, revision=1))
    first = Pod(name="j-worker-0", uid="0", role="worker", index=0, revision=1)
    left = Pod(name="j-worker-1", uid="1", role="worker", index=1, revision=1)
    grown = replace(left, revision=2)

    world = observe(job, Children(pods=(first, left)))
    assert ([r.pod for r in world.growth], world.stale) == ([None], (left,))

    world = observe(job, Children(pods=(first, grown)))
    assert ([r.pod for r in world.growth], world.stale) == ([grown], ())


def test_a_pod_that_ended_while_it_waited_gives_up_its_place() -> None:
    world = seen(with_status(GROWING, shape=SHAPE), ended("worker", 2, 1))

    assert [replica.pod for replica in world.growth] == [None, None]
    assert [pod.name for pod in world.stale] == ["j-worker-2"]


TOO_LATE: dict[str, tuple[list[str], bool]] = {
    "nobody is done": ([], False),
    "a server is": (["ps"], False),
    "a worker is": (["ps", "worker"], True),
    "a heter trainer is": (["heter"], True),
    "another task is": (["chief"], False),
}


@pytest.mark.parametrize(("succeeded", "late"), TOO_LATE.values(), ids=TOO_LATE)
def test_once_a_trainer_is_done_it_is_too_late_for_another_size(
    succeeded: list[str], late: bool
) -> None:
    assert too_late(succeeded) is late


def test_nothing_grows_when_it_is_too_late_or_over() -> None:
    late = seen(with_status(GROWING, shape=SHAPE), ended("worker", 0), a_pod("worker", 2))
    assert (late.late, late.growth) == (True, ())
    assert [pod.name for pod in late.stale] == ["j-worker-2"]

    over = seen(with_status(GROWING, shape=SHAPE, phase=Phase.FAILED))
    assert (over.late, over.growth) == (False, ())


def test_a_role_that_is_new_is_growth_from_nothing() -> None:
    job = with_status(a_job().with_ps(2).with_workers(1), shape={"ps": 1})

    world = seen(job, a_pod("ps", 0), ended("worker", 0, 1))

    assert [(r.name, r.ordinal, r.pod) for r in world.growth] == [
        ("j-ps-1", 1, None),
        ("j-worker-0", 2, None),
    ]
    without_servers = with_status(a_job().with_ps(1).with_workers(1), shape={"worker": 1})
    assert ordinal_of(without_servers, "worker", 0) == 0


def test_what_nobody_fills_does_not_run() -> None:
    assert [replica.running for replica in seen(JOB.obj()).replicas] == [False, False, False]


def test_somebody_elses_pod_fills_no_place_whatever_it_says() -> None:
    world = seen(JOB.obj(), a_pod("worker", 0, foreign=True))

    assert [replica.pod for replica in world.of("worker")] == [None, None]


def test_what_waits_to_grow_lives_until_it_is_stopped() -> None:
    world = seen(with_status(GROWING, shape=SHAPE), ended("worker", 0, 1), a_pod("worker", 2))

    assert [pod.name for pod in world.live] == ["j-worker-2"]


def test_a_replica_keeps_its_number_while_the_job_grows() -> None:
    job = with_status(a_job().with_ps(2).with_workers(3), shape={"ps": 1, "worker": 2})

    numbers = [ordinal_of(job, "worker", index) for index in range(3)]
    assert numbers == [1, 2, 4], "those that run as they are, the new one as it will be"


@pytest.mark.parametrize("phase", [None, *Phase])
def test_a_job_wants_its_size_until_it_is_over(phase: Phase | None) -> None:
    job = replace(a_job().with_ps(1).with_workers(2).obj(), status=JobStatus(phase=phase))
    over = phase in (Phase.COMPLETED, Phase.FAILED, Phase.ABORTED)
    assert size_wanted(job) == (None if over else {"ps": 1, "worker": 2})


@pytest.mark.parametrize("asked", ["suspend", "abort"])
def test_a_job_that_is_to_be_suspended_or_aborted_wants_nothing(asked: str) -> None:
    assert size_wanted(a_job().with_workers(2).policy(**{asked: True}).obj()) is None


def test_a_job_that_is_being_deleted_wants_nothing() -> None:
    assert size_wanted(deleted(a_job().with_workers(2).obj(), at(0).wall)) is None
