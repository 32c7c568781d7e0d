"""The matrix is able to fail: with one check taken away, it names the very cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from sqlalchemy import true

from regatta.server.accounts import tokens
from regatta.server.accounts.visibility import Visibility
from regatta.server.openpai import group_routes, token_routes, user_routes
from regatta.server.team import desk, gate, member_engine
from regatta.server.team.desk import Desk
from regatta.server.team.member_engine import MemberEngine
from tests.server.team.authorisation.matrix import deviations
from tests.server.team.authorisation.operations import ASKED
from tests.server.team.authorisation.world import As, World, a_world

OWN, GROUP, ALL = Visibility.OWN, Visibility.GROUP, Visibility.ALL
API = "/regatta/v1"
JOB = API + "/namespaces/{namespace}/jobs/{name}"
FRAMEWORK = "/api/v2/jobs/{framework}"


def nothing(*_: object, **__: object) -> None:
    """In place of a check."""


def yes(*_: object) -> bool:
    return True


async def yes_later(*_: object) -> bool:
    return True


async def everybody(*_: object) -> None:
    """In place of whose jobs are seen."""


async def seen_is_enough(self: Any, namespace: str, name: str) -> Any:
    return await self._require_seen(namespace, name)


class Removed(NamedTuple):
    """`where` loses `check`, and `who` gets what `operation` has, at this visibility."""

    where: object
    check: str
    instead: Callable[..., Any]
    visibility: Visibility
    operation: tuple[str, str]
    who: As


REMOVED = {
    "tokens end": Removed(
        tokens, "_living", lambda _: true(), OWN, ("GET", API + "/whoami"), As.EXPIRED
    ),
    "tokens are revoked": Removed(
        tokens, "_living", lambda _: true(), OWN, ("GET", "/api/v2/tokens/check"), As.REVOKED
    ),
    "a path needs somebody": Removed(
        gate, "needs_nobody", yes, OWN, ("GET", "/api/v2/alerts"), As.NONE
    ),
    "a job is seen": Removed(member_engine, "_is_seen", yes, OWN, ("GET", JOB), As.OTHER),
    "a log is seen": Removed(
        member_engine, "_is_seen", yes, GROUP, ("GET", JOB + "/logs"), As.OTHER
    ),
    "a job is one's own": Removed(
        MemberEngine,
        "_require_changeable",
        seen_is_enough,
        GROUP,
        ("POST", JOB + "/resume"),
        As.MEMBER,
    ),
    "a list shows what is seen": Removed(
        Desk, "owners_seen", everybody, GROUP, ("GET", API + "/jobs"), As.OTHER
    ),
    "a page shows what is seen": Removed(
        Desk, "owners_seen", everybody, OWN, ("GET", "/api/v2/jobs"), As.MEMBER
    ),
    "a watcher sees what is seen": Removed(
        member_engine._Told, "may_see", yes_later, OWN, ("GET", API + "/watch"), As.MEMBER
    ),
    "events are of what is seen": Removed(
        member_engine._Told, "may_hear", yes_later, GROUP, ("GET", API + "/events"), As.OTHER
    ),
    "replicas are of what is seen": Removed(
        member_engine._Told, "may_hear", yes_later, GROUP, ("GET", API + "/capacity"), As.OTHER
    ),
    "OpenPAI's job is seen": Removed(
        desk, "require_seen", nothing, OWN, ("GET", FRAMEWORK + "/config"), As.OTHER
    ),
    "OpenPAI's job is one's own": Removed(
        desk, "require_changeable", nothing, ALL, ("PUT", FRAMEWORK + "/tag"), As.OTHER
    ),
    "an application asks for jobs alone": Removed(
        token_routes, "require_person", nothing, OWN, ("GET", "/api/v2/tokens"), As.APPLICATION
    ),
    "admins list users": Removed(
        user_routes, "require_admin", nothing, OWN, ("GET", "/api/v2/users"), As.OTHER
    ),
    "admins make groups": Removed(
        group_routes, "require_admin", nothing, ALL, ("POST", "/api/v2/groups"), As.OWNER
    ),
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Visibility, World]]:
    folder = tmp_path_factory.mktemp("worlds")
    with ExitStack() as stack:
        yield {
            visibility: stack.enter_context(a_world(folder / visibility, visibility))
            for visibility in Visibility
        }


@pytest.mark.parametrize("what", REMOVED)
def test_a_check_that_is_gone_is_noticed_in_its_cell(
    worlds: dict[Visibility, World], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    removed = REMOVED[what]
    world, table = worlds[removed.visibility], {removed.operation: ASKED[removed.operation]}
    before = deviations(world, table)

    monkeypatch.setattr(removed.where, removed.check, removed.instead)
    found = deviations(world, table)

    assert before == []
    named = {(cell.operation.partition("?")[0], cell.who) for cell in found}
    assert (" ".join(removed.operation), str(removed.who)) in named, found
