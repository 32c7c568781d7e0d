"""What a team's server does in the background ends with it, and not before."""

from __future__ import annotations

import asyncio

import pytest

from regatta.server.team import serve_team
from regatta.server.team.serve_team import _for_ever


def test_a_mistake_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_team, "AGAIN_SECONDS", 0.01)
    begun = 0

    async def breaks_twice() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise ValueError("ours")
        await asyncio.Event().wait()

    async def story() -> None:
        working = asyncio.create_task(_for_ever("working", breaks_twice))
        async with asyncio.timeout(60):
            while begun < 3:
                await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(story())


def test_a_mistake_on_the_way_out_keeps_no_server_from_leaving() -> None:
    """As a group of tasks tells of it, of which one breaks while it is cancelled."""

    async def breaks_at_its_end() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_breaks_when_cancelled())

    async def story() -> None:
        working = asyncio.create_task(_for_ever("working", breaks_at_its_end))
        await asyncio.sleep(0.05)
        working.cancel()
        await asyncio.wait({working}, timeout=20)
        assert working.cancelled()

    asyncio.run(story())


async def _breaks_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("ours")
