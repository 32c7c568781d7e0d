"""Tokens of sign-ins, in one file of their owner's alone."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from regatta.api.errors import UnusableFile
from regatta.client.credentials import (
    Credential,
    credentials_path,
    forget_credential,
    server_key,
    signed_in_at,
    store_credential,
    stored_credential,
)
from regatta.client.whereabouts import Named

URL = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGATTA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("REGATTA_TOKEN", raising=False)
    return tmp_path / "home"


def test_what_is_stored_is_found_for_that_server_alone_until_it_is_forgotten() -> None:
    store_credential(URL, Credential("one", "ann"))
    store_credential("https://train.example/team/", Credential("two", "bob"))
    assert stored_credential(URL + "/") == Credential("one", "ann")
    for same in ("https://TRAIN.example:443/team", "https://train.example/rest-server/"):
        assert stored_credential(same) == Credential("two", "bob")
    for other in ("http://127.0.0.1:8001", "https://127.0.0.1:8000", "http://train.example/team"):
        assert stored_credential(other) is None
    forget_credential(URL)
    assert stored_credential(URL) is None
    assert stored_credential("https://train.example/team") is not None


def test_servers_are_named_as_they_were_when_somebody_signed_in() -> None:
    store_credential(URL, Credential("one"))
    store_credential("https://host/team", Credential("two", url="https://host/team"))
    assert list(signed_in_at()) == [URL, "https://host/team"]


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("host:80", "http://host:80"),
        ("http://HOST", "http://host:80"),
        ("https://host/a/", "https://host:443"),
        ("http://[::1]:5", "http://[::1]:5"),
    ],
)
def test_every_spelling_of_an_address_is_one_server(written: str, key: str) -> None:
    assert server_key(written) == key


def test_the_file_is_its_owners_alone_and_nothing_lies_beside_it(home: Path) -> None:
    path = store_credential(URL, Credential("one"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {file.name for file in home.iterdir()} == {"credentials.json", "credentials.lock"}


def test_a_file_that_others_may_read_is_refused() -> None:
    path = store_credential(URL, Credential("one"))
    path.chmod(0o640)
    with pytest.raises(UnusableFile, match="chmod 600"):
        stored_credential(URL)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"servers": 7}'])
def test_a_file_that_cannot_be_read_says_what_to_do(content: bytes) -> None:
    path = store_credential(URL, Credential("one"))
    path.write_bytes(content)
    with pytest.raises(UnusableFile, match="remove it and sign in again"):
        stored_credential(URL)


def test_two_who_sign_in_at_once_are_both_kept() -> None:
    def sign_in(number: int) -> None:
        store_credential(f"http://127.0.0.1:{number}", Credential(str(number)))

    threads = [threading.Thread(target=sign_in, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [stored_credential(f"http://127.0.0.1:{number}") for number in range(1, 9)]
    assert [one.token for one in kept if one] == [str(number) for number in range(1, 9)]
    assert credentials_path().exists()


def test_the_token_is_the_one_given_then_the_environments_then_the_one_that_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store_credential(URL, Credential("kept"))
    assert Named(URL).known.token == "kept"
    monkeypatch.setenv("REGATTA_TOKEN", "environment")
    assert Named(URL).known.token == "environment"
    assert Named(URL, "given").known.token == "given"
