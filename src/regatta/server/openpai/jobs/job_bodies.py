"""The small bodies that change a job: `{"value": ...}`."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from regatta.api.source.foreign_json import UNREADABLE
from regatta.server.openpai.jobs.job_shapes import Wish
from regatta.server.openpai.whole_body import whole_body
from regatta.server.openpai_errors import invalid_parameters

START, STOP = "START", "STOP"
LONGEST_TAG = 256


async def read_wish(request: Request) -> str:
    """Raises OpenPaiError (400)."""
    try:
        return msgspec.json.decode(await whole_body(request), type=Wish).value
    except UNREADABLE as odd:
        raise invalid_parameters(
            f'the body must be JSON such as {{"value": "..."}} ({odd})'
        ) from None


async def read_execution_type(request: Request) -> str:
    value = await read_wish(request)
    if value not in (START, STOP):
        raise invalid_parameters(f"value is {value[:40]!r}; write {START} or {STOP}")
    return value


async def read_tag(request: Request) -> str:
    value = await read_wish(request)
    if not value.strip() or "," in value or len(value) > LONGEST_TAG or not value.isprintable():
        raise invalid_parameters(
            f"value is {value[:40]!r}; a tag is 1 to {LONGEST_TAG} characters without a comma, "
            "which separates tags in queries"
        )
    return value.strip()
