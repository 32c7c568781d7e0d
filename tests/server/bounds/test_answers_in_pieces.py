"""Answers go out in pieces, and their end only when all of them have left."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from regatta.server.bounds.answers_in_pieces import PIECE, InPieces

START = {"type": "http.response.start", "status": 200, "headers": []}


def said_of(size: int, more: bool) -> list[dict[str, Any]]:
    """What a connection is handed of a body that an app says in one go."""
    said: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"x" * size, "more_body": more})

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody listens")

    asyncio.run(InPieces(app)({"type": "http"}, receive, send))
    assert said.pop(0) == START
    return said


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize(
    ("size", "pieces"), [(0, 1), (PIECE, 1), (PIECE + 1, 2), (3 * PIECE, 3), (3 * PIECE + 1, 4)]
)
def test_a_body_is_said_in_pieces_and_ends_once(size: int, pieces: int, more: bool) -> None:
    said = said_of(size, more)

    assert b"".join(message["body"] for message in said) == b"x" * size
    assert max(len(message["body"]) for message in said) <= PIECE
    assert sum(len(message["body"]) > 0 for message in said) == (pieces if size else 0)
    assert [message["more_body"] for message in said] == [True] * (len(said) - 1) + [more]


def test_whoever_sends_a_long_body_waits_for_its_last_piece() -> None:
    assert said_of(2 * PIECE, more=False)[-1]["body"] == b""
