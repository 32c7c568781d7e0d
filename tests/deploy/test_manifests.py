"""Manifests, chart, image and documentation agree with each other and with the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import regatta
from regatta.engines.kubernetes.operator.metrics import Metrics
from tests.deploy.conftest import OPERATOR, ROOT

CHART = ROOT / "charts/regatta"
DOCS = sorted((ROOT / "docs/kubernetes").glob("*.md"))


def manifest(kind: str) -> dict[str, Any]:
    found = [d for d in yaml.safe_load_all(OPERATOR.read_text()) if d["kind"] == kind]
    assert len(found) == 1
    return dict(found[0])


def test_manifest_and_chart_name_this_version() -> None:
    """K22: the manifest of one release ran the image of another."""
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"regatta/operator:{regatta.__version__}"
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (regatta.__version__, regatta.__version__)


def test_the_deployment_has_the_former_operators_name_and_selector() -> None:
    deployment = manifest("Deployment")
    assert deployment["metadata"]["name"] == "paddle-controller-manager"
    assert deployment["metadata"]["namespace"] == "paddle-system"
    selector = {"control-plane": "controller-manager"}
    assert deployment["spec"]["selector"]["matchLabels"] == selector
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_every_argument_is_a_flag_of_the_operator() -> None:
    from regatta.cli.verbs.operator import command

    known = {option for parameter in command.params for option in parameter.opts}
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["regatta", "operator"]
    given = {argument.partition("=")[0] for argument in container["args"]}
    chart = (CHART / "templates/deployment.yaml").read_text()
    given |= set(re.findall(r"- (--[A-Za-z-]+)", chart))
    assert given <= known


@pytest.mark.parametrize(
    ("written", "meant"),
    [("", True), ("=true", True), ("=True", True), ("=1", True), ("=false", False), ("=0", False)],
)
def test_switches_of_the_operator_are_written_as_in_any_manifest(written: str, meant: bool) -> None:
    from regatta.cli.verbs.operator import command

    switches = [p for p in command.params if p.type is click.BOOL and p.name != "help"]
    assert "leader_elect" in [switch.name for switch in switches]
    for switch in switches:
        for more in ([], ["--metrics-bind-address=0"]):
            said = [f"{switch.opts[0]}{written}", *more]
            assert command.make_context("operator", said).params[switch.name] is meant


def test_the_flags_that_the_documentation_lists_exist() -> None:
    from regatta.cli.verbs.operator import command

    known = {option for parameter in command.params for option in parameter.opts}
    listed = set(
        re.findall(r"^\| `(--[A-Za-z-]+)`", (DOCS_FOLDER / "install.md").read_text(), re.M)
    )
    assert listed
    assert listed <= known


DOCS_FOLDER = ROOT / "docs/kubernetes"


@pytest.mark.parametrize(
    "path",
    [CHART / "dashboards/regatta.json", DOCS_FOLDER / "operations.md"],
    ids=["the Grafana board", "the documentation"],
)
def test_every_metric_that_is_named_is_exported(path: Path) -> None:
    exported = set(re.findall(r"^# TYPE (\w+)", Metrics().text().decode(), re.M))
    named = set(re.findall(r"\bregatta_[a-z_]+", path.read_text()))
    assert len(named) >= 9
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in named} <= exported


def test_files_that_the_pages_name_exist() -> None:
    for page in DOCS:
        for named in re.findall(r"\b(?:deploy|charts|examples)/[\w./-]+\w", page.read_text()):
            assert (ROOT / named).exists(), f"{page.name}: {named}"


def test_the_image_installs_exactly_what_is_locked() -> None:
    wanted = {
        line.strip()
        for line in (ROOT / "requirements/operator.in").read_text().splitlines()
        if line and not line.startswith("#")
    }
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements/operator.txt").read_text(), re.M)
    assert wanted <= set(locked)
    project = (ROOT / "pyproject.toml").read_text()
    assert all(f'"{name}>=' in project for name in wanted)
