"""TLS contexts: whom we trust and what we show, made anew when either has changed."""

from __future__ import annotations

import os
import ssl
import tempfile
from typing import NamedTuple

from regatta.http.failures import EncryptedKey, Misconfigured


class Trust(NamedTuple):
    """Who may call themselves the server."""

    #: PEM certificates; None for the machine's own store.
    authority: bytes | None = None
    insecure: bool = False


class ClientCertificate(NamedTuple):
    certificate: bytes
    key: bytes


#: The machine's own store decides, as for any web page.
COMMON_TRUST = Trust()


class TlsContexts:
    """The one context that serves now. Another object means: earlier connections are outdated."""

    def __init__(self) -> None:
        self._made_of: tuple[Trust, ClientCertificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def current(
        self, trust: Trust = COMMON_TRUST, certificate: ClientCertificate | None = None
    ) -> ssl.SSLContext:
        if self._context is None or self._made_of != (trust, certificate):
            self._context = _context(trust, certificate)
            self._made_of = (trust, certificate)
        return self._context


def _context(trust: Trust, certificate: ClientCertificate | None) -> ssl.SSLContext:
    try:
        pem = trust.authority.decode("ascii", "replace") if trust.authority else None
        context = ssl.create_default_context(cadata=pem)
    except ssl.SSLError as bad:
        raise Misconfigured(f"the certificate authority is not a PEM certificate: {bad}") from bad
    # On from Python 3.13; clusters' own authorities often lack the extensions it asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if trust.insecure:
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
        raise Misconfigured(
            f"the client certificate and its key do not belong together or are not PEM: {bad}"
        ) from bad
    finally:
        os.unlink(path)


def _no_password() -> str:
    """Without this OpenSSL would ask on the terminal, and a daemon would hang."""
    raise EncryptedKey("the client's key is encrypted; store it decrypted")
