"""The CustomResourceDefinition itself: names, columns, subresources."""

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
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": _columns(),
        "subresources": _SUBRESOURCES,
        "schema": {"openAPIV3Schema": _schema()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "names": NAMES, "scope": "Namespaced", "versions": [version]},
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


def _columns() -> list[dict[str, Any]]:
    return [
        {"name": name, "jsonPath": path, "type": kind} | ({} if narrow else {"priority": 1})
        for name, path, kind, narrow in _COLUMNS
    ]
