"""Which names are this server's own: in `Host`, and in a browser's `Origin`. Pure.

A name that an attacker re-points to our address would make his page same-origin with us, so a
`Host` must be a name that we know. Re-pointing needs a name: a server that listens on every address
takes any address for its own. An `Origin` is ours where it is the very place that the request was
sent to, or one that whoever runs the server named, such as that of a proxy in front.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^\s:@/\[\]]+)(:(?P<port>[0-9]{0,5}))?")

_Place = tuple[str, str, int]


def is_ours(host: str, names: Container[str], *, any_address: bool = False) -> bool:
    """`host`: a `Host` header, whose port counts for nothing."""
    name = _without_port(host)
    return name is not None and (name in names or (any_address and _is_address(name)))


@dataclass(frozen=True, slots=True)
class Ours:
    #: Whether browsers speak TLS to us, or to a proxy before us.
    secure: bool = False
    #: What a Host may say besides the loopback names.
    names: frozenset[str] = frozenset()
    any_address: bool = False
    #: Origins that are ours besides the one that a request was sent to: `https://train.example`.
    public: frozenset[str] = field(default=frozenset())

    def host(self, header: str) -> bool:
        public = {place[1] for place in map(_place, self.public) if place}
        names = LOOPBACK_NAMES | self.names | public
        return is_ours(header, names, any_address=self.any_address)

    def origin(self, header: str, host: str) -> bool:
        """`host`: what the same request says it was sent to."""
        place = _place(header)
        if place is None:  # "null", of a page without a place
            return False
        scheme = "https" if self.secure else "http"
        sent_to = _place(f"{scheme}://{host}") if self.host(host) else None
        return place == sent_to or place in map(_place, self.public)


def public_url(host: str, urls: Sequence[str]) -> str | None:
    """The one that a request was sent to, by its `Host` header: of which many a proxy hands on the
    name alone, without the port."""
    sent_to = [url for url in urls if _authority(url) == host.lower()]
    named = [url for url in urls if host and _authority(url).rpartition(":")[0] == host.lower()]
    return next((url.rstrip("/") for url in (*sent_to, *named)), None)


def _authority(url: str) -> str:
    return url.partition("://")[2].rstrip("/").lower()


def is_origin(text: str) -> bool:
    """A scheme, a name, and a port where it is another than usual."""
    return _place(text) is not None


def _place(origin: str) -> _Place | None:
    try:
        parts = urlsplit(origin.strip())
        port = parts.port
    except ValueError:
        return None
    tail = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in _PORTS or not parts.hostname or tail:
        return None
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.lower()
    return parts.scheme, name, port or _PORTS[parts.scheme]


def _without_port(host: str) -> str | None:
    """None where it is no name, or what follows is no port."""
    found = _HOST.fullmatch(host)
    if found is None or int(found["port"] or 0) > 65535:
        return None
    return found["name"].lower()


def _is_address(host: str) -> bool:
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
