"""Which proxy, if any, stands between us and an address: `HTTPS_PROXY` and `NO_PROXY`.

Go's reading of NO_PROXY, because kubectl's users write it for kubectl: networks in CIDR form count
(`10.0.0.0/8` covers a cluster's own addresses), and loopback is never proxied.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from regatta.http.failures import Misconfigured

SCHEMES = ("http", "https", "socks5", "socks5h")


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """The proxy's URL, or an empty string."""
    parts = urlsplit(server)
    variable = f"{parts.scheme}_proxy"
    proxy = environment.get(variable.upper()) or environment.get(variable) or ""
    exempt = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or _exempt(parts.hostname or "", parts.port, exempt):
        return ""
    return checked(proxy if "://" in proxy else f"http://{proxy}", f"${variable.upper()}")


def checked(proxy: str, source: str) -> str:
    try:
        parts = urlsplit(proxy)
        known = parts.scheme in SCHEMES and parts.hostname and parts.port != 0
    except ValueError:  # A port that is no number, brackets around no address.
        known = False
    if not known:
        raise Misconfigured(
            f"{source} is {proxy!r}; it should be a URL that begins with "
            + ", ".join(f"{scheme}://" for scheme in SCHEMES)
        )
    if parts.scheme.startswith("socks5") and parts.username:
        raise Misconfigured(
            f"{source}: a SOCKS5 proxy with a user name is not supported; use one without, or an "
            "HTTP one"
        )
    return proxy


def _exempt(host: str, port: int | None, rules: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(
        _covers(rule.strip().lower(), host.lower(), port, address)
        for rule in rules.split(",")
        if rule.strip()
    )


def _covers(
    rule: str,
    host: str,
    port: int | None,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None,
) -> bool:
    if rule == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            pass
    if rule.startswith("["):  # [fd00::1]:6443
        name, _, wanted = rule[1:].partition("]")
        wanted = wanted.removeprefix(":")
    else:
        name, _, wanted = rule.partition(":")
    if wanted and wanted != str(port):
        return False
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")
