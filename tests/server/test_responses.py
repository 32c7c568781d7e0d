"""What may be large is made beside the loop, which answers others meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from regatta.server.responses import PART, answer_many, items


def test_others_have_their_turn_while_an_answer_is_made() -> None:
    others = threading.Event()

    def make() -> list[str]:
        assert others.wait(60), "the loop stood still"
        return ["made"]

    async def body() -> tuple[int, bytes]:
        answering = asyncio.ensure_future(answer_many(make, 201))
        asyncio.get_running_loop().call_soon(others.set)
        response = await answering
        return response.status_code, bytes(response.body)

    status, sent = asyncio.run(body())
    assert (status, json.loads(sent)) == (201, ["made"])


@pytest.mark.parametrize(
    "values", [[], ["one"], ["one", "two"], ["x" * PART] * 3, list(range(PART))]
)
def test_a_list_goes_out_in_parts_and_is_not_held_beside_them(values: list[Any]) -> None:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody listens")

    async def body() -> None:
        given = list(values)
        response = await items(given)
        assert given == []
        await response({"type": "http"}, receive, send)

    asyncio.run(body())
    start, *parts = said
    sent = b"".join(part["body"] for part in parts)
    assert json.loads(sent) == {"items": values}
    assert dict(start["headers"])[b"content-length"] == str(len(sent)).encode()
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    assert max(len(part["body"]) for part in parts) < 2 * PART
