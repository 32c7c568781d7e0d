"""TLS contexts: whom we trust and what we show, rebuilt when a file behind them is rotated."""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from regatta.engines.kubernetes.api.errors import ConfigError

#: Rotated tokens and certificates are noticed within this many seconds.
FRESH_SECONDS = 60.0


class FreshFile:
    """A file that somebody else rotates, read again when its content is older than `max_age`.

    A read that fails later keeps the last content: a kubelet swaps mounted tokens by rename, and
    the old one is good for a while yet.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_age: float = FRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._max_age = max_age
        self._clock = clock
        self._read_at = float("-inf")
        self._content = b""

    def read(self) -> bytes:
        now = self._clock()
        if now - self._read_at >= self._max_age:
            try:
                self._content = self.path.read_bytes()
            except OSError as missing:
                if not self._content:
                    raise ConfigError(
                        f"cannot read {self.path}, which the cluster's configuration names: "
                        f"{missing.strerror}"
                    ) from missing
            self._read_at = now
        return self._content

    def expire(self) -> None:
        """Whoever was shown the content did not like it: read it again next time."""
        self._read_at = float("-inf")


class ClientCertificate(NamedTuple):
    certificate: bytes
    key: bytes


class Trust(NamedTuple):
    """Who may call themselves the API server."""

    #: PEM certificates, or a file of them; None for the machine's own store.
    authority: bytes | FreshFile | None = None
    insecure: bool = False
    #: The name that the certificate must carry, where it is not the address we dial.
    server_name: str = ""


class TlsContexts:
    """The one context that serves now. Another object means: earlier connections are outdated."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._made_of: tuple[bytes | None, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def current(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        authority = self._trust.authority
        pem = authority.read() if isinstance(authority, FreshFile) else authority
        if self._context is None or self._made_of != (pem, certificate):
            self._context = _context(pem, self._trust.insecure, certificate)
            self._made_of = (pem, certificate)
        return self._context


def _context(
    authority: bytes | None, insecure: bool, certificate: ClientCertificate | None
) -> ssl.SSLContext:
    try:
        pem = authority.decode("ascii", "replace") if authority else None
        context = ssl.create_default_context(cadata=pem)
    except ssl.SSLError as bad:
        raise ConfigError(
            f"the cluster's certificate authority is not a PEM certificate: {bad}"
        ) from bad
    # On from Python 3.13; clusters' own authorities often lack the extensions it asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _show(context, certificate)
    return context


def _show(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """OpenSSL reads certificates from files only: one that nobody else may open, for a moment."""
    descriptor, path = tempfile.mkstemp(prefix="regatta-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate.certificate + b"\n" + certificate.key + b"\n")
        context.load_cert_chain(path, password=_no_password)
    except ssl.SSLError as bad:
        raise ConfigError(
            f"the client certificate and its key do not belong together or are not PEM: {bad}"
        ) from bad
    finally:
        os.unlink(path)


def _no_password() -> str:
    """Without this OpenSSL would ask on the terminal, and a daemon would hang."""
    raise ConfigError(
        "the client key is encrypted; Kubernetes' configuration has no place for its password: "
        "store it decrypted or use an exec plugin"
    )
