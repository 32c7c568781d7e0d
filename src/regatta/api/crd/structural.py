"""From the JSON schemas that pydantic and msgspec write to the dialect that a CRD may hold.

An API server takes only *structural* schemas: no references, one type for every value, `null` by
a flag. Titles and descriptions are left behind, since they would not fit.
"""

from __future__ import annotations

from typing import Any

from regatta.api import quantity

Schema = dict[str, Any]

#: A quantity may be text, a whole number or a fraction (`cpu: 0.5`), and no structural type covers
#: all three; what is none of them is refused when the job is read.
QUANTITY: Schema = {"x-kubernetes-preserve-unknown-fields": True}
#: A quantity that no pod's creation will judge. Each word speaks of one type and lets the others
#: pass: text, numbers, flags, maps, lists, of which the last three are never quantities.
JUDGED_QUANTITY: Schema = QUANTITY | {
    "pattern": quantity.PATTERN,
    "minimum": 0,
    "not": {"enum": [True, False]},
    "minProperties": 1,
    "maxProperties": 0,
    "minItems": 1,
    "maxItems": 0,
}
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}

_KEPT = ("type", "enum", "format", "minimum", "maximum", "required", "minItems", "maxItems")


def structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """This schema with its references put in place and every null left out."""
    if "$ref" in schema:
        return structural(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return _one_of(schema["anyOf"], definitions)
    if isinstance(schema.get("type"), list):
        return _one_of([{"type": kind} for kind in schema["type"]], definitions)
    result: Schema = {key: schema[key] for key in _KEPT if schema.get(key)}
    if "minimum" in schema:  # zero counts
        result["minimum"] = schema["minimum"]
    if "enum" in result:
        result["type"] = "string"
    if "items" in schema:
        result["items"] = structural(schema["items"], definitions)
    if "properties" in schema:
        result["properties"] = {
            name: structural(value, definitions) for name, value in schema["properties"].items()
        }
    elif isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = structural(schema["additionalProperties"], definitions)
    return result


def _one_of(options: list[Schema], definitions: dict[str, Schema]) -> Schema:
    options = [option for option in options if option.get("type") != "null"]
    if len(options) == 1:
        return structural(options[0], definitions)
    kinds = {option.get("type") for option in options}
    if kinds == {"integer", "string"}:
        return dict(INT_OR_STRING)
    if "number" in kinds and "string" in kinds:
        return dict(QUANTITY)
    raise ValueError(f"no structural schema for a choice of {sorted(map(str, kinds))}")
