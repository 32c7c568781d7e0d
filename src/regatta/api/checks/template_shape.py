"""Judges a role's pod template: its shape against Kubernetes' own schema.

The schema is vendored (`tools/vendor_podtemplate_schema.py`), so that a file is judged the same on
a laptop and before a cluster sees it. A wrong type is an error. A field that this Kubernetes does
not know is a warning, since a newer cluster may; `strict` makes it an error. What a template means
beyond its shape is judged in `regatta.api.checks.template_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import jsonschema_rs

from regatta.api.amounts import whole_seconds
from regatta.api.checks.quotes import about_text
from regatta.api.checks.suggestions import closest, did_you_mean, listed, shown
from regatta.api.problems import Problem
from regatta.api.source.paths import Step, join, join_all
from regatta.api.source.yaml import Mark

_WORDS = {
    "string": "text, in quotes",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false, without quotes",
    "array": "a list",
    "object": "a map of indented `key: value` lines",
}


@cache
def vendored_schema() -> dict[str, Any]:
    text = (
        resources.files("regatta.api.checks").joinpath("podtemplate.schema.json").read_text("utf-8")
    )
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _validator() -> Any:
    return jsonschema_rs.validator_for(vendored_schema())


def check_shape(
    template: dict[str, Any],
    path: str,
    *,
    strict: bool = False,
    marks: dict[str, Mark] | None = None,
) -> list[Problem]:
    """Everything whose type is wrong, that is missing, or that Kubernetes does not know."""
    problems: list[Problem] = []
    for error in _validator().iter_errors(template):
        steps: list[Step] = list(error.instance_path)
        place = join_all(path, steps)
        if error.kind.name == "additionalProperties":
            known = list(_definition(steps).get("properties", ()))
            for key in error.kind.unexpected:
                problems.append(_unknown(join(place, key), key, known, strict))
        elif error.kind.name == "required":
            problems.append(_missing(place, str(error.kind.property), error.instance, steps))
        else:
            found = marks.get(place) if marks else None
            sentence = _about_type(error.instance, list(error.kind.types), place, found)
            problems.append(Problem(place, sentence))
    problems += (
        Problem(join_all(path, steps), f"found {value}; write a whole number")
        for steps, value in _fractions(template)
        if _definition(steps).get("type") == "integer"
    )
    return problems


def _fractions(value: object, steps: tuple[Step, ...] = ()) -> Iterator[tuple[list[Step], float]]:
    """Numbers with a point. A JSON schema takes 3.0 for a whole number, and no Kubernetes does."""
    if isinstance(value, float) and value.is_integer():
        yield list(steps), value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _fractions(inner, (*steps, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _fractions(inner, (*steps, index))


def _missing(place: str, field: str, there: dict[str, Any], steps: list[Step]) -> Problem:
    """One that is misspelt is told under the name that it has in the file."""
    known = _definition(steps).get("properties", ())
    for key in there:
        if key not in known and closest(key, [field]):
            message = f"Kubernetes knows no such field; did you mean {field}? It is required"
            return Problem(join(place, key), message)
    return Problem(join(place, field), "missing; Kubernetes requires it")


def _unknown(path: str, key: str, known: list[str], strict: bool) -> Problem:
    meant = _elsewhere(path, key, known) or did_you_mean(key, known)
    few = f"Known here: {listed(known)}" if known and len(known) <= 12 and not meant else ""
    effect = "" if strict else "it has no effect. "
    message = f"Kubernetes knows no such field; {effect}{meant}{few}".rstrip("; ")
    return Problem(path, message, "error" if strict else "warning")


def _elsewhere(path: str, key: str, known: list[str]) -> str:
    """Where a field belongs that stands one level too high."""
    if key in ("limits", "requests") and "resources" in known:
        place = "resources"
    elif path.endswith(f".template.{key}") and key in _definition(["spec"])["properties"]:
        place = "spec"
    else:
        return ""
    return f"It belongs under {place}: write {path.removesuffix(key)}{place}.{key}"


def _about_type(value: object, types: list[str], path: str, mark: Mark | None) -> str:
    if "string" in types and isinstance(value, bool | int | float):
        return about_text(value, path, mark)
    if types == ["array"] and path.endswith((".command", ".args")) and isinstance(value, str):
        words = json.dumps(value.split()[:8], ensure_ascii=False)
        return f"found {shown(value)}; write a list of words: {words}"
    if types == ["integer"] and isinstance(value, str) and value.isdecimal():
        return f"found {shown(value)}; write a whole number without the quotes: {value}"
    if types == ["integer"] and path.lower().endswith("seconds"):
        seconds = whole_seconds(value) if isinstance(value, str) else 0
        return f"found {shown(value)}; write a whole number of seconds, such as {seconds or 30}"
    if types == ["array"] and path.endswith(".env") and isinstance(value, dict):
        items = [{"name": name, "value": str(said)} for name, said in list(value.items())[:3]]
        written = json.dumps(items, ensure_ascii=False)
        return f"found {shown(value)}; write a list, with a name and a value each: {written}"
    wanted = listed((_WORDS[kind] for kind in sorted(types)), "or")
    return f"found {shown(value)}; write {wanted}"


def _definition(steps: list[Step]) -> dict[str, Any]:
    """The part of the schema that describes this place of a template."""
    node = _followed(vendored_schema())
    for step in steps:
        if isinstance(step, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(step) or node.get("additionalProperties") or {}
        node = _followed(node)
    return node


def _followed(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = vendored_schema()["definitions"][node["$ref"].rpartition("/")[2]]
    return node
