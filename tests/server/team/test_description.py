"""What `openapi.json` says is true of every route, whatever is sent: schemathesis looks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from starlette.responses import PlainTextResponse, Response

from regatta.server.openpai import cluster_routes
from regatta.server.responses import answer
from regatta.server.streams import sse
from regatta.server.team import own_routes
from tests.doors import eventually
from tests.server.accounts.people import PASSWORD
from tests.server.team.authorisation.world import openpai_config
from tests.server.team.schemathesis_hooks import PASSWORD as PASSWORD_VARIABLE
from tests.server.team.schemathesis_hooks import TOKEN, URL, USER
from tests.server.team.serving import TeamServer, a_team_server

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
CONFIG = HERE / "schemathesis.toml"
BOSS = "boss"
#: How long a stream is, in seconds: what it says at once, and no more.
MOMENT = 0.05

_all_of_it = sse._events


async def a_moment_of_it(*args: Any) -> AsyncGenerator[bytes, None]:
    ends = asyncio.get_running_loop().time() + MOMENT
    async with aclosing(_all_of_it(*args)) as events:
        while True:
            try:  # what is sent is sent whole
                async with asyncio.timeout_at(ends):
                    event = await anext(events)
            except (TimeoutError, StopAsyncIteration):
                return
            yield event


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TeamServer]:
    """With streams that end, and something to ask for."""
    monkeypatch.setattr(sse, "_events", a_moment_of_it)
    monkeypatch.setattr(sse, "REFUSAL_SECONDS", MOMENT)
    with a_team_server(tmp_path) as server:
        token = server.admin_token(BOSS)
        server.add_user("bystander")
        config = openpai_config("kept", "echo hello")
        yaml = {"Content-Type": "text/yaml"}
        assert server.ask("POST", "/api/v2/jobs", token, text=config, headers=yaml).status == 202
        kept = "/regatta/v1/namespaces/user-boss/jobs/kept"
        eventually(
            lambda: server.ask("GET", kept, token).json["status"].get("phase") == "Completed",
            "its end",
        )
        yield server


def schemathesis(server: TeamServer, folder: Path, *options: str) -> tuple[int, str]:
    token, described = server.admin_token(BOSS), folder / "openapi.json"
    described.write_bytes(server.ask("GET", "/regatta/v1/openapi.json", token).body)
    command = [
        *(sys.executable, "-m", "schemathesis.cli"),
        *("--config-file", str(CONFIG)),
        *("run", str(described), "--url", server.url, "--no-color", *options),
    ]
    place = {URL: server.url, TOKEN: token, USER: BOSS, PASSWORD_VARIABLE: PASSWORD}
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **place, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_everything_that_is_described_is_true(asked: TeamServer, tmp_path: Path) -> None:
    code, said = schemathesis(asked, tmp_path)

    assert code == 0, said
    # Nothing that was sent took from whoever asks the right to be answered.
    assert asked.ask("GET", "/api/v2/users", asked.token(BOSS)).status == 200


class Planted(NamedTuple):
    where: object
    name: str
    instead: Any
    path: str
    #: What schemathesis calls it.
    found: str


def _without_namespace(value: Any, *rest: Any) -> Response:
    told = msgspec.to_builtins(value)
    return answer({key: value for key, value in told.items() if key != "namespace"}, *rest)


def _teapot(value: Any, *_: Any) -> Response:
    return answer(value, 418)


PLANTED = {
    "a field that is missing": Planted(
        own_routes, "answer", _without_namespace, "/regatta/v1/whoami", "Response violates schema"
    ),
    "a status that nobody declared": Planted(
        cluster_routes, "answer", _teapot, "/api/v2/alerts", "Undocumented status code"
    ),
    "a kind that nobody declared": Planted(
        cluster_routes,
        "answer",
        lambda *_: PlainTextResponse("hello"),
        "/api/v2/storages",
        "ndocumented",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_wrong_answer_is_found(
    asked: TeamServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    planted = PLANTED[what]
    before = schemathesis(asked, tmp_path, "--include-path", planted.path)

    monkeypatch.setattr(planted.where, planted.name, planted.instead)
    code, said = schemathesis(asked, tmp_path, "--include-path", planted.path)

    assert before[0] == 0, before[1]
    assert code == 1
    assert planted.found in said
