"""Who we are to the API server: tokens, certificates, names and passwords, impersonation."""

from __future__ import annotations

import base64
from typing import Protocol

import msgspec

from regatta.engines.kubernetes.access.config_errors import ConfigError
from regatta.engines.kubernetes.access.fresh_file import FreshFile, content
from regatta.http.tls import ClientCertificate

Headers = tuple[tuple[str, str], ...]


class Credential(msgspec.Struct, frozen=True):
    """What one request shows."""

    headers: Headers = ()
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    async def current(self) -> Credential: ...

    def refused(self) -> bool:
        """The server answered 401. Whether the next `current()` may be another credential."""
        ...


class ConfiguredCredentials:
    """What stands in a kubeconfig or is mounted into a pod. Files are re-read as they rotate."""

    def __init__(
        self,
        *,
        token: str = "",
        token_file: FreshFile | None = None,
        certificate: bytes | FreshFile | None = None,
        key: bytes | FreshFile | None = None,
        extra: Headers = (),
    ) -> None:
        self._token = token
        self._token_file = token_file
        self._certificate = certificate
        self._key = key
        self._extra = extra

    async def current(self) -> Credential:
        token = self._token
        if self._token_file is not None:
            token = self._token_file.read().decode("utf-8", "replace").strip() or token
        headers = self._extra
        if token:
            headers = (bearer(token), *headers)
        return Credential(headers, self._pair())

    def refused(self) -> bool:
        files = [f for f in (self._token_file, self._certificate) if isinstance(f, FreshFile)]
        for file in files:
            file.expire()
        return bool(files)

    def _pair(self) -> ClientCertificate | None:
        if self._certificate is None or self._key is None:
            return None
        return ClientCertificate(content(self._certificate), content(self._key))


def bearer(token: str) -> tuple[str, str]:
    if not token.isascii() or not token.isprintable():
        raise ConfigError(
            "the token holds characters that no token has; the file or plugin that it comes from "
            "probably holds something else"
        )
    return ("Authorization", f"Bearer {token}")


def basic(username: str, password: str) -> tuple[str, str]:
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return ("Authorization", f"Basic {pair}")
