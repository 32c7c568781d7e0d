"""What a pod's status means: phases, ends, evidence of disruption, reasons to wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from regatta.controller.world import PodPhase
from regatta.engines.kubernetes.api.models import Pod
from regatta.engines.kubernetes.objects import podstate

ENDED = "2026-01-01T00:00:00Z"


def a_pod(status: dict[str, Any], **spec: Any) -> Pod:
    wanted = {
        "nodeName": "node-1",
        "restartPolicy": "Never",
        "containers": [{"name": "paddle"}, {"name": "a-proxy"}],
        **spec,
    }
    document = {"metadata": {"name": "job-worker-0"}, "spec": wanted, "status": status}
    return msgspec.convert(document, Pod)


def container(name: str = "paddle", **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


def terminated(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"exitCode": code, "reason": reason, "message": message, "finishedAt": ENDED}


RUNS = {"running": {"startedAt": ENDED}}


@pytest.mark.parametrize(
    ("what", "status", "spec", "phase"),
    [
        ("not placed", {"phase": "Pending"}, {"nodeName": ""}, PodPhase.PENDING),
        ("placed", {"phase": "Pending"}, {}, PodPhase.STARTING),
        ("running", {"phase": "Running", "containerStatuses": [container(**RUNS)]}, {},
         PodPhase.RUNNING),
        ("a sidecar listed first", {"phase": "Running", "containerStatuses": [
            container("a-proxy", **RUNS), container(terminated=terminated(0))]}, {},
         PodPhase.SUCCEEDED),
        ("main failed beside a sidecar", {"phase": "Running", "containerStatuses": [
            container("a-proxy", **RUNS), container(terminated=terminated(2))]}, {},
         PodPhase.FAILED),
        ("restarted in place", {"phase": "Running", "containerStatuses": [
            container(terminated=terminated(2))]}, {"restartPolicy": "OnFailure"},
         PodPhase.STARTING),
        ("main done, sidecar failed", {"phase": "Failed", "containerStatuses": [
            container("a-proxy", terminated=terminated(1)), container(terminated=terminated(0))]},
         {}, PodPhase.SUCCEEDED),
        ("evicted, and the program left politely", {"phase": "Failed", "reason": "Evicted",
            "containerStatuses": [container(terminated=terminated(0))]}, {}, PodPhase.FAILED),
        ("unknown", {"phase": "Unknown"}, {}, PodPhase.UNKNOWN),
    ],
)  # fmt: skip
def test_a_pods_phase_is_its_main_containers(
    what: str, status: dict[str, Any], spec: dict[str, Any], phase: PodPhase
) -> None:
    assert podstate.phase_of(a_pod(status, **spec)) is phase, what


PROXY_FIRST = {"containers": [{"name": "a-proxy"}, {"name": "paddle"}]}


@pytest.mark.parametrize(
    ("what", "status", "phase", "code"),
    [
        ("main done, proxy runs on", {"phase": "Running", "containerStatuses": [
            container("a-proxy", **RUNS), container(terminated=terminated(0))]},
         PodPhase.SUCCEEDED, 0),
        ("main failed, proxy runs on", {"phase": "Running", "containerStatuses": [
            container("a-proxy", **RUNS), container(terminated=terminated(2))]},
         PodPhase.FAILED, 2),
        ("proxy ready, main to come", {"phase": "Running", "containerStatuses": [
            container("a-proxy", **RUNS), container(waiting={"reason": "PodInitializing"})]},
         PodPhase.STARTING, None),
        ("main done, proxy failed", {"phase": "Failed", "containerStatuses": [
            container("a-proxy", terminated=terminated(1)), container(terminated=terminated(0))]},
         PodPhase.SUCCEEDED, 0),
    ],
)  # fmt: skip
def test_a_proxy_that_a_mesh_put_first_is_not_the_main_container(
    what: str, status: dict[str, Any], phase: PodPhase, code: int | None
) -> None:
    pod = podstate.main_first(a_pod(status, **PROXY_FIRST), "paddle")
    assert podstate.phase_of(pod) is phase, what
    ended = podstate.exit_of(pod, phase)
    assert (ended.code if ended else None) == code, what


@pytest.mark.parametrize("name", ["", "renamed-since"])
def test_where_no_container_has_the_templates_name_the_first_is_the_main_one(name: str) -> None:
    ended = container("a-proxy", terminated=terminated(0))
    pod = a_pod({"phase": "Running", "containerStatuses": [ended]}, **PROXY_FIRST)
    assert podstate.phase_of(podstate.main_first(pod, name)) is PodPhase.SUCCEEDED


def test_the_last_words_of_a_program_come_with_its_exit() -> None:
    state = terminated(137, "OOMKilled", "x" * 9000)
    pod = a_pod({"phase": "Failed", "containerStatuses": [container(terminated=state)]})
    ended = podstate.exit_of(pod, PodPhase.FAILED)
    assert ended is not None
    assert (ended.code, ended.reason, len(ended.message)) == (137, "OOMKilled", 4096)


def after_init(*init: dict[str, Any], **status: Any) -> Pod:
    """A failed pod whose main container was never started."""
    waits = container(waiting={"reason": "PodInitializing"})
    ends = {"initContainerStatuses": init, "containerStatuses": [waits]}
    return a_pod({"phase": "Failed", **ends, **status})


@pytest.mark.parametrize(
    ("what", "said", "message"),
    [
        ("with a last line", "no such bucket", "init container fetch failed: no such bucket"),
        ("in silence", "", "init container fetch failed"),
        ("with many words", "x" * 9000, "init container fetch failed: " + "x" * 4067),
    ],
)
def test_an_init_container_that_failed_is_how_the_replica_ended(
    what: str, said: str, message: str
) -> None:
    done = container("unpack", terminated=terminated(0, "Completed"))
    pod = after_init(done, container("fetch", terminated=terminated(3, message=said)))

    ended = podstate.exit_of(pod, podstate.phase_of(pod))

    assert ended is not None
    assert (ended.code, ended.reason, ended.message) == (3, "Init:Error", message), what
    assert ended.finished_at is not None


def test_where_the_program_itself_ended_init_containers_explain_nothing() -> None:
    """A proxy that is a restartable init container is ended after it, by a signal."""
    ends = [container(terminated=terminated(2, message="boom"))]
    pod = after_init(container("proxy", terminated=terminated(143)), containerStatuses=ends)
    ended = podstate.exit_of(pod, PodPhase.FAILED)
    assert ended is not None
    assert (ended.code, ended.message) == (2, "boom")


@pytest.mark.parametrize(
    ("what", "status", "reason"),
    [
        ("evicted", {"reason": "Evicted"}, "Evicted"),
        ("past its deadline", {"reason": "DeadlineExceeded"}, "DeadlineExceeded"),
        ("preempted", {"conditions": [{"type": "DisruptionTarget", "status": "True",
            "reason": "PreemptionByScheduler"}]}, ""),
    ],
)  # fmt: skip
def test_an_init_container_that_was_ended_from_outside_is_not_to_blame(
    what: str, status: dict[str, Any], reason: str
) -> None:
    pod = after_init(container("fetch", terminated=terminated(137)), **status)
    ended = podstate.exit_of(pod, PodPhase.FAILED)
    assert ended is not None
    assert (ended.code, ended.reason, ended.message) == (None, reason, ""), what


@pytest.mark.parametrize(
    ("what", "status", "evidence"),
    [
        ("evicted", {"phase": "Failed", "reason": "Evicted", "message": "disk"}, "Evicted: disk"),
        ("refused by its node", {"phase": "Failed", "reason": "OutOfcpu"}, "OutOfcpu"),
        ("a failure of its own", {"phase": "Failed"}, ""),
        ("past its deadline", {"phase": "Failed", "reason": "DeadlineExceeded"}, ""),
        ("on a lost node", {"phase": "Running", "conditions": [{"type": "DisruptionTarget",
            "status": "True", "reason": "DeletionByTaintManager", "message": "gone"}]},
         "DeletionByTaintManager: gone"),
        ("done before its node was drained", {"phase": "Succeeded", "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "Eviction"}]}, ""),
    ],
)  # fmt: skip
def test_only_the_clusters_own_evidence_makes_an_end_a_disruption(
    what: str, status: dict[str, Any], evidence: str
) -> None:
    pod = a_pod(status)
    assert podstate.disruption_of(pod, podstate.phase_of(pod)) == evidence, what


@pytest.mark.parametrize(
    ("what", "waiting", "words"),
    [
        ("a missing image", {"reason": "ErrImagePull", "message": "not found"},
         "job-worker-0: ErrImagePull: not found"),
        ("nothing wrong", {"reason": "ContainerCreating"}, ""),
        ("our own barrier", {"reason": "CreateContainerConfigError",
            "message": 'configmap "job-env-1" not found'}, ""),
        ("a secret of the user's", {"reason": "CreateContainerConfigError",
            "message": 'secret "keys" not found'},
         'job-worker-0: CreateContainerConfigError: secret "keys" not found'),
    ],
)  # fmt: skip
def test_a_pod_says_why_it_waits(what: str, waiting: dict[str, str], words: str) -> None:
    pod = a_pod({"phase": "Pending", "containerStatuses": [container(waiting=waiting)]})
    assert podstate.waiting_of(pod) == words, what
    assert podstate.waits_for_environment(pod, 1) is (what == "our own barrier")


BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting container=fetch"}


@pytest.mark.parametrize(
    ("what", "state", "word", "words"),
    [
        ("it failed, and is tried again", {"terminated": terminated(4)}, "Init:Error",
         "job-worker-0: Init:Error: init container fetch: exit code 4"),
        ("it is tried again later", {"waiting": BACK_OFF}, "Init:CrashLoopBackOff",
         "job-worker-0: Init:CrashLoopBackOff: back-off 10s restarting container=fetch"),
        ("it succeeded", {"terminated": terminated(0)}, "", ""),
        ("it runs", RUNS, "", ""),
        ("it is on its way", {"waiting": {"reason": "PodInitializing"}}, "", ""),
    ],
)  # fmt: skip
def test_a_pod_waits_for_its_init_container(
    what: str, state: dict[str, Any], word: str, words: str
) -> None:
    waits = container(waiting={"reason": "PodInitializing"})
    init = [container("unpack", terminated=terminated(0)), container("fetch", **state)]
    status = {"phase": "Pending", "initContainerStatuses": init, "containerStatuses": [waits]}
    pod = a_pod(status, restartPolicy="OnFailure")
    assert (podstate.init_trouble(pod), podstate.waiting_of(pod)) == (word, words), what


def test_a_scheduler_that_finds_no_place_is_quoted() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    pod = a_pod({"phase": "Pending", "conditions": [condition]}, nodeName="")
    assert podstate.waiting_of(pod) == "job-worker-0: 0/3 nodes are available"


def test_a_gangs_member_that_would_fit_does_not_hide_why_the_gang_waits() -> None:
    says = "Pod can possibly be assigned to node-1"
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Schedulable",
        "message": says,
    }

    pod = a_pod({"phase": "Pending", "conditions": [condition]}, nodeName="")

    assert podstate.waiting_of(pod) == ""


def ready_to_start(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodReadyToStartContainers", "status": status}]}


TAKEN = {"phase": "Pending", "startTime": ENDED}


@pytest.mark.parametrize(
    ("what", "status", "spec", "held"),
    [
        ("its volumes are not mounted", TAKEN | ready_to_start("False"), {}, True),
        ("its volumes are, and its image is fetched", TAKEN | ready_to_start("True"), {}, False),
        ("its node says nothing of it", TAKEN, {}, False),
        ("no node knows of it", {"phase": "Pending"}, {}, True),
        ("it is not placed", {"phase": "Pending"}, {"nodeName": ""}, False),
        ("it has ended", {"phase": "Failed"} | ready_to_start("False"), {}, False),
    ],
)  # fmt: skip
def test_a_pod_is_held_while_its_node_has_no_place_for_its_containers(
    what: str, status: dict[str, Any], spec: dict[str, Any], held: bool
) -> None:
    pod = a_pod(status, **spec)
    assert podstate.is_held(pod) is held
    assert podstate.is_taken_up(pod) is ("startTime" in status)


def test_a_pod_that_is_to_go_is_not_held() -> None:
    pod = a_pod(TAKEN | ready_to_start("False"))
    leaving = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime.now(UTC))
    assert not podstate.is_held(msgspec.structs.replace(pod, metadata=leaving))
