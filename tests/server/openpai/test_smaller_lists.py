"""Lists of jobs are compressed for clients that take that, and nothing else is."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from regatta.server.openpai import smaller_lists
from regatta.server.openpai.smaller_lists import LEAST, SmallerLists
from tests.openpai_configs import version_two
from tests.server.openpai.jobs_of_openpai import submit
from tests.server.team.serving import TeamServer, a_team_server

GZIP = {"Accept-Encoding": "gzip, deflate"}
LARGE = b"x" * LEAST


def asked(path: str, body: bytes, method: str = "GET", accepts: str = "gzip") -> dict[str, str]:
    """The headers of the answer."""
    found: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(body)(scope, receive, send)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        found.append(message)

    headers = [(b"accept-encoding", accepts.encode())]
    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": headers}
    asyncio.run(SmallerLists(app)(scope, receive, send))
    return {name.decode(): value.decode() for name, value in found[0]["headers"]}


@pytest.mark.parametrize(
    "path", ["/api/v1/jobs", "/api/v2/jobs", "/api/v1/user/ann/jobs", "/api/v2/user/ann/jobs"]
)
def test_a_long_list_is_compressed(path: str) -> None:
    headers = asked(path, LARGE)
    assert headers["content-encoding"] == "gzip"
    assert headers["vary"] == "Accept-Encoding"
    assert int(headers["content-length"]) < len(LARGE)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/api/v2/jobs", {"body": LARGE[1:]}),
        ("/api/v2/jobs", {"accepts": "identity"}),
        ("/api/v2/jobs", {"method": "POST"}),
        ("/api/v2/jobs/ann~x", {}),
        ("/api/v2/logs/signed", {}),
        ("/regatta/v1/watch", {}),
        ("/regatta/v1/jobs", {}),
    ],
)
def test_everything_else_goes_out_as_it_is(path: str, more: dict[str, Any]) -> None:
    assert "content-encoding" not in asked(path, **{"body": LARGE, **more})


@pytest.fixture
def eager(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TeamServer]:
    """A server to which a few jobs are many."""
    monkeypatch.setattr(smaller_lists, "LEAST", 100)
    with a_team_server(tmp_path_factory.mktemp("team")) as serving:
        yield serving


def test_a_list_says_the_same_either_way(eager: TeamServer) -> None:
    ann = eager.token("ann")
    submit(eager, ann, version_two("one", ["true"]))
    smaller = eager.ask("GET", "/rest-server/api/v2/jobs/", ann, headers=GZIP)
    assert smaller.headers["Content-Encoding"] == "gzip"
    names = [job["name"] for job in eager.ask("GET", "/api/v2/jobs", ann).json]
    assert names == ["one"]
    assert b'"name":"one"' in gzip.decompress(smaller.body)
