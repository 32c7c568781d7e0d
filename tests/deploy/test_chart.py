"""The Helm chart, rendered and installed by Helm itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import OPERATOR, ROOT, wait_until_served
from tests.kubernetes.controlplane.build import program
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.programs import KUBERNETES_VERSION

CHART = ROOT / "charts/regatta"
TEAM_SERVER = ROOT / "deploy/v1/team-server.yaml"
Documents = dict[tuple[str, str], dict[str, Any]]


def helm(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Helm with nothing of the user's own."""
    homes = {f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HELM_")}
    return subprocess.run(
        [program("helm"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=kept | homes,
    )


class _Strict(yaml.SafeLoader):
    """Takes no key twice, as an API server does not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {sorted(keys)}"
        return super().construct_mapping(node, deep)


def rendered(home: Path, *values: str) -> Documents:
    sets = [part for value in values for part in ("--set", value)]
    version = ("--kube-version", KUBERNETES_VERSION)
    ended = helm(home, "template", "try", str(CHART), "-n", "here", *version, *sets)
    assert ended.returncode == 0, ended.stderr
    documents = [document for document in yaml.load_all(ended.stdout, _Strict) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def arguments_of(documents: Documents) -> list[str]:
    deployment = documents["Deployment", "paddle-controller-manager"]
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def test_helm_has_no_complaint_about_the_chart(tmp_path: Path) -> None:
    ended = helm(tmp_path, "lint", "--strict", str(CHART))
    assert ended.returncode == 0, ended.stdout


def test_the_chart_deploys_what_the_manifest_does(tmp_path: Path) -> None:
    plain = {
        (document["kind"], document["metadata"]["name"]): document
        for document in yaml.safe_load_all(OPERATOR.read_text())
    }
    chart = rendered(tmp_path)
    missing = plain.keys() - chart.keys()
    assert missing == {("Namespace", "paddle-system")}, "Helm makes the namespace itself"
    for key in plain.keys() - missing:
        if "rules" in plain[key]:
            assert chart[key]["rules"] == plain[key]["rules"], key
    ours = plain["Deployment", "paddle-controller-manager"]["spec"]
    theirs = chart["Deployment", "paddle-controller-manager"]["spec"]
    assert theirs["selector"] == ours["selector"]
    assert theirs["template"]["spec"] == ours["template"]["spec"]


def test_a_team_s_server_is_there_when_asked_for_and_as_its_manifest_says(tmp_path: Path) -> None:
    plain = {
        (document["kind"], document["metadata"]["name"]): document
        for document in yaml.safe_load_all(TEAM_SERVER.read_text())
    }
    assert not plain.keys() & rendered(tmp_path).keys()
    chart = rendered(tmp_path, "teamServer.enabled=true")
    assert plain.keys() <= chart.keys()
    for key, ours in plain.items():
        theirs = chart[key]
        if "rules" in ours:
            assert theirs["rules"] == ours["rules"]
        if key[0] in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
            said = yaml.safe_dump(theirs["spec"], width=1000)
            assert said.replace(":here:", ":paddle-system:") == yaml.safe_dump(
                ours["spec"], width=1000
            )
        if key[0] == "PersistentVolumeClaim":
            assert theirs["spec"] == ours["spec"]
    ours, theirs = (found["Deployment", "regatta-team-server"]["spec"] for found in (plain, chart))
    assert theirs["template"]["spec"] == ours["template"]["spec"]
    assert (theirs["replicas"], theirs["strategy"]) == (ours["replicas"], ours["strategy"])
    labels = theirs["template"]["metadata"]["labels"]
    assert theirs["selector"]["matchLabels"].items() <= labels.items()
    service = chart["Service", "regatta-team-server"]["spec"]
    assert service["selector"] == theirs["selector"]["matchLabels"]


def test_watching_one_namespace_needs_no_right_on_the_cluster(tmp_path: Path) -> None:
    documents = rendered(tmp_path, "watchNamespace=team", "aggregateRoles=false")
    assert not {kind for kind, _ in documents} & {"ClusterRole", "ClusterRoleBinding"}
    assert documents["Role", "paddle-manager-role"]["metadata"]["namespace"] == "team"
    binding = documents["RoleBinding", "paddle-manager-rolebinding"]
    assert binding["metadata"]["namespace"] == "team"
    assert binding["subjects"][0]["namespace"] == "here"
    assert "--namespace=team" in arguments_of(documents)


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        ("scheduling=volcano", "--scheduling=volcano"),
        ("scheduling=native", "--scheduling=native"),
        ("initImage=busybox:1", "--initImage=busybox:1"),
        ("extraArgs={--concurrency=4}", "--concurrency=4"),
    ],
)
def test_a_value_becomes_a_flag(tmp_path: Path, value: str, argument: str) -> None:
    assert argument not in arguments_of(rendered(tmp_path))
    assert argument in arguments_of(rendered(tmp_path, value))


@pytest.mark.parametrize(
    "value", ["scheduling=", "scheduling=native", "extraArgs={--scheduling=native}"]
)
def test_gangs_of_both_kinds_may_be_made_however_they_are_asked_for(
    tmp_path: Path, value: str
) -> None:
    rules = rendered(tmp_path, value)["ClusterRole", "paddle-manager-role"]["rules"]
    groups = [rule["apiGroups"][0] for rule in rules if rule["resources"] == ["podgroups"]]
    assert groups == ["scheduling.volcano.sh", "scheduling.k8s.io"]


def pod_labels(documents: Documents) -> dict[str, str]:
    deployment = documents["Deployment", "paddle-controller-manager"]
    found: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return found


def test_the_metrics_service_finds_our_pods_and_no_other_operators(tmp_path: Path) -> None:
    documents = rendered(tmp_path)
    selector = documents["Service", "paddle-controller-manager-metrics"]["spec"]["selector"]
    assert selector.items() <= pod_labels(documents).items()
    # As kubebuilder labels the pods of whatever operator.
    assert not selector.items() <= {"control-plane": "controller-manager"}.items()
    assert selector["app.kubernetes.io/name"] == "regatta-operator"


def test_a_users_labels_stand_beside_ours_and_never_in_their_place(tmp_path: Path) -> None:
    plain = rendered(tmp_path)
    name = "app\\.kubernetes\\.io/name=theirs"
    places = ("podLabels", "metrics.serviceMonitor.labels", "metrics.dashboard.labels")
    documents = rendered(
        tmp_path,
        "metrics.serviceMonitor.enabled=true",
        "metrics.dashboard.enabled=true",
        "podLabels.control-plane=theirs",
        *(f"{place}.{name}" for place in places),
        *(f"{place}.team=vision" for place in places),
    )
    assert pod_labels(documents) == pod_labels(plain) | {"team": "vision"}
    assert pod_labels(rendered(tmp_path, "podLabels=null")) == pod_labels(plain)
    for kind, named in (
        ("ServiceMonitor", "paddle-controller-manager"),
        ("ConfigMap", "regatta-dashboard"),
    ):
        labels = documents[kind, named]["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "regatta-operator"
        assert labels["team"] == "vision"


def test_metrics_come_with_a_monitor_and_a_board_when_asked_for(tmp_path: Path) -> None:
    plain = rendered(tmp_path)
    assert ("Service", "paddle-controller-manager-metrics") in plain
    assert not {"ServiceMonitor", "ConfigMap"} & {kind for kind, _ in plain}
    full = rendered(
        tmp_path,
        "metrics.serviceMonitor.enabled=true",
        "metrics.serviceMonitor.labels.release=prometheus",
        "metrics.dashboard.enabled=true",
    )
    monitor = full["ServiceMonitor", "paddle-controller-manager"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    service = full["Service", "paddle-controller-manager-metrics"]
    selector = monitor["spec"]["selector"]["matchLabels"]
    assert selector.items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    board = full["ConfigMap", "regatta-dashboard"]
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["regatta.json"])["title"] == "Regatta"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("scheduling=vulcano",), "scheduling must be one of the following"),
        (("watchNamspace=team",), "watchNamspace"),
        (
            ("metrics.service=false", "metrics.serviceMonitor.enabled=true"),
            "needs metrics.service: true",
        ),
        (("teamServer.enabled=true", "watchNamespace=team"), "leave watchNamespace empty"),
    ],
)
def test_a_wrong_value_is_refused(tmp_path: Path, values: tuple[str, ...], words: str) -> None:
    sets = [part for value in values for part in ("--set", value)]
    version = ("--kube-version", KUBERNETES_VERSION)
    ended = helm(tmp_path, "template", "try", str(CHART), *version, *sets)
    assert ended.returncode != 0
    assert words in ended.stderr


def test_helm_installs_and_uninstalls_on_a_real_api_server(
    start_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    """K20: the former chart could not be installed at all."""
    plane = start_plane(scheduler=False, kwok=False)
    here = ("--kubeconfig", str(plane.admin_kubeconfig), "-n", "paddle-system")
    team = ("--set", "teamServer.enabled=true")
    ended = helm(tmp_path, "install", "regatta", str(CHART), "--create-namespace", *team, *here)
    assert ended.returncode == 0, ended.stderr
    wait_until_served(plane)
    path = "/apis/apps/v1/namespaces/paddle-system/deployments"
    names = {deployment["metadata"]["name"] for deployment in plane.api.items(path)}
    assert names == {"paddle-controller-manager", "regatta-team-server"}

    ended = helm(tmp_path, "uninstall", "regatta", *here)
    assert ended.returncode == 0, ended.stderr
    assert plane.api.items(path) == []
    wait_until_served(plane)  # the jobs stay with their definition
