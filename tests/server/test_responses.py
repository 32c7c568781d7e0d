"""What may be large is made beside the loop, which answers others meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading

from regatta.server.responses import answer_many


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
