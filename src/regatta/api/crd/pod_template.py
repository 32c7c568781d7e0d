"""The schema of a role's pod template, expanded from the vendored one of Kubernetes.

Three things differ from Kubernetes' own. Descriptions are left out, because a CRD that does not
fit one annotation (262,144 bytes) cannot be applied by `kubectl apply`. Fields that a later
Kubernetes may bring to a pod or a container are kept instead of pruned; the pod's creation judges
them. And lists carry no merge keys, for the same lack of room: they would demand defaults, too.
"""

from __future__ import annotations

from typing import Any

from regatta.api.checks.template_rules import CONTAINER_WORDS, LONGEST_GRACE, POD_WORDS
from regatta.api.checks.template_shape import vendored_schema
from regatta.api.crd.structural import Schema, structural

#: What means something in a template's metadata. The rest of ObjectMeta is an API server's own.
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        # Go programs write `creationTimestamp: null` into templates.
        "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
    },
}
_CONTAINERS = ("containers", "initContainers")


def pod_template() -> Schema:
    vendored = vendored_schema()
    definitions: dict[str, Any] = vendored["definitions"] | {"ObjectMeta": _METADATA}
    expanded = structural(vendored, definitions)
    # Structural schemas know no `nullable` of their own accord, so this one goes in afterwards.
    expanded["properties"]["metadata"] = _METADATA
    pod = expanded["properties"]["spec"]
    # No pod is created with ephemeral containers; they only cost room here.
    del pod["properties"]["ephemeralContainers"]
    pod["x-kubernetes-preserve-unknown-fields"] = True
    _add_words(pod, POD_WORDS)
    grace = {"type": "integer", "minimum": 0, "maximum": LONGEST_GRACE}
    pod["properties"]["terminationGracePeriodSeconds"] = grace
    for key in _CONTAINERS:
        container = pod["properties"][key]["items"]
        container["x-kubernetes-preserve-unknown-fields"] = True
        _add_words(container, CONTAINER_WORDS)
    pod["properties"]["containers"]["minItems"] = 1
    return expanded


def _add_words(schema: Schema, words: dict[str, tuple[str, ...]]) -> None:
    for field, allowed in words.items():
        schema["properties"][field]["enum"] = list(allowed)
