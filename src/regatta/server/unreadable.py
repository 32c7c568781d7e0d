"""What is wrong with a request that could not be read, in a sentence for each mistake. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from regatta.api.checks.suggestions import did_you_mean, listed, shown
from regatta.api.problems import Problem

Found = Mapping[str, Any]


def about_body(cause: BaseException | None) -> str:
    """Why it is no JSON, by what its reader raised."""
    if isinstance(cause, UnicodeDecodeError):
        why = f"byte {cause.start} is not UTF-8; send UTF-8 text"
    elif isinstance(cause, RecursionError):
        why = "it is nested too deeply"
    else:
        why = str(cause)[:200] if cause is not None else "it is none"
    return f"the body cannot be read as JSON: {why}"


def not_json(errors: Sequence[Found]) -> str | None:
    """Of a body in which JSON stops somewhere; None of another."""
    for found in errors:
        if found["type"] == "json_invalid":
            said = found.get("ctx", {}).get("error", "it is none")
            return f"the body cannot be read as JSON: at character {found['loc'][-1]}, {said}"
    return None


def problems_of(errors: Sequence[Found], body: type[BaseModel] | None) -> list[Problem]:
    """`body`: what the route reads its body as."""
    return [_problem(found, body) for found in errors]


def _problem(found: Found, body: type[BaseModel] | None) -> Problem:
    # The first part says where the value was sent (body, query), which the message needs not.
    path = ".".join(map(str, found["loc"][1:] or found["loc"]))
    if found["type"] == "extra_forbidden" and body is not None:
        known = _known_at(found["loc"][1:-1], body)
        meant = did_you_mean(found["loc"][-1], known)
        return Problem(path, f"unknown field; {meant}Known here: {listed(known)}")
    if found["type"] in ("model_attributes_type", "model_type", "dict_type"):
        return Problem(path, f"found {shown(found['input'])}; write a map, {{...}}")
    if found["type"] == "missing":
        return Problem(path, "missing; it is required")
    if found["type"] == "value_error":  # a sentence of our own
        return Problem(path, found["msg"].removeprefix("Value error, "))
    return Problem(path, f"found {shown(found['input'])}; {_lowered(found['msg'])}")


def _lowered(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}".replace("input should", "it should")


def _known_at(loc: Sequence[Any], body: type[BaseModel]) -> list[str]:
    for step in loc:
        for field in body.model_fields.values():
            if field.alias == step:
                body = next(kind for kind in _kinds(field.annotation))
    return [str(field.alias) for field in body.model_fields.values()]


def _kinds(annotation: Any) -> list[type[BaseModel]]:
    """The models in it, as of `ShellBody | None`."""
    every = (annotation, *getattr(annotation, "__args__", ()))
    return [one for one in every if isinstance(one, type) and issubclass(one, BaseModel)]
