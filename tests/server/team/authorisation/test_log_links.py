"""Signed links to logs: good without a token, for a moment, as they were signed, and else not."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator

import pytest

from regatta.server.accounts.visibility import Visibility
from regatta.server.openpai.jobs import log_links
from regatta.server.openpai.jobs.log_links import GOOD_FOR_MILLIS
from tests.server.team.authorisation.world import OWNER, As, World, a_world, kept


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world"), Visibility.OWN) as made:
        yield made


def test_a_link_is_for_whoever_has_it(world: World) -> None:
    said = [world.ask("GET", link, As.NONE) for link in world.links(kept(OWNER))]
    tail = world.ask("GET", world.links(kept(OWNER), "?tail-mode=true")[0], As.NONE)

    assert {answer.status for answer in said} == {200}
    assert any(b"speaks" in answer.body for answer in said)
    assert tail.status == 206


def _changed(link: str, change: Callable[[list[object]], None]) -> str:
    """With something else in it, under the same signature."""
    path, _, signed = link.rpartition("/")
    body, _, mark = signed.partition(".")
    content = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    change(content)
    other = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    return f"{path}/{other}.{mark}"


def _later(content: list[object]) -> None:
    content[6] = 10**15


TAMPERED: dict[str, Callable[[str], str]] = {
    "a later end": lambda link: _changed(link, _later),
    "no signature": lambda link: link.partition(".")[0],
    "an empty signature": lambda link: link.partition(".")[0] + ".",
    "half a signature": lambda link: link[:-20],
    "another signature": lambda link: link[:-4] + ("AAAA" if link[-4:] != "AAAA" else "BBBB"),
    "more behind it": lambda link: link + "/more",
    "nothing at all": lambda link: link.rpartition("/")[0] + "/",
    "dots": lambda link: link.rpartition("/")[0] + "/../../jobs",
    "no text": lambda link: link.rpartition("/")[0] + "/%ff%00.%ff",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_link_that_was_changed_is_none(world: World, what: str) -> None:
    found = world.ask("GET", TAMPERED[what](world.links(kept(OWNER))[0]), As.NONE)

    assert found.status in (401, 404), found.body
    assert b"speaks" not in found.body


def test_a_check_of_signatures_that_is_gone_would_be_noticed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = TAMPERED["a later end"](world.links(kept(OWNER))[0])
    monkeypatch.setattr(log_links.hmac, "compare_digest", lambda *_: True)

    assert world.ask("GET", link, As.NONE).status == 200


def test_a_link_to_another_s_log_is_for_those_who_see_it(world: World) -> None:
    task = "attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
    path = f"/api/v2/jobs/{OWNER}~{kept(OWNER)}/{task}"

    assert world.ask("GET", path, As.OTHER).code == (404, "NoJobError")


def test_a_link_is_over_after_its_moment(world: World) -> None:
    """Last: time does not come back."""
    link = world.links(kept(OWNER))[0]
    world.server.pass_time(GOOD_FOR_MILLIS / 1000 + 1)

    found = world.ask("GET", link, As.NONE)

    assert found.code == (403, "ForbiddenUserError")
    assert "ask for the logs of the task again" in found.json["message"]
