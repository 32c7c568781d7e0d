"""What one pod of the cluster means to the brain: its phase, how it ended, why it waits.

A replica's result is its main container's exit, whether or not a sidecar runs on. Whether an end
was the program's fault is told only by the cluster's own evidence.

The main container is the first of the role's template. A mesh may have put its proxy in front of
it; `main_first` takes that back, and everything else looks at the first.
"""

from __future__ import annotations

from msgspec.structs import replace

from regatta.controller.world import INIT_ERROR, Exit, PodPhase
from regatta.engines.kubernetes.api.models import ContainerStatus, Pod, Terminated
from regatta.engines.kubernetes.objects.annotations import RELEASED, STOPPED

#: A pod's own reason when the cluster ended or refused it.
_CLUSTER_REASONS = frozenset(
    {
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Terminated",
        "Preempting",
        "Preempted",
        "NodeAffinity",
        "NodePorts",
        "UnexpectedAdmissionError",
    }
)
#: Waiting reasons in which nothing is wrong (yet).
_ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
NO_ENVIRONMENT = "CreateContainerConfigError"
#: Volcano's word for a pod that it would place, were it not for the rest of its gang.
FITS_BY_ITSELF = "Schedulable"

#: The kubelet's word for a pod whose volumes are mounted and whose network is up.
READY_TO_START = "PodReadyToStartContainers"

LONGEST_MESSAGE = 4096


def main_first(pod: Pod, main: str) -> Pod:
    """The same pod with the container of that name first, if it has one."""
    containers = pod.spec.containers
    if not containers or containers[0].name == main:
        return pod
    first = [container for container in containers if container.name == main]
    others = [container for container in containers if container.name != main]
    return replace(pod, spec=replace(pod.spec, containers=(*first, *others)))


def main_container(pod: Pod) -> ContainerStatus | None:
    """None while it has no status. The kubelet's list has an order of its own."""
    wanted = pod.spec.containers[0].name if pod.spec.containers else ""
    statuses = pod.status.container_statuses
    return next((status for status in statuses if status.name == wanted), None)


def phase_of(pod: Pod) -> PodPhase:
    phase = pod.status.phase
    if phase == "Running":
        return _while_running(pod)
    if phase == "Succeeded":
        return PodPhase.SUCCEEDED
    if phase == "Failed":
        return PodPhase.SUCCEEDED if _succeeded_beside_a_failed_sidecar(pod) else PodPhase.FAILED
    if phase == "Unknown":
        return PodPhase.UNKNOWN
    return PodPhase.STARTING if is_scheduled(pod) else PodPhase.PENDING


