"""Ending pods: stopping keeps the record and the log, deleting removes the pod."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from regatta.api.job import CleanPodPolicy, Job, Mode, Phase
from regatta.controller.plan import ChildRef, Instant
from regatta.controller.world import Pod, PodPhase

_CLEANS = {
    Phase.COMPLETED: (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_COMPLETION),
    Phase.FAILED: (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_FAILURE),
    Phase.ABORTED: (CleanPodPolicy.ALWAYS,),
}


def cleans(job: Job, end: Phase) -> bool:
    """Whether the pods of a job that ended so are removed."""
    return job.spec.clean_pod_policy in _CLEANS[end]


def serves_on(job: Job, end: Phase) -> bool:
    """Whether what still runs of a job that ended so, its servers, is let run."""
    return end is Phase.COMPLETED and job.spec.mode is not Mode.CUSTOM and not cleans(job, end)


def remove(pods: Iterable[Pod]) -> tuple[ChildRef, ...]:
    return tuple(_ref(pod) for pod in pods if not pod.deleting)


def halt(pods: Iterable[Pod]) -> tuple[tuple[ChildRef, ...], tuple[ChildRef, ...]]:
    """(to stop, to delete): what was never placed has no record to keep and is just removed."""
    live = [pod for pod in pods if not pod.phase.over and not pod.deleting]
    unplaced = [pod for pod in live if pod.phase is PodPhase.PENDING and not pod.scheduled]
    stop = tuple(_ref(pod) for pod in live if pod not in unplaced and not pod.stopping)
    return stop, tuple(_ref(pod) for pod in unplaced)


#: Seconds beyond its grace period after which a pod's node is taken for lost.
NODE_IS_LOST = 30.0


def unstick(pods: Iterable[Pod], now: Instant) -> tuple[tuple[ChildRef, ...], float | None]:
    """Pods that a lost node will never let go, to be removed without it; and when to look again.

    Their old processes may still run and write, wherever that node is.
    """
    waits = [
        (pod, NODE_IS_LOST - (now.wall - pod.gone_by).total_seconds())
        for pod in pods
        if pod.deleting and pod.gone_by is not None
    ]
    stuck = tuple(replace(_ref(pod), force=True) for pod, left in waits if left <= 0)
    return stuck, min((left for _, left in waits if left > 0), default=None)


def _ref(pod: Pod) -> ChildRef:
    return ChildRef(kind="Pod", name=pod.name, uid=pod.uid)
