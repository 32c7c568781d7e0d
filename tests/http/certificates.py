"""Real certificates for tests, made by openssl: an authority, a server and a client."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Pair(NamedTuple):
    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pair = Pair(folder / "ca.crt", folder / "ca.key")
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", "30", "-subj", "/CN=test authority"),
            *("-keyout", self.pair.key, "-out", self.pair.certificate),
        )

    @property
    def certificate(self) -> Path:
        return self.pair.certificate

    def issue(self, name: str, alternative: str = "", group: str = "") -> Pair:
        """`alternative` as openssl writes it: `IP:127.0.0.1` or `DNS:a.example`. To an API server,
        the name is a user's and the group is one of theirs."""
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        names = ("-addext", f"subjectAltName={alternative}") if alternative else ()
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", "30", "-subj", f"/O={group}/CN={name}", *names),
            *("-CA", self.pair.certificate, "-CAkey", self.pair.key),
            *("-keyout", pair.key, "-out", pair.certificate),
        )
        return pair


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def served(pair: Pair, clients_of: Authority | None = None) -> ssl.SSLContext:
    """What a server with this certificate uses. With an authority, it asks clients for theirs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients_of.certificate)
    return context
