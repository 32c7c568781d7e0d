"""Removed with the documentation's commands, the operator leaves nothing, whatever runs."""

from __future__ import annotations

import pytest

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.installation import DEPLOYMENT, uninstall
from tests.kubernetes.training.jobs import TrainingJobs, a_short_job

pytestmark = pytest.mark.timeout(900)


def test_uninstalling_while_jobs_run_leaves_nothing(
    installed_cluster: Access, jobs: TrainingJobs
) -> None:
    jobs.create(a_short_job("ended", "true"))
    jobs.wait_for_end("ended")
    jobs.apply("wide_and_deep_service.yaml")
    jobs.wait_for_phase("wide-and-deep-service", "Running", seconds=120)
    uninstall(installed_cluster)
    left = installed_cluster.kubectl(
        "get", "namespaces,crds,clusterroles,clusterrolebindings", "-o", "name"
    ).stdout.split()
    assert [name for name in left if "paddle" in name] == []
    assert installed_cluster.api.find(DEPLOYMENT) is None
    for kind in ("pods", "services", "configmaps"):
        installed_cluster.api.wait_for(
            f"{jobs.core}/{kind}",
            lambda seen: [n for n in names(seen) if n != "kube-root-ca.crt"] == [],
            what=f"the end of the jobs' {kind}",
            deadline_seconds=180,
        )


def names(listed: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]
