"""Every operation, asked for by everybody, at every visibility."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.server.accounts.visibility import Visibility
from tests.server.team.authorisation.matrix import deviations
from tests.server.team.authorisation.operations import ASKED, OPERATIONS
from tests.server.team.authorisation.world import As, a_world
from tests.server.team.serving import TeamServer


def test_the_table_has_every_operation_that_the_server_has(server: TeamServer) -> None:
    paths = server.ask("GET", "/regatta/v1/openapi.json", server.token("ann")).json["paths"]
    there_are = {(method.upper(), path) for path, methods in paths.items() for method in methods}

    assert there_are - OPERATIONS.keys() == set(), "say whom these are for"
    assert OPERATIONS.keys() - there_are == set(), "these are gone"


@pytest.mark.parametrize("visibility", Visibility, ids=str)
def test_everybody_gets_what_is_for_them_and_nothing_else(
    tmp_path: Path, visibility: Visibility
) -> None:
    with a_world(tmp_path, visibility) as world:
        found = deviations(world, ASKED)

    assert not found, "\n".join(map(str, found))


def test_an_admin_ends_the_server_and_nobody_else(tmp_path: Path) -> None:
    with a_world(tmp_path, Visibility.ALL) as world:
        stop = {key: asks for key, asks in OPERATIONS.items() if key[1].endswith("/server/stop")}
        refused = deviations(world, stop)
        ended = world.ask("POST", "/regatta/v1/server/stop", As.ADMIN)

    assert (len(stop), refused, ended.status) == (1, [], 202)
