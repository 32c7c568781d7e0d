"""Links to logs: what they carry, and that nobody else can make one."""

from __future__ import annotations

import pytest

from regatta.server.openpai.jobs.log_links import LogLink, read_link, sign
from tests.server.accounts.people import refused

KEY = b"k" * 32
LINK = LogLink("job", "worker", 3, 1, "stderr", True, 1000)


def test_a_link_says_what_was_signed_until_its_end() -> None:
    assert read_link(sign(LINK, KEY), KEY, 1000) == LINK


def test_a_link_that_is_over_is_refused_and_says_what_to_do() -> None:
    with refused(403, "ForbiddenUserError", "ask for the logs of the task again"):
        read_link(sign(LINK, KEY), KEY, 1001)


@pytest.mark.parametrize("changed", range(0, len(sign(LINK, KEY)), 7))
def test_a_link_with_one_character_changed_is_none(changed: int) -> None:
    signed = sign(LINK, KEY)
    other = "A" if signed[changed] != "A" else "B"
    with refused(404, "NoTaskLogError"):
        read_link(signed[:changed] + other + signed[changed + 1 :], KEY, 0)


@pytest.mark.parametrize("odd", ["", ".", "a.b", "é.ü", "e30", "e30.", "=.=", "e30.!!!!"])
def test_what_is_no_link_is_none(odd: str) -> None:
    with refused(404, "NoTaskLogError"):
        read_link(odd, KEY, 0)


def test_another_servers_link_is_none() -> None:
    with refused(404, "NoTaskLogError"):
        read_link(sign(LINK, b"o" * 32), KEY, 0)
