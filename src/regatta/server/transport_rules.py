"""How a server with accounts may be reached, and from where a request really comes. Pure.

Passwords and tokens do not cross a network in clear: beyond this machine there must be TLS, our own
or that of a proxy in front. What a proxy says of its client is believed only where somebody said
that there is one, since anybody can write such a header; and of what it says only the last word,
which is the proxy's own: what stands before it came from the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from regatta.api.errors import BadSetting


@dataclass(frozen=True, slots=True)
class Transport:
    #: Certificate and key, where we speak TLS ourselves.
    tls: tuple[Path, Path] | None = None
    behind_proxy: bool = False

    @property
    def secure(self) -> bool:
        """Whether browsers see `https://`: cookies depend on it."""
        return self.tls is not None or self.behind_proxy


def transport_of(
    host: str,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    behind_proxy: bool = False,
) -> Transport:
    """What `regatta serve` was told, or BadSetting. `host`: where it listens."""
    if (tls_cert is None) != (tls_key is None):
        given, missing = ("--tls-cert", "--tls-key")[:: 1 if tls_cert else -1]
        raise BadSetting(f"{given} needs {missing}: give both files, or none")
    if tls_cert is not None and tls_key is not None:
        return Transport((tls_cert, tls_key), behind_proxy)
    if not behind_proxy and not is_loopback(host):
        raise BadSetting(
            f"--host is {host}, which other machines can reach, and passwords would cross the "
            "network in clear; give --tls-cert FILE and --tls-key FILE, or --behind-proxy where a "
            "proxy speaks TLS and alone reaches this port, or listen on 127.0.0.1"
        )
    return Transport(None, behind_proxy)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and ip_address(address).is_loopback


def client_address(peer: str, forwarded_for: Sequence[str], *, behind_proxy: bool) -> str:
    """`peer`: the other end of the connection. `forwarded_for`: every such header, in order.

    The peer's own where a proxy says nothing that is an address."""
    if not behind_proxy or not forwarded_for:
        return peer
    last = forwarded_for[-1].rpartition(",")[2].strip()
    return _address(last) or peer


def _address(text: str) -> str | None:
    """Without the port that some proxies add."""
    bare = text.partition("%")[0]
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ip_address(bare))
    except ValueError:
        return None
