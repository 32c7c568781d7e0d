from __future__ import annotations

import pytest

from regatta.server.origins import Ours, public_url

HERE = Ours()
NAMED = Ours(secure=True, names=frozenset({"train.example"}))
EVERYWHERE = Ours(any_address=True)
PROXIED = Ours(secure=True, public=frozenset({"https://train.example:8443"}))


@pytest.mark.parametrize(
    ("ours", "host", "is_ours"),
    [
        (HERE, "127.0.0.1:80", True),
        (HERE, "LOCALHOST", True),
        (HERE, "[::1]:8080", True),
        (HERE, "192.0.2.1", False),
        (HERE, "evil.example", False),
        (HERE, "", False),
        (HERE, "127.0.0.1.evil.example", False),
        (NAMED, "train.example:443", True),
        (NAMED, "127.0.0.1", True),
        (NAMED, "a.train.example", False),
        (EVERYWHERE, "192.0.2.1:80", True),
        (EVERYWHERE, "[2001:db8::1]:80", True),
        (EVERYWHERE, "evil.example", False),
        (PROXIED, "train.example", True),
        (PROXIED, "evil.example", False),
        (Ours(public=frozenset({"https://[2001:DB8::1]:8443"})), "[2001:db8::1]", True),
        (Ours(public=frozenset({"nonsense"})), "nonsense", False),
    ],
)
def test_which_hosts_are_ours(ours: Ours, host: str, is_ours: bool) -> None:
    assert ours.host(host) is is_ours


@pytest.mark.parametrize(
    ("ours", "origin", "host", "is_ours"),
    [
        (HERE, "http://127.0.0.1:8080", "127.0.0.1:8080", True),
        (HERE, "http://localhost", "localhost:80", True),
        (HERE, "http://[::1]:8080", "[::1]:8080", True),
        (HERE, "http://127.0.0.1:9090", "127.0.0.1:8080", False),
        (HERE, "http://localhost:8080", "127.0.0.1:8080", False),
        (HERE, "https://127.0.0.1:8080", "127.0.0.1:8080", False),
        (HERE, "http://evil.example", "evil.example", False),
        (HERE, "null", "127.0.0.1", False),
        (HERE, "", "127.0.0.1", False),
        (HERE, "file://", "127.0.0.1", False),
        (HERE, "http://127.0.0.1:x", "127.0.0.1:x", False),
        (HERE, "http://evil@127.0.0.1", "127.0.0.1", False),
        (HERE, "http://127.0.0.1/path", "127.0.0.1", False),
        (HERE, "http://127.0.0.1?query", "127.0.0.1", False),
        (HERE, "http://127.0.0.1#part", "127.0.0.1", False),
        (HERE, "http://127.0.0.1/", "127.0.0.1", True),
        (HERE, "ftp://127.0.0.1", "127.0.0.1", False),
        (HERE, "http://:80", "127.0.0.1", False),
        (NAMED, "https://train.example", "train.example", True),
        (NAMED, "https://TRAIN.example:443", "train.example", True),
        (NAMED, "http://train.example", "train.example", False),
        (PROXIED, "https://train.example:8443", "127.0.0.1:8080", True),
        (PROXIED, "https://train.example", "127.0.0.1:8080", False),
        (PROXIED, "https://evil.example", "train.example:8443", False),
    ],
)
def test_which_pages_are_ours(ours: Ours, origin: str, host: str, is_ours: bool) -> None:
    assert ours.origin(origin, host) is is_ours


@pytest.mark.parametrize(
    "host",
    [
        "localhost:x@evil.example",
        "[::1",
        "[::1]evil",
        "localhost:evil",
        "127.0.0.1:99999",
        "",
        ":1",
    ],
)
def test_what_is_no_host_is_not_ours(host: str) -> None:
    assert not Ours(any_address=True).host(host)


URLS = ("https://train.example:8443", "https://Other.example/")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("train.example:8443", "https://train.example:8443"),
        ("train.example", "https://train.example:8443"),  # as nginx has it in $host
        ("TRAIN.example", "https://train.example:8443"),
        ("train.example:80", None),
        ("other.example", "https://Other.example"),
        ("127.0.0.1:8080", None),
        ("", None),
    ],
)
def test_by_which_of_our_addresses_one_came(host: str, url: str | None) -> None:
    assert public_url(host, URLS) == url
