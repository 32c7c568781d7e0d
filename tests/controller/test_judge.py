"""What a live job's situation is: a goal beats a wish, and a wish beats what replicas did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Phase
from regatta.controller.judge import FOREIGN_LOOK_AGAIN, Kind, Verdict, judge
from regatta.controller.observe import observe
from regatta.controller.world import Gangs, Pod, PodGroup
from tests.controller.builders import JobBuilder, Scene, a_job, a_scene, at


def a_running(**policy: Any) -> Scene:
    return a_scene(a_job().with_ps(1).with_workers(1).policy(**policy)).run()


def verdict_on(scene: Scene, later: float = 0.0) -> Verdict:
    return judge(scene.job, observe(scene.job, scene.children), at(scene.now + later))


def both_end(scene: Scene) -> Scene:
    return scene.succeed("j-worker-0").fail("j-ps-0", 1)


Deed = Callable[[Scene], object]

ORDER: dict[str, tuple[dict[str, Any], Deed, float, Kind, Phase | None, str]] = {
    "nothing happened": ({}, lambda s: s, 0, Kind.GO, None, ""),
    "a goal beats a failure": ({}, both_end, 0, Kind.DONE, Phase.COMPLETED, "Completed"),
    "a goal beats an abort": (
        {},
        lambda s: s.succeed("j-worker-0").edit(abort=True),
        0,
        Kind.DONE,
        Phase.COMPLETED,
        "Completed",
    ),
    "a goal beats a deadline": (
        {"active_deadline_seconds": 5},
        lambda s: s.succeed("j-worker-0"),
        60,
        Kind.DONE,
        Phase.COMPLETED,
        "Completed",
    ),
    "an abort stops what runs": (
        {},
        lambda s: s.edit(abort=True),
        0,
        Kind.ABORT,
        Phase.ABORTING,
        "Aborting",
    ),
    "an abort beats a deadline and a failure": (
        {"active_deadline_seconds": 5},
        lambda s: s.fail("j-ps-0", 1).edit(abort=True),
        60,
        Kind.ABORT,
        Phase.ABORTING,
        "Aborting",
    ),
    "an abort that has begun goes on though it is taken back": (
        {},
        lambda s: (s.edit(abort=True).tick(), s.edit(abort=False)),
        0,
        Kind.DONE,
        Phase.ABORTED,
        "Aborted",
    ),
    "a deadline beats suspension": (
        {"active_deadline_seconds": 5},
        lambda s: s.edit(suspend=True),
        5,
        Kind.DONE,
        Phase.FAILED,
        "DeadlineExceeded",
    ),
    "a deadline that is not reached does nothing": (
        {"active_deadline_seconds": 5},
        lambda s: s,
        4.9,
        Kind.GO,
        None,
        "",
    ),
    "suspension beats a failure": (
        {},
        lambda s: s.fail("j-ps-0", 1).edit(suspend=True),
        0,
        Kind.HOLD,
        Phase.SUSPENDED,
        "Suspended",
    ),
    "silence for too long fails the job": (
        {"hang_timeout_seconds": 5},
        lambda s: s,
        5,
        Kind.DONE,
        Phase.FAILED,
        "Hung",
    ),
    "or starts it again, if it may": (
        {"hang_timeout_seconds": 5, "backoff_limit": 1},
        lambda s: s,
        5,
        Kind.RESTART,
        None,
        "ReplicaFailed",
    ),
    "a failure fails the job": (
        {},
        lambda s: s.fail("j-ps-0", 1),
        0,
        Kind.DONE,
        Phase.FAILED,
        "ReplicaFailed",
    ),
    "or starts it again, while it may": (
        {"backoff_limit": 1},
        lambda s: s.fail("j-ps-0", 1),
        0,
        Kind.RESTART,
        None,
        "ReplicaFailed",
    ),
    "a disruption starts it again for nothing": (
        {},
        lambda s: s.lose("j-ps-0"),
        0,
        Kind.RESTART,
        None,
        "ReplicaFailed",
    ),
    "a consequence waits for its cause": (
        {},
        lambda s: s.fail("j-ps-0", 143),
        1,
        Kind.GO,
        None,
        "",
    ),
}


@pytest.mark.parametrize(
    ("policy", "happen", "later", "kind", "phase", "reason"), ORDER.values(), ids=ORDER
)
def test_the_order_is_the_policy(
    policy: dict[str, Any],
    happen: Deed,
    later: float,
    kind: Kind,
    phase: Phase | None,
    reason: str,
) -> None:
    scene = a_running(**policy)
    happen(scene)

    verdict = verdict_on(scene, later)

    assert (verdict.kind, verdict.phase, verdict.reason) == (kind, phase, reason)


def test_the_last_failure_says_which_attempt_it_was() -> None:
    scene = a_running(backoff_limit=2)
    scene.job = replace(scene.job, status=replace(scene.job.status, restarts=2))

    verdict = verdict_on(scene.fail("j-worker-0", 7))

    assert (verdict.kind, verdict.phase) == (Kind.DONE, Phase.FAILED)
    assert verdict.message == "j-worker-0 exited with code 7 (attempt 3 of 3)"


def test_a_cause_that_may_follow_is_waited_for_as_long_as_it_may() -> None:
    scene = a_running().fail("j-ps-0", 143)
    assert verdict_on(scene, 0.5).look_again == 1.5
    assert verdict_on(scene, 2).kind is Kind.DONE


def test_a_hang_names_one_that_runs_and_strikes_all_that_are_not_done() -> None:
    scene = a_scene(a_job().with_workers(3).policy(hang_timeout_seconds=5)).run()
    scene.succeed("j-worker-0").tick()

    verdict = verdict_on(scene, 5)

    assert verdict.fault is not None
    assert verdict.fault.failure.pod == "j-worker-1"
    assert [r.name for r in verdict.fault.replicas] == ["j-worker-1", "j-worker-2"]
    assert "hangTimeoutSeconds (5 s)" in verdict.message


# Before it begins


def waiting(builder: JobBuilder, **children: Any) -> Scene:
    scene = a_scene(builder)
    scene.children = replace(scene.children, **children)
    return scene


VOLCANO = {"spec": {"schedulerName": "volcano", "containers": [{"name": "main"}]}}
THEIRS = Pod(name="j-worker-1", uid="x", foreign=True)
QUEUED = Gangs(
    available=frozenset({"volcano"}), groups=(PodGroup(name="j", ours=True, phase="Pending"),)
)
BLOCKED: dict[str, tuple[dict[str, Any], str, str, float | None]] = {
    "somebody else's pod has its name": (
        {"pods": (THEIRS,)},
        "ForeignObject",
        "j-worker-1; delete or rename",
        FOREIGN_LOOK_AGAIN,
    ),
    "no ports are free": (
        {"admitted": False, "not_admitted_for": "process 7 holds 900 of them"},
        "WaitingForPorts",
        "process 7 holds 900 of them",
        None,
    ),
    "Volcano is not there": (
        {"gangs": Gangs()},
        "NoGangScheduler",
        "install it, or remove schedulerName: volcano",
        FOREIGN_LOOK_AGAIN,
    ),
    "Volcano has not let it in": (
        {"gangs": QUEUED},
        "WaitingForAdmission",
        "waits for Volcano",
        None,
    ),
}


@pytest.mark.parametrize(("children", "reason", "words", "again"), BLOCKED.values(), ids=BLOCKED)
def test_a_job_that_cannot_begin_is_held_and_says_why(
    children: dict[str, Any], reason: str, words: str, again: float | None
) -> None:
    verdict = verdict_on(waiting(a_job().with_workers(2, VOLCANO), **children))

    assert (verdict.kind, verdict.phase) == (Kind.HOLD, Phase.PENDING)
    assert (verdict.reason, verdict.look_again) == (reason, again)
    assert words in verdict.message


def test_ports_are_not_asked_for_again_once_a_job_has_pods() -> None:
    scene = a_running()
    scene.children = replace(scene.children, admitted=False)
    assert verdict_on(scene).kind is Kind.GO

    begun = a_scene(a_job().with_workers(2))
    begun.tick()
    begun.lose("j-worker-1")
    begun.children = replace(begun.children, admitted=False)
    assert verdict_on(begun).kind is Kind.GO, "nor while some are still to be made"


def test_a_pod_in_the_way_of_growth_stops_nothing_that_runs() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.children = replace(scene.children, pods=(*scene.children.pods, THEIRS))

    verdict = verdict_on(scene.scale(worker=2))

    assert (verdict.kind, verdict.look_again) == (Kind.GO, FOREIGN_LOOK_AGAIN)


def test_nobody_is_to_blame_for_a_hang_and_a_trainers_log_may_tell_why() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2).policy(hang_timeout_seconds=5)).run()
    scene.succeed("j-worker-0").tick()

    scene.tick(5)

    status = scene.job.status
    assert status.message == "no replica reported progress for hangTimeoutSeconds (5 s)"
    assert status.failure is not None
    assert (status.failure.pod, status.failure.message) == ("j-worker-1", status.message)