def is_scheduled(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def is_taken_up(pod: Pod) -> bool:
    return pod.status.start_time is not None


def is_held(pod: Pod) -> bool:
    """On a node that has not made a place for its containers: no volumes, no network."""
    leaving = pod.metadata.deletion_timestamp is not None
    if not is_scheduled(pod) or pod.status.phase != "Pending" or leaving:
        return False
    conditions = pod.status.conditions
    unready = any(c.type == READY_TO_START and c.status == "False" for c in conditions)
    return unready or not is_taken_up(pod)


def exit_of(pod: Pod, phase: PodPhase) -> Exit | None:
    if not phase.over:
        return None
    ended, said = _end_of(pod), pod.status
    if ended is None and phase is PodPhase.FAILED:
        ended = _failed_before_it(pod)
    if ended is None:
        code = 0 if phase is PodPhase.SUCCEEDED else None
        return Exit(code=code, reason=said.reason, message=_cut(said.message))
    return Exit(
        code=ended.exit_code,
        reason=said.reason or ended.reason,
        message=_cut(ended.message or said.message),
        finished_at=ended.finished_at,
    )


def disruption_of(pod: Pod, phase: PodPhase) -> str:
    """The cluster's own evidence that the pod's end is not the program's fault."""
    if phase is PodPhase.SUCCEEDED:
        return ""
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return f"{condition.reason}: {condition.message}".strip(": ")
    reason = pod.status.reason
    if phase is PodPhase.FAILED and (reason in _CLUSTER_REASONS or reason.startswith("OutOf")):
        return f"{reason}: {pod.status.message}".strip(": ")
    return ""


def waiting_of(pod: Pod) -> str:
    """Why it does not run, in the words of whoever holds it back."""
    if not is_scheduled(pod):
        for condition in pod.status.conditions:
            if condition.type != "PodScheduled" or condition.status != "False":
                continue
            if condition.reason == FITS_BY_ITSELF:
                return ""  # the member that does not fit says why its gang waits
            return _named(pod, condition.message or condition.reason)
        return ""
    for status in pod.status.init_container_statuses:
        if why := _trouble(status):
            return _named(pod, f"Init:{why}")
    for status in pod.status.container_statuses:
        held = status.state.waiting
        if held is None or held.reason in _ON_ITS_WAY or _is_barrier(pod, status):
            continue
        return _named(pod, f"{held.reason}: {held.message}".rstrip(": "))
    return ""


def init_trouble(pod: Pod) -> str:
    """One word of why an init container does not get on, as kubectl has it; empty if all do."""
    troubles = filter(None, map(_trouble, pod.status.init_container_statuses))
    return next((f"Init:{why.partition(':')[0]}" for why in troubles), "")


def _trouble(status: ContainerStatus) -> str:
    held, ended = status.state.waiting, status.state.terminated
    if held is not None and held.reason not in _ON_ITS_WAY:
        return f"{held.reason}: {held.message}".rstrip(": ")
    if ended is not None and ended.exit_code != 0:  # and it is tried again, or its pod had failed
        return f"Error: init container {status.name}: exit code {ended.exit_code}"
    return ""


def waits_for_environment(pod: Pod, revision: int) -> bool:
    """Held by the barrier, and not told yet that its environment is there."""
    if pod.metadata.annotations.get(RELEASED) == str(revision):
        return False
    return any(_is_barrier(pod, status) for status in pod.status.container_statuses)


def is_stopped(pod: Pod) -> bool:
    return STOPPED in pod.metadata.annotations


def _end_of(pod: Pod) -> Terminated | None:
    status = main_container(pod)
    return status.state.terminated if status else None


def _failed_before_it(pod: Pod) -> Terminated | None:
    """The end of an init container for which the main one was never started, with its name."""
    if pod.status.reason or disruption_of(pod, PodPhase.FAILED):
        return None  # all its containers were ended from outside, and none is to blame
    for status in pod.status.init_container_statuses:
        ended = status.state.terminated
        if ended is not None and ended.exit_code != 0:
            which = f"init container {status.name} failed"
            said = f": {_cut(ended.message, len(which) + 2)}" if ended.message else ""
            return replace(ended, message=which + said, reason=INIT_ERROR)
    return None


def _while_running(pod: Pod) -> PodPhase:
    status = main_container(pod)
    if status is None or status.state.running is not None:
        return PodPhase.RUNNING
    ended = status.state.terminated
    if ended is None:
        return PodPhase.STARTING
    if not _stays_ended(pod, ended):
        return PodPhase.STARTING  # its restartPolicy starts it again in place
    return PodPhase.SUCCEEDED if ended.exit_code == 0 else PodPhase.FAILED


def _stays_ended(pod: Pod, ended: Terminated) -> bool:
    policy = pod.spec.restart_policy
    return policy == "Never" or (policy == "OnFailure" and ended.exit_code == 0)


def _succeeded_beside_a_failed_sidecar(pod: Pod) -> bool:
    # With a reason of its own the pod was ended from outside: a clean exit on SIGTERM is no
    # success.
    if pod.status.reason or is_stopped(pod) or pod.metadata.deletion_timestamp is not None:
        return False
    ended = _end_of(pod)
    return ended is not None and ended.exit_code == 0


def _is_barrier(pod: Pod, status: ContainerStatus) -> bool:
    """Held back by its missing environment, and not by a Secret or ConfigMap of the user's."""
    held = status.state.waiting
    if held is None or held.reason != NO_ENVIRONMENT:
        return False
    named = "configmap" in held.message.lower() or "secret" in held.message.lower()
    return not named or "-env-" in held.message


def _named(pod: Pod, words: str) -> str:
    return f"{pod.metadata.name}: {words}"[:1024]


def _cut(text: str, beside: int = 0) -> str:
    """Its end, which says the most; `beside` characters are taken by something else."""
    return text[-(LONGEST_MESSAGE - beside) :]
