"""Ending pods: which are stopped, which deleted, and which a lost node keeps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.controller.plan import ChildRef
from regatta.controller.policies.removal import halt, remove, unstick
from regatta.controller.world import Pod, PodPhase
from tests.controller.builders import EPOCH, a_job, a_scene, at

POD = Pod(name="p", uid="u")
REF = ChildRef(kind="Pod", name="p", uid="u")


def test_a_pod_is_deleted_by_its_uid_and_only_once() -> None:
    assert remove([POD]) == (REF,)
    assert not REF.force, "its node ends it, unless that is lost"
    assert remove([replace(POD, deleting=True)]) == ()


#: What becomes of a pod that is to end: stopped, deleted, or nothing any more.
ENDS: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "one that runs": ({"phase": PodPhase.RUNNING, "scheduled": True}, True, False),
    "one that starts": ({"phase": PodPhase.STARTING, "scheduled": True}, True, False),
    "one that waits in its place": ({"scheduled": True}, True, False),
    "one that was never placed": ({}, False, True),
    "one that runs, wherever it is": ({"phase": PodPhase.RUNNING}, True, False),
    "one of which nobody knows": ({"phase": PodPhase.UNKNOWN}, True, False),
    "one that is asked already": ({"phase": PodPhase.RUNNING, "stopping": True}, False, False),
    "one that goes": ({"phase": PodPhase.RUNNING, "deleting": True}, False, False),
    "one that has ended": ({"phase": PodPhase.SUCCEEDED, "scheduled": True}, False, False),
    "one that failed": ({"phase": PodPhase.FAILED, "scheduled": True}, False, False),
}


@pytest.mark.parametrize(("changes", "stopped", "deleted"), ENDS.values(), ids=ENDS)
def test_a_record_worth_keeping_is_kept(
    changes: dict[str, Any], stopped: bool, deleted: bool
) -> None:
    stop, delete = halt([replace(POD, **changes)])

    assert (stop, delete) == ((REF,) if stopped else (), (REF,) if deleted else ())


def going(name: str, gone_by: float) -> Pod:
    return replace(POD, name=name, deleting=True, gone_by=at(gone_by).wall)


def test_a_pod_that_does_not_go_is_removed_without_its_node_half_a_minute_later() -> None:
    pods = [going("a", 0), going("b", 20), going("c", 10)]

    assert unstick(pods, at(29)) == ((), 1)
    forced = replace(REF, name="a", force=True)
    assert unstick(pods, at(30)) == ((forced,), 10)
    assert unstick(pods, at(29.5)) == ((), 0.5)


def test_only_a_pod_that_should_be_gone_is_stuck() -> None:
    stays = replace(POD, gone_by=EPOCH)
    takes_its_time = replace(POD, deleting=True)

    assert unstick([stays, takes_its_time], at(1_000)) == ((), None)


def test_a_finished_job_and_one_that_goes_let_no_lost_node_keep_a_pod() -> None:
    for finished in (True, False):
        scene = a_scene(a_job().with_workers(1), services=True).run()
        if finished:
            scene.fail("j-worker-0", 1).tick()
        metadata = replace(scene.job.metadata, deletion_timestamp=None if finished else at(1).wall)
        scene.job = replace(scene.job, metadata=metadata)
        held = replace(going("j-worker-0", 0), role="worker", phase=PodPhase.RUNNING)
        scene.children = replace(scene.children, pods=(held,))

        assert scene.tick(29).look_again == 1
        scene.children = replace(scene.children, pods=(held,))
        assert [ref.name for ref in scene.tick(1).delete if ref.force] == ["j-worker-0"]
