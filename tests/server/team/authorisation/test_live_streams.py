"""What happens while somebody watches is told to those alone who see the job."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from regatta.server.accounts.visibility import Visibility
from tests.server.team.authorisation.world import OWNER, As, a_world, read_until, sees

WATCHERS = (As.OWNER, As.APPLICATION, As.MEMBER, As.OTHER, As.ADMIN)
STREAMS = ("/regatta/v1/watch", "/regatta/v1/events?follow=true")
HAPPENS = "happens-now"


@pytest.mark.parametrize("visibility", Visibility, ids=str)
def test_a_stream_tells_what_is_seen_as_it_happens(tmp_path: Path, visibility: Visibility) -> None:
    with a_world(tmp_path, visibility) as world, ExitStack() as stack:
        open_ones = [
            (who, path, stack.enter_context(world.streaming(path, world.tokens[who])))
            for who in WATCHERS
            for path in STREAMS
        ]
        for _, path, stream in open_ones:
            read_until(stream, "event: synced" if "watch" in path else "-came-last")
        world.submit(OWNER, HAPPENS, suspend=True)
        told = dict.fromkeys(((who, path) for who, path, _ in open_ones), b"")
        # Everybody hears of their own; of the second when all is told that came before the first.
        for turn in ("first", "second"):
            for who in (As.OWNER, As.MEMBER, As.OTHER, As.ADMIN):
                world.submit(who.user, f"{who.user}-{turn}", suspend=True)
            for who, path, stream in open_ones:
                told[who, path] += read_until(stream, f"{who.user}-{turn}")
        heard = {key: HAPPENS.encode() in said for key, said in told.items()}

    assert heard == {
        (who, path): sees(who, OWNER, visibility) for who in WATCHERS for path in STREAMS
    }
