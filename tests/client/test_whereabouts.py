"""Where a server is: what a person may write, and when this machine's own is looked for again."""

from __future__ import annotations

import os
import signal

import pytest

from regatta.api.errors import BadAddress
from regatta.client.whereabouts import Named, ThisMachine, place_of
from tests.doors import Regatta

WRITTEN = {
    "host:8000": ("http://host:8000", False, "host:8000", ""),
    "http://host": ("http://host", False, "host", ""),
    "https://host:8443/train/": ("https://host:8443", True, "host:8443", "/train"),
    "http://[::1]:80": ("http://[::1]:80", False, "[::1]:80", ""),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_an_address_as_people_write_it(written: str) -> None:
    assert place_of(written)[:4] == WRITTEN[written]


@pytest.mark.parametrize("written", ["ftp://x", "http://", "http://x:0", "http://x:y", "http://[x"])
def test_what_is_no_address_is_refused_with_the_right_form(written: str) -> None:
    with pytest.raises(BadAddress, match="write it as http://HOST:PORT"):
        place_of(written)


@pytest.mark.parametrize("token", ["café", "a\nb"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(BadAddress, match="REGATTA_TOKEN"):
        Named("http://host", token)


def test_a_token_is_this_machines_only_for_its_own_server(
    fresh: Regatta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGATTA_HOME", fresh.environment["REGATTA_HOME"])
    fresh("server", "start")

    assert Named(fresh.address.url).known.token == fresh.files.token()
    assert Named("http://127.0.0.1:1").known.token == ""
    monkeypatch.setenv("REGATTA_TOKEN", "given")
    assert Named(fresh.address.url).known.token == "given"


def test_a_server_of_this_machine_that_is_lost_is_found_where_it_is_by_then(
    fresh: Regatta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGATTA_HOME", fresh.environment["REGATTA_HOME"])
    where = ThisMachine()
    first = where.find()
    os.kill(fresh.address.pid, signal.SIGKILL)

    assert where.find() is first
    assert where.lost()
    assert where.known is None
    found = where.find()

    assert found.url == fresh.address.url


def test_what_was_found_is_believed_for_a_while_only(
    fresh: Regatta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGATTA_HOME", fresh.environment["REGATTA_HOME"])
    where = ThisMachine()
    where.find()
    assert where.known is not None

    monkeypatch.setattr("regatta.client.whereabouts.FRESH_SECONDS", 0.0)

    assert where.known is None
