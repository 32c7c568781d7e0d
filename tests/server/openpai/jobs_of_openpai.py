"""Jobs that go through OpenPAI's API: commands that can be observed, and waiting for a state."""

from __future__ import annotations

import time
from typing import Any

from tests.patience import Patience
from tests.server.team.serving import Answer, TeamServer

#: Runs until the file is there; what it prints can be read meanwhile.
LOOP = "echo begun; echo aside >&2; until [ -e {go} ]; do sleep 0.05; done; echo done"
_SECONDS = 60.0


def submit(server: TeamServer, token: str, text: str) -> Answer:
    answer = server.ask("POST", "/api/v2/jobs", token, text=text)
    assert answer.status == 202, answer.body
    return answer


def detail_of(server: TeamServer, token: str, name: str, user: str = "ann") -> Any:
    answer = server.ask("GET", f"/api/v2/jobs/{user}~{name}", token)
    assert answer.status == 200, answer.body
    return answer.json


def state_of(server: TeamServer, token: str, name: str, user: str = "ann") -> str:
    state: str = detail_of(server, token, name, user)["jobStatus"]["state"]
    return state


def wait_for(server: TeamServer, token: str, name: str, state: str, user: str = "ann") -> Any:
    """The job, once it is in that state."""
    patience = Patience(_SECONDS)
    while True:
        detail = detail_of(server, token, name, user)
        if detail["jobStatus"]["state"] == state:
            return detail
        assert not patience.over, detail["jobStatus"]
        time.sleep(0.05)


def log_of(
    server: TeamServer, token: str, log: str, stream: str = "all", query: str = ""
) -> Answer:
    """What a task printed, by its `containerLog`."""
    answer = server.ask("GET", log + query, token)
    assert answer.status == 200, answer.body
    uris = {one["name"]: one["uri"] for one in answer.json["locations"]}
    return server.ask("GET", uris[stream].removeprefix(server.url))
