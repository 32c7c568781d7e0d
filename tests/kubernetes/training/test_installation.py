"""Installed with the documentation's commands, the operator runs as its manifest says."""

from __future__ import annotations

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.installation import NAMESPACE, PODS
from tests.kubernetes.training.container_images import operator_image

pytestmark = pytest.mark.timeout(900)

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/b2a304f2.paddlepaddle.org"


def test_the_operator_runs_as_its_manifest_says(
    installed_cluster: Access, real_namespace: str
) -> None:
    shown = (
        installed_cluster.kubectl("get", "deployment", "-n", NAMESPACE)
        .stdout.splitlines()[1]
        .split()
    )
    assert shown[:4] == ["paddle-controller-manager", "1/1", "1", "1"]
    (pod,) = installed_cluster.api.items(PODS)
    assert pod["spec"]["serviceAccountName"] == "paddle-manager-sa"
    (container,) = pod["status"]["containerStatuses"]
    assert container["image"].endswith(operator_image())
    assert (container["ready"], container["restartCount"]) == (True, 0)
    assert installed_cluster.api.get(LEASE)["spec"]["holderIdentity"].startswith(
        pod["metadata"]["name"]
    )
    nothing = installed_cluster.kubectl("get", "pdj", "-n", real_namespace)
    assert nothing.stderr == f"No resources found in {real_namespace} namespace.\n"


def test_the_operators_pod_passes_the_restricted_security_level(installed_cluster: Access) -> None:
    level = "pod-security.kubernetes.io/enforce=restricted"
    said = installed_cluster.kubectl("label", "--dry-run=server", "namespace", NAMESPACE, level)
    assert "Warning" not in said.stderr
