"""A team's server as its manifest deploys it: the image, its rights inside of a pod, its state."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.installation import NAMESPACE, ROOT
from tests.patience import Patience

pytestmark = pytest.mark.timeout(900)

MANIFEST = ROOT / "deploy/v1/team-server.yaml"
NAME = "regatta-team-server"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/name={NAME}"
USER = 65532


@pytest.fixture
def disk(installed_cluster: Access, tmp_path: Path) -> Iterator[Path]:
    """What its claim is bound to. A folder of this machine takes no fsGroup: it is the server's."""
    folder = tmp_path / "disk"
    folder.mkdir()
    os.chown(folder, USER, USER)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": NAME},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": NAMESPACE, "name": NAME},
            "hostPath": {"path": str(folder)},
        },
    }
    installed_cluster.kubectl("create", "-f", "-", input=yaml.safe_dump(volume))
    yield folder
    installed_cluster.kubectl("delete", "-f", str(MANIFEST), "--timeout=120s", check=False)
    installed_cluster.kubectl("delete", "pv", NAME, "--timeout=60s", check=False)
    shutil.rmtree(folder, ignore_errors=True)


def serving_pod(cluster: Access, *, other_than: str = "") -> dict[str, Any]:
    """The one pod that is ready."""
    patience = Patience(120)
    while True:
        for pod in cluster.api.items(PODS):
            ready = [
                c["status"] for c in pod["status"].get("conditions", ()) if c["type"] == "Ready"
            ]
            if ready == ["True"] and pod["metadata"]["uid"] != other_than:
                return pod
        if patience.over:
            inside = ("-n", NAMESPACE)
            said = cluster.kubectl(*inside, "logs", f"deployment/{NAME}", check=False)
            pods = cluster.kubectl(*inside, "describe", "pods", check=False)
            raise TimeoutError(f"{said.stdout}{said.stderr}{pods.stdout[-3000:]}")
        time.sleep(0.2)


def health(pod: dict[str, Any]) -> Any:
    address = f"http://{pod['status']['podIP']}:8080/healthz"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=30) as answer:
        return json.loads(answer.read())


def test_it_serves_from_its_pod_and_its_next_pod_finds_its_state(
    installed_cluster: Access, disk: Path
) -> None:
    installed_cluster.kubectl("apply", "-f", str(MANIFEST))
    first = serving_pod(installed_cluster)
    assert health(first)
    databases = [path.relative_to(disk) for path in disk.rglob("team.db")]
    assert len(databases) == 1

    installed_cluster.kubectl(
        *("-n", NAMESPACE, "delete", "pod", first["metadata"]["name"], "--timeout=120s")
    )
    second = serving_pod(installed_cluster, other_than=first["metadata"]["uid"])

    assert health(second)
    assert [path.relative_to(disk) for path in disk.rglob("team.db")] == databases
    said = installed_cluster.kubectl("-n", NAMESPACE, "logs", second["metadata"]["name"]).stdout
    assert "may not" not in said
    assert "403" not in said
