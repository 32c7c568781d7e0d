"""The real node: real pods, from an image built from a Dockerfile, that find each other by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import build_image, remove_image
from tests.kubernetes.controlplane.node import import_image

_DOCKERFILE = """\
ARG BASE
FROM ${BASE}
COPY greet.py /greet.py
RUN python -m compileall -q /greet.py
USER 1000
ENTRYPOINT ["python", "/greet.py"]
"""
_GREET = """\
import socket, sys, time
if sys.argv[1] == "serve":
    with socket.create_server(("", 8000)) as server:
        connection, _ = server.accept()
        connection.sendall(b"hello from " + socket.gethostname().encode())
else:
    for _ in range(100):  # a name appears a moment after the pod it stands for
        try:
            print(socket.create_connection((sys.argv[1], 8000)).recv(100).decode())
            break
        except OSError as problem:
            error = problem
            time.sleep(0.2)
    else:
        sys.exit(f"never reached {sys.argv[1]}: {error}")
"""


@pytest.fixture(scope="module")
def image(real_cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(_DOCKERFILE)
    (folder / "greet.py").write_text(_GREET)
    tag = import_image(build_image(folder, f"registry.local/greet-{folder.parent.name}:1"))
    remove_image(tag)  # the node has it now
    return tag


def a_pod(name: str, image: str, *arguments: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "args": list(arguments)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def ended(pod: Any) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def test_two_real_pods_meet_by_the_name_of_a_headless_service(
    real_cluster: Access, real_namespace: str, image: str
) -> None:
    api, inside = real_cluster.api, f"/api/v1/namespaces/{real_namespace}"
    service = {"clusterIP": "None", "selector": {"app": "host"}, "ports": [{"port": 8000}]}
    api.create(f"{inside}/services", {"metadata": {"name": "host"}, "spec": service})
    api.create(f"{inside}/pods", a_pod("host", image, "serve", hostname="host", subdomain="host"))
    api.create(f"{inside}/pods", a_pod("guest", image, "host"))
    for name in ("guest", "host"):
        pod = api.wait_for(f"{inside}/pods/{name}", ended, what="its end", deadline_seconds=120)
        said = real_cluster.kubectl("logs", "-n", real_namespace, name).stdout
        assert pod["status"]["phase"] == "Succeeded", said
    said = real_cluster.kubectl("logs", "-n", real_namespace, "guest").stdout
    assert said == "hello from host\n"


def test_a_pod_reads_the_api_server_as_its_own_service_account(
    real_cluster: Access, real_namespace: str, image: str
) -> None:
    read = (
        "import os, ssl, urllib.request as r;"
        "d='/var/run/secrets/kubernetes.io/serviceaccount/';"
        "u='https://'+os.environ['KUBERNETES_SERVICE_HOST']+':'"
        "+os.environ['KUBERNETES_SERVICE_PORT']+'/version';"
        "h={'Authorization':'Bearer '+open(d+'token').read()};"
        "o=r.build_opener(r.ProxyHandler({}),r.HTTPSHandler("
        "context=ssl.create_default_context(cafile=d+'ca.crt')));"
        "print('v1.36.3' in o.open(r.Request(u,headers=h)).read().decode())"
    )
    api, path = real_cluster.api, f"/api/v1/namespaces/{real_namespace}/pods"
    pod = a_pod("reader", image)
    pod["spec"]["containers"][0]["command"] = ["python", "-c", read]
    api.create(path, pod)
    seen = api.wait_for(f"{path}/reader", ended, what="its end", deadline_seconds=120)
    said = real_cluster.kubectl("logs", "-n", real_namespace, "reader").stdout
    assert (seen["status"]["phase"], said) == ("Succeeded", "True\n")


def test_a_pod_that_fails_keeps_its_exit_code_and_its_last_words(
    real_cluster: Access, real_namespace: str, image: str
) -> None:
    api, path = real_cluster.api, f"/api/v1/namespaces/{real_namespace}/pods"
    pod = a_pod("broken", image)
    container = pod["spec"]["containers"][0]
    container["command"] = ["python", "-c", "import sys; print('no data'); sys.exit(3)"]
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    api.create(path, pod)
    seen = api.wait_for(f"{path}/broken", ended, what="its end", deadline_seconds=120)
    state = seen["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["message"]) == (3, "no data\n")


def test_a_pod_waits_for_its_config_map_and_starts_when_it_is_touched(
    real_cluster: Access, real_namespace: str, image: str
) -> None:
    api, inside = real_cluster.api, f"/api/v1/namespaces/{real_namespace}"
    pod = a_pod("late", image)
    container = pod["spec"]["containers"][0]
    container["command"] = ["sh", "-c", "echo $GREETING"]
    container["envFrom"] = [{"configMapRef": {"name": "env"}}]
    api.create(f"{inside}/pods", pod)
    path = f"{inside}/pods/late"
    api.wait_for(path, waits_for("CreateContainerConfigError"), what="the wait for its environment")
    api.create(f"{inside}/configmaps", {"metadata": {"name": "env"}, "data": {"GREETING": "hi"}})
    api.patch(path, {"metadata": {"annotations": {"example.org/touched": "1"}}})
    api.wait_for(path, ended, what="its end", deadline_seconds=120)
    assert real_cluster.kubectl("logs", "-n", real_namespace, "late").stdout == "hi\n"


def waits_for(reason: str) -> Callable[[Any], bool]:
    def check(pod: Any) -> bool:
        statuses = pod["status"].get("containerStatuses", [])
        return any(s["state"].get("waiting", {}).get("reason") == reason for s in statuses)

    return check
