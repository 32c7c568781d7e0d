"""What `openapi.json` says of OpenPAI's routes: answers as the structures that go out, and for
every refusal its two fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from fastapi import FastAPI

from regatta.server.openpai.refusals import OpenPaiRefusal
from regatta.server.schemas import Declared, Schema, of

_PLACE = "#/components/schemas/{name}"
#: What any route may answer, beside what it is there for.
_REFUSALS = {
    400: "The request cannot be read, or asks for what cannot be.",
    401: "No token, or one that is not valid.",
    403: "Not for who asks.",
    404: "No such thing, or none that the asker may see.",
    405: "No such method here.",
    409: "It is there already, or in no state for that.",
    413: "The body is too large.",
    422: "The server's engine cannot do that.",
    429: "Too often: Retry-After says when to try again.",
    500: "A mistake of the server's own.",
    501: "OpenPAI has it, and it means nothing here.",
    503: "Not now: the database or the cluster is away.",
    507: "The disk is full.",
}
TEXT: Schema = {"type": "string"}


def list_of(kind: type) -> Schema:
    return {"type": "array", "items": of(kind)}


def map_of(kind: type) -> Schema:
    return {"type": "object", "additionalProperties": of(kind)}


def openpai_answers(
    schemas: dict[int, Schema], *, media: str = "application/json", headers: Iterable[str] = ()
) -> Declared:
    """For a route's `responses`: by status what it answers, and every refusal."""
    declared: Declared = {
        status: {
            "description": said,
            "content": {"application/json": {"schema": of(OpenPaiRefusal)}},
        }
        for status, said in _REFUSALS.items()
    }
    for status, schema in schemas.items():
        declared[status] = {"description": "As asked.", "content": {media: {"schema": schema}}}
        if headers:
            declared[status]["headers"] = {name: {"schema": TEXT} for name in headers}
    return declared


def json_body(kind: type) -> dict[str, Any]:
    """For a route's `openapi_extra`, which reads its body itself."""
    content = {"application/json": {"schema": of(kind)}}
    return {"requestBody": {"required": True, "content": content}}


def text_body(*media: str) -> dict[str, Any]:
    content = {kind: {"schema": TEXT} for kind in media}
    return {"requestBody": {"required": True, "content": content}}


def declare(app: FastAPI, kinds: Iterable[type]) -> None:
    """Adds these to what the description defines, when somebody asks for it."""
    plain = app.openapi
    wanted = (OpenPaiRefusal, *kinds)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _, named = msgspec.json.schema_components(wanted, ref_template=_PLACE)
            plain().setdefault("components", {}).setdefault("schemas", {}).update(named)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
