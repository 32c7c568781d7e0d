"""The CustomResourceDefinition itself: names, columns, subresources, in both forms there are."""

from __future__ import annotations

from typing import Any

from regatta.api.crd import cel_rules
from regatta.api.crd.spec import spec_schema
from regatta.api.crd.status import status_schema
from regatta.api.crd.structural import Schema
from regatta.api.job import GROUP, KIND

PLURAL = "paddlejobs"
NAMES = {
    "kind": KIND,
    "listKind": f"{KIND}List",
    "plural": PLURAL,
    "singular": "paddlejob",
    "shortNames": ["pdj"],
}
#: Heading, place, type, and whether it shows without `-o wide`.
_COLUMNS = (
    ("Status", ".status.phase", "string", True),
    ("Mode", ".status.mode", "string", True),
    ("PS", ".status.ps.ready", "string", True),
    ("Worker", ".status.worker.ready", "string", True),
    ("Age", ".metadata.creationTimestamp", "date", True),
    ("Message", ".status.message", "string", False),
)
_SUBRESOURCES = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.worker.replicas",
        "statusReplicasPath": ".status.worker.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


def definition() -> dict[str, Any]:
    """For `apiextensions.k8s.io/v1`, with everything that an API server can check."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": _columns("jsonPath"),
        "subresources": _SUBRESOURCES,
        "schema": {"openAPIV3Schema": _schema()},
    }
    return _resource("v1", {"versions": [version]})


def old_definition() -> dict[str, Any]:
    """For `apiextensions.k8s.io/v1beta1`: types and enums only, unknown fields kept."""
    spec = {
        "version": "v1",
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "additionalPrinterColumns": _columns("JSONPath"),
        "subresources": _SUBRESOURCES,
        "validation": {"openAPIV3Schema": _for_old_servers(_schema())},
    }
    return _resource("v1beta1", spec)


def _resource(version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "names": NAMES, "scope": "Namespaced", **spec},
    }


def _schema() -> Schema:
    return {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            # Named, so that rules can point at it.
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": spec_schema(),
            "status": status_schema(),
        },
        "x-kubernetes-validations": [rule.as_validation() for rule in cel_rules.of_the_job()],
    }


def _columns(path_key: str) -> list[dict[str, Any]]:
    return [
        {"name": name, path_key: path, "type": kind} | ({} if narrow else {"priority": 1})
        for name, path, kind, narrow in _COLUMNS
    ]


def _for_old_servers(schema: Schema) -> Schema:
    """Without extensions and defaults; what only a rule demanded becomes a required field."""
    result: Schema = {}
    for key, value in schema.items():
        if key.startswith("x-kubernetes-") or key in ("default", "nullable"):
            continue
        if key == "properties":
            result[key] = {name: _for_old_servers(field) for name, field in value.items()}
        elif key in ("items", "additionalProperties"):
            result[key] = _for_old_servers(value)
        else:
            result[key] = value
    if {"replicas", "template"} <= result.get("properties", {}).keys():
        result["required"] = [*result["required"], "template"]
    return result
