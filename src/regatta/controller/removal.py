"""Ending pods: stopping keeps the record and the log, deleting removes the pod."""

from __future__ import annotations

from collections.abc import Iterable

from regatta.controller.plan import ChildRef
from regatta.controller.world import Pod, PodPhase


def remove(pods: Iterable[Pod]) -> tuple[ChildRef, ...]:
    return tuple(_ref(pod) for pod in pods if not pod.deleting)


def halt(pods: Iterable[Pod]) -> tuple[tuple[ChildRef, ...], tuple[ChildRef, ...]]:
    """(to stop, to delete): what was never placed has no record to keep and is just removed."""
    live = [pod for pod in pods if not pod.phase.over and not pod.deleting]
    unplaced = [pod for pod in live if pod.phase is PodPhase.PENDING and not pod.scheduled]
    stop = tuple(_ref(pod) for pod in live if pod not in unplaced and not pod.stopping)
    return stop, tuple(_ref(pod) for pod in unplaced)


def _ref(pod: Pod) -> ChildRef:
    return ChildRef(kind="Pod", name=pod.name, uid=pod.uid)
