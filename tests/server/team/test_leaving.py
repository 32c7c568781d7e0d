"""Who still waits when the server leaves hears that it does."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from regatta.server.team.leaving import Leaving


def _cancelled(path: str, *, begun: bool) -> list[Message]:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def story() -> None:
        scope = {"type": "http", "path": path, "method": "POST", "headers": []}
        task = asyncio.ensure_future(Leaving(app)(scope, receive, send))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    return sent


@pytest.mark.parametrize(
    ("path", "code"), [("/regatta/v1/jobs", "ServerUnreachable"), ("/api/v2/jobs", "UnknownError")]
)
def test_whoever_has_no_answer_yet_is_told_to_send_it_again(path: str, code: str) -> None:
    start, body = _cancelled(path, begun=False)
    assert start["status"] == 503
    said = json.loads(body["body"])
    assert said["code"] == code
    assert "send it again when the server is back" in said["message"]


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    [start] = _cancelled("/regatta/v1/watch", begun=True)
    assert start["status"] == 200
