"""What `openapi.json` says of OpenPAI's routes: their bodies, answers and refusals."""

from __future__ import annotations

from typing import Any

from regatta.server.openpai.openpai_refusals import OpenPaiRefusal
from regatta.server.schemas import Declared, Schema, of

_REFUSALS = {
    400: "What was sent cannot be read, or is not allowed there.",
    401: "Nobody is signed in.",
    403: "Not for this user, or not for an application's token.",
    404: "There is none of that name, or no such path.",
    405: "No such method there; `Allow` says which there are.",
    409: "There is one of that name already, or it is in no state for that.",
    413: "The body is too large.",
    422: "What runs the jobs refuses it.",
    429: "Too often, or too much at once; `Retry-After` says when again.",
    500: "A mistake of the server's own.",
    501: "OpenPAI has it, and it means nothing here.",
    503: "Not now: the server is too busy, or the team's database, or what runs the jobs, is away.",
    507: "The disk is full.",
}
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"


def openpai_answers(schemas: dict[int, Schema]) -> Declared:
    """For a route's `responses`: by status what it answers, and every refusal."""
    declared: Declared = {
        status: {"description": said, "content": {_JSON: {"schema": of(OpenPaiRefusal)}}}
        for status, said in _REFUSALS.items()
    }
    for status, schema in schemas.items():
        declared[status] = {"description": "As asked.", "content": {_JSON: {"schema": schema}}}
    return declared


def list_of(kind: type) -> Schema:
    return {"type": "array", "items": of(kind)}


def body_of(kind: type, *, form: bool = False) -> dict[str, Any]:
    """For a route's `openapi_extra`. `form`: as browsers send one, too."""
    kinds = (_JSON, _FORM) if form else (_JSON,)
    content = {one: {"schema": of(kind)} for one in kinds}
    return {"requestBody": {"required": True, "content": content}}
