"""The CRD's files: fresh, small enough, and complete. No API server is needed for these."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import yaml

from regatta.api.checks.schema import SpecDraft
from regatta.api.crd.definition import definition
from regatta.api.crd.files import rendered
from regatta.api.crd.status import CONDITION_TYPES
from regatta.api.job import Condition, Failure, JobStatus, Progress, RoleStatus
from regatta.controller import summary
from tests.deploy.conftest import ROOT

#: All annotations of an object together; `kubectl apply` keeps a copy of the object in one.
ANNOTATIONS_LIMIT = 262_144


def schema() -> dict[str, Any]:
    found: dict[str, Any] = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("path", list(rendered()))
def test_the_file_is_what_the_code_would_write(path: str) -> None:
    assert (ROOT / path).read_text() == rendered()[path], (
        f"{path} is stale; run: python -m regatta.api.crd"
    )


def test_a_plain_kubectl_apply_has_room_to_spare() -> None:
    size = len(json.dumps(definition(), separators=(",", ":")))
    assert size < ANNOTATIONS_LIMIT - 30_000


def test_the_text_and_the_definition_say_the_same() -> None:
    assert yaml.safe_load(rendered()["deploy/v1/crd.yaml"]) == definition()


def test_every_field_of_a_job_file_is_in_the_schema() -> None:
    fields = schema()["properties"]["spec"]["properties"]
    assert fields.keys() == {field.alias for field in SpecDraft.model_fields.values()}


@pytest.mark.parametrize(
    ("struct", "path"),
    [
        (JobStatus, ()),
        (RoleStatus, ("worker",)),
        (RoleStatus, ("ps",)),
        (RoleStatus, ("heter",)),
        (Failure, ("failure",)),
        (Progress, ("progress",)),
    ],
    ids=lambda value: "status" if value == () else str(value),
)
def test_nothing_that_the_brain_remembers_would_be_pruned(
    struct: type[msgspec.Struct], path: tuple[str, ...]
) -> None:
    node = schema()["properties"]["status"]
    for step in path:
        node = node["properties"][step]
    assert {field.encode_name for field in msgspec.structs.fields(struct)} <= set(
        node["properties"]
    )


def test_conditions_and_tasks_keep_all_their_fields_too() -> None:
    status = schema()["properties"]["status"]["properties"]
    condition = status["conditions"]["items"]["properties"]
    assert condition.keys() == {field.encode_name for field in msgspec.structs.fields(Condition)}
    assert status["tasks"]["additionalProperties"] == status["worker"]


def test_the_condition_types_are_those_that_the_brain_writes() -> None:
    assert set(CONDITION_TYPES) == set(summary.CONDITION_TYPES)


def test_aliased_fields_have_no_default_that_would_contradict_the_other_spelling() -> None:
    fields = schema()["properties"]["spec"]["properties"]
    for name in ("cleanPodPolicy", "cleanPolicy", "withGloo", "mode"):
        assert "default" not in fields[name], name


def test_templates_carry_neither_descriptions_nor_merge_keys() -> None:
    template = schema()["properties"]["spec"]["properties"]["worker"]["properties"]["template"]
    text = json.dumps(template)
    assert "x-kubernetes-list" not in text
    assert '"description"' not in text


def test_every_rule_has_a_sentence() -> None:
    def rules(node: Any) -> Any:
        if isinstance(node, dict):
            yield from node.get("x-kubernetes-validations", ())
            for value in node.values():
                yield from rules(value)

    found = list(rules(schema()))
    assert len(found) > 30
    assert all(len(rule["message"]) > 20 for rule in found)


def test_the_oldest_kubernetes_is_the_one_that_the_rules_need() -> None:
    """`optionalOldSelf` is on from 1.30; before, the API server drops it and refuses the rules."""
    needing = json.dumps(schema()).count('"optionalOldSelf"')
    page = (ROOT / "docs/kubernetes/install.md").read_text()
    assert needing == 13
    assert "thirteen of its rules" in page
    assert 'kubeVersion: ">=1.30' in (ROOT / "charts/regatta/Chart.yaml").read_text()
    assert "Kubernetes 1.30 and later" in (ROOT / "README.md").read_text()
