"""A job from `kubectl apply` to its end, in every mode and on every network."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs, RunningOperator
from tests.patience import Patience

PODS = ["wide-ps-0", "wide-ps-1", "wide-worker-0", "wide-worker-1"]


def variables(pod: dict) -> dict[str, str | None]:
    return {v["name"]: v.get("value") for v in pod["spec"]["containers"][0]["env"]}


def main_ends(jobs: Jobs, pod: str) -> None:
    """The program's container ends well; those beside it run on."""
    statuses = jobs.pods()[pod]["status"]["containerStatuses"]
    now = "2026-01-01T00:00:00Z"
    for status in statuses:
        if status["name"] == "paddle":
            ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
            status["state"] = {"terminated": ended}
    jobs.api.patch(f"{jobs.core}/pods/{pod}/status", {"status": {"containerStatuses": statuses}})


@contextlib.contextmanager
def a_mesh(jobs: Jobs) -> Iterator[None]:
    """Puts its proxy before the containers of every new pod of the namespace."""
    name, group = f"mesh-{jobs.namespace}", "/apis/admissionregistration.k8s.io/v1"
    policies, bindings = (
        f"{group}/mutatingadmissionpolicies",
        f"{group}/mutatingadmissionpolicybindings",
    )
    proxy = 'Object.spec.containers{name: "a-proxy", image: "registry.local/proxy:1"}'
    patch = f'[JSONPatch{{op: "add", path: "/spec/containers/0", value: {proxy}}}]'
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}}
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE"],
    }
    spec = {
        "matchConstraints": {**here, "resourceRules": [pods]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
    }
    jobs.api.create(policies, {"metadata": {"name": name}, "spec": spec})
    jobs.api.create(bindings, {"metadata": {"name": name}, "spec": {"policyName": name}})
    try:
        _until_injected(jobs)
        yield
    finally:
        jobs.api.delete(f"{bindings}/{name}")
        jobs.api.delete(f"{policies}/{name}")


def _until_injected(jobs: Jobs) -> None:
    pod = {"metadata": {"name": "trial"}, "spec": {"containers": [{"name": "x", "image": "y"}]}}
    patience = Patience(60)
    while True:
        trial = jobs.api.create(f"{jobs.core}/pods?dryRun=All", pod)
        if len(trial["spec"]["containers"]) == 2:
            return
        assert not patience.over, "the policy never came into force"
        time.sleep(0.05)


def test_a_ps_job_runs_and_completes_when_its_workers_do(jobs: Jobs) -> None:
    jobs.create(a_job("wide").with_ps(2).workers(2))
    status = jobs.wait_for_phase("wide", "Running")
    assert status["mode"] == "PS"
    assert list(jobs.pods("wide")) == PODS
    status = jobs.wait("wide", lambda s: s["worker"]["ready"] == "2/2", "workers ready")
    assert status["ps"]["ready"] == "2/2"
    assert status["worker"]["replicas"] == 2
    assert status["selector"]
    jobs.ends("wide-worker-0")
    jobs.ends("wide-worker-1")
    status = jobs.wait_for_phase("wide", "Completed")
    jobs.wait_for_pods("wide", lambda pods: not pods, "cleaned pods")
    assert status["worker"]["succeeded"] == 2
    assert {c["type"]: c["status"] for c in status["conditions"]}["Completed"] == "True"


def test_kubectl_get_shows_the_columns_that_users_know(jobs: Jobs) -> None:
    jobs.create(a_job("wide").with_ps(1).workers(2))
    jobs.wait_for_phase("wide", "Running")
    shown = jobs.plane.kubectl("-n", jobs.namespace, "get", "pdj").stdout.split()
    assert shown[:6] == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert shown[6:11] == ["wide", "Running", "PS", "1/1", "2/2"]


def test_kubectl_wait_knows_when_a_job_is_done(jobs: Jobs) -> None:
    jobs.create(a_job("short").workers(1).that_succeeds())
    jobs.wait_for_phase("short", "Completed")
    jobs.plane.kubectl(
        "-n", jobs.namespace, "wait", "--for=condition=Completed", "--timeout=30s", "pdj/short"
    )


def test_a_collective_job_knows_its_peers_by_address(jobs: Jobs) -> None:
    jobs.create(a_job("resnet").workers(3))
    jobs.wait_for_phase("resnet", "Running")
    data = jobs.wait_for_environment("resnet", 1)
    hosts = [pod["status"]["podIP"] for pod in jobs.pods("resnet").values()]
    assert data["PADDLE_TRAINERS"] == ",".join(hosts)
    assert data["PADDLE_TRAINERS_NUM"] == "3"
    assert not jobs.api.items(f"{jobs.core}/services")


def test_a_service_job_starts_because_its_servers_find_themselves_in_the_list(jobs: Jobs) -> None:
    """K2: the port of the list and the replica's own were different ones."""
    jobs.create(a_job("wide").with_ps(2).workers(2).spec(intranet="Service"))
    jobs.wait_for_phase("wide", "Running")
    data = jobs.wait_for_environment("wide", 1)
    listed = data["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    assert listed == ["wide-ps-0:20000", "wide-ps-1:20000"]
    own = variables(jobs.pods("wide")["wide-ps-1"])
    assert f"{own['POD_IP']}:{own['PADDLE_PORT']}" in listed
    services = {s["metadata"]["name"]: s for s in jobs.api.items(f"{jobs.core}/services")}
    assert sorted(services) == PODS
    assert services["wide-ps-0"]["spec"]["clusterIP"] == "None"


def test_a_templates_own_port_may_have_any_name(jobs: Jobs) -> None:
    """One called paddle, as ours is, made the pods impossible."""
    job = a_job("wide").workers(1).spec(intranet="Service").document()
    (container,) = job["spec"]["worker"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "paddle", "containerPort": 2379}]
    jobs.create(job)
    jobs.wait_for_phase("wide", "Running", seconds=30)
    (container,) = jobs.pods("wide")["wide-worker-0"]["spec"]["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [2379, 20000]


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
def test_gloo_meets_at_a_port_that_is_not_the_servers_own(jobs: Jobs, intranet: str) -> None:
    """K3: in PodIP and Host mode the meeting point was server 0's own port."""
    jobs.create(a_job("wide").with_ps(1).workers(1).spec(withGloo=1, intranet=intranet))
    data = jobs.wait_for_environment("wide", 1)
    server = data["PADDLE_PSERVERS_IP_PORT_LIST"]
    host, port = server.split(":")
    assert data["PADDLE_GLOO_HTTP_ENDPOINT"] == f"{host}:{int(port) + 18}"


@pytest.mark.parametrize(
    ("intranet", "waits_for"), [("PodIP", []), ("Service", ["coord-paddle"]), ("Host", [])]
)
def test_no_pod_waits_for_more_than_names(left: Jobs, intranet: str, waits_for: list[str]) -> None:
    """K15: workers waited for the port of a server that, with gloo, waited for the workers."""
    settings = {"namespace": left.namespace, "init_image": "busybox:1"}
    with RunningOperator(left.plane.admin_kubeconfig, **settings):
        left.create(a_job("wide").with_ps(1).workers(1).spec(withGloo=1, intranet=intranet))
        pods = left.wait_for_pods("wide", lambda pods: len(pods) == 2, "its pods")
    for pod in pods.values():
        assert [c["name"] for c in pod["spec"].get("initContainers", [])] == waits_for


def test_host_workers_stand_on_different_nodes_and_servers_have_other_ports(jobs: Jobs) -> None:
    """K4: two replicas on one node shared a port, and names could not be resolved there."""
    jobs.create(a_job("wide").with_ps(2).workers(3).spec(intranet="Host"))
    jobs.wait_for_phase("wide", "Running")
    pods = jobs.pods("wide")
    workers = [pod for name, pod in pods.items() if "worker" in name]
    assert len({pod["spec"]["nodeName"] for pod in workers}) == 3
    ports = {
        role: {
            p["hostPort"]
            for name, pod in pods.items()
            if f"-{role}-" in name
            for p in pod["spec"]["containers"][0]["ports"]
        }
        for role in ("ps", "worker")
    }
    assert len(ports["worker"]) == 1
    assert not ports["worker"] & ports["ps"]
    assert all(20000 <= port < 32768 for port in ports["worker"] | ports["ps"])
    assert all(pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet" for pod in workers)


def test_host_workers_that_outnumber_the_nodes_say_why_they_wait(jobs: Jobs) -> None:
    nodes = len(jobs.api.items("/api/v1/nodes"))
    jobs.create(a_job("wide").workers(nodes + 1).spec(intranet="Host"))
    status = jobs.wait("wide", lambda s: "port" in s.get("message", ""), "why it waits")
    assert status["phase"] in ("Pending", "Starting")
    assert "free ports" in status["message"]


def test_a_heter_job_has_the_names_that_paddle_reads(jobs: Jobs) -> None:
    """K18: Paddle's role maker wants HETER_TRAINER and its own list."""
    jobs.create(a_job("mixed").with_ps(1).role("heter", 1).workers(1))
    data = jobs.wait_for_environment("mixed", 1)
    assert data["PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST"].endswith(":20000")
    jobs.wait_for_phase("mixed", "Running")
    own = variables(jobs.pods("mixed")["mixed-heter-0"])
    assert own["TRAINING_ROLE"] == "HETER_TRAINER"
    assert jobs.status("mixed")["mode"] == "Heter"


def test_pods_say_which_job_role_and_index_they_are(jobs: Jobs) -> None:
    """K21: no label carried the job's name."""
    jobs.create(a_job("wide").with_ps(1).workers(2))
    jobs.wait_for_phase("wide", "Running")
    found = jobs.api.items(
        f"{jobs.core}/pods?labelSelector=batch.paddlepaddle.org/job-name%3Dwide,"
        "batch.paddlepaddle.org/role%3Dworker,batch.paddlepaddle.org/replica-index%3D1"
    )
    assert [pod["metadata"]["name"] for pod in found] == ["wide-worker-1"]
    job = jobs.get("wide")
    assert job["status"]["observedGeneration"] == job["metadata"]["generation"]


def test_transitions_are_events_of_the_job(jobs: Jobs) -> None:
    """K21: there were no reasons, no conditions and no events for phases."""
    jobs.create(a_job("short").workers(1).that_succeeds())
    jobs.wait_for_phase("short", "Completed")
    for reason in ("Created", "Completed"):
        jobs.wait_for_event("short", reason)


def test_a_sidecar_that_never_ends_does_not_hold_the_job_back(jobs: Jobs) -> None:
    """K19: an injected proxy kept the pod, and so the job, running for ever."""
    job = a_job("meshed").workers(1).document()
    containers = job["spec"]["worker"]["template"]["spec"]["containers"]
    containers.append({"name": "a-proxy", "image": "registry.local/proxy:1"})
    jobs.create(job)
    jobs.wait_for_phase("meshed", "Running")
    main_ends(jobs, "meshed-worker-0")
    jobs.wait_for_phase("meshed", "Completed")


def test_a_proxy_that_a_mesh_puts_first_does_not_hold_the_job_back(jobs: Jobs) -> None:
    """As Istio's does with holdApplicationUntilProxyStarts."""
    with a_mesh(jobs):
        jobs.create(a_job("meshed").workers(1))
        jobs.wait_for_phase("meshed", "Running")
    containers = jobs.pods("meshed")["meshed-worker-0"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["a-proxy", "paddle"]
    main_ends(jobs, "meshed-worker-0")
    jobs.wait_for_phase("meshed", "Completed")
