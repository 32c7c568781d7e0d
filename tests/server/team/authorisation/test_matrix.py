"""Every operation, asked for by everybody, at every visibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.server.accounts.visibility import Visibility
from tests.server.team.authorisation.matrix import deviations
from tests.server.team.authorisation.operations import DESCRIPTION, OPERATIONS
from tests.server.team.authorisation.world import As, World, a_world

pytestmark = pytest.mark.xdist_group("authorisation")


@pytest.fixture(scope="module", params=list(Visibility), ids=str)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world"), request.param) as made:
        yield made


def described(world: World) -> dict[str, Any]:
    paths: dict[str, Any] = world.ask("GET", "/regatta/v1/openapi.json", As.ADMIN).json["paths"]
    return paths


def test_the_table_has_every_operation_that_there_is(world: World) -> None:
    there_are = {
        (method.upper(), path) for path, methods in described(world).items() for method in methods
    }

    assert there_are - OPERATIONS.keys() == set(), "declare these in operations.py"
    assert OPERATIONS.keys() - there_are == set(), "these are gone"


def test_everybody_gets_what_is_for_them_and_nothing_else(world: World) -> None:
    found = deviations(world, OPERATIONS | DESCRIPTION)

    assert not found, "\n".join(map(str, found))
