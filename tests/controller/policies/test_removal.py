"""Ending pods: what is stopped, what is deleted, and what a lost node will never let go."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.controller.policies.removal import NODE_IS_LOST, halt, remove, unstick
from regatta.controller.world import Pod, PodPhase
from tests.controller.builders import at


def a_pod(phase: PodPhase = PodPhase.RUNNING, **more: Any) -> Pod:
    return Pod(name="p", uid="u", phase=phase, **{"scheduled": True, **more})


HALT: dict[str, tuple[Pod, str]] = {
    "one that runs is stopped": (a_pod(), "stop"),
    "one that is set up is stopped": (a_pod(PodPhase.STARTING), "stop"),
    "one that waits for its environment is stopped": (a_pod(PodPhase.PENDING), "stop"),
    "one that was never placed has nothing to keep": (
        a_pod(PodPhase.PENDING, scheduled=False),
        "delete",
    ),
    "one that nobody hears of is stopped": (a_pod(PodPhase.UNKNOWN), "stop"),
    "one that ended keeps its log": (a_pod(PodPhase.FAILED), ""),
    "one that is being stopped is not stopped again": (a_pod(stopping=True), ""),
    "one that goes is left to go": (a_pod(deleting=True), ""),
}


@pytest.mark.parametrize(("pod", "what"), HALT.values(), ids=HALT)
def test_halting_keeps_records(pod: Pod, what: str) -> None:
    stop, delete = halt([pod])

    assert [ref.uid for ref in stop] == (["u"] if what == "stop" else [])
    assert [ref.uid for ref in delete] == (["u"] if what == "delete" else [])


def test_removing_takes_all_but_what_goes_already() -> None:
    pods = [a_pod(), a_pod(PodPhase.SUCCEEDED), a_pod(deleting=True)]
    assert len(remove(pods)) == 2


@pytest.mark.parametrize(
    ("pod", "later", "stuck", "again"),
    [
        (a_pod(deleting=True, gone_by=at(0).wall), 0, False, NODE_IS_LOST),
        (a_pod(deleting=True, gone_by=at(0).wall), 29, False, 1),
        (a_pod(deleting=True, gone_by=at(0).wall), 30, True, None),
        (a_pod(deleting=True), 300, False, None),
        (a_pod(gone_by=at(0).wall), 300, False, None),
    ],
    ids=["due", "nearly", "lost", "nobody says by when", "not on its way"],
)
def test_a_pod_that_should_be_gone_is_removed_without_its_node(
    pod: Pod, later: float, stuck: bool, again: float | None
) -> None:
    refs, look_again = unstick([pod], at(later))

    assert [(ref.uid, ref.force) for ref in refs] == ([("u", True)] if stuck else [])
    assert look_again == again


def test_the_next_look_is_at_the_first_that_could_be_lost() -> None:
    pods = [a_pod(deleting=True, gone_by=at(seconds).wall) for seconds in (20, 5)]
    assert unstick(pods, at(10)) == ((), 25)
