"""The schema of `status`: what people read, and what the brain remembers from pass to pass.

A field that is missing here would be pruned by the API server without a word, and the brain would
forget it; so the schema is made of the struct itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args, get_type_hints

import msgspec

from regatta.api.crd.structural import Schema, structural
from regatta.api.job import CONDITION_TYPES, Condition, Failure, JobStatus, Progress


def status_schema() -> Schema:
    described = msgspec.json.schema(JobStatus)
    status = structural(described, described["$defs"])
    fields = status["properties"]
    # A phase of a later version must not make an older CRD refuse the whole status.
    fields["phase"] = {"type": "string"}
    #: What the scale subresource shows to autoscalers: the workers' labels.
    fields.setdefault("selector", {"type": "string"})
    conditions = fields["conditions"]
    conditions["x-kubernetes-list-type"] = "map"
    conditions["x-kubernetes-list-map-keys"] = ["type"]
    conditions["items"]["properties"]["type"]["enum"] = list(CONDITION_TYPES)
    conditions["items"]["properties"]["status"]["enum"] = ["True", "False", "Unknown"]
    _add_times(fields, JobStatus)
    _add_times(conditions["items"]["properties"], Condition)
    _add_times(fields["failure"]["properties"], Failure)
    _add_times(fields["progress"]["properties"], Progress)
    return status


def _add_times(fields: Schema, struct: type[msgspec.Struct]) -> None:
    hints = get_type_hints(struct)
    for field in msgspec.structs.fields(struct):
        if _is_time(hints[field.name]):
            place = fields[field.encode_name]
            place.get("items", place)["format"] = "date-time"


def _is_time(hint: Any) -> bool:
    return hint is datetime or any(_is_time(part) for part in get_args(hint))
