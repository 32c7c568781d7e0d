"""What can go wrong between us and a server, one type per thing a caller can do about it."""

from __future__ import annotations


class HttpError(Exception):
    """Anything this package raises on purpose."""


class Misconfigured(HttpError):
    """A proxy or a certificate that we were given cannot be used: a person has to change it."""


class EncryptedKey(Misconfigured):
    """A client's key wants a password, and there is nobody to ask for it."""


class CannotConnect(HttpError):
    """Nothing was sent: the server, or the proxy before it, did not take the connection."""


class Untrusted(CannotConnect):
    """Whoever answers there shows a certificate that we were not told to trust."""

    def __init__(self, authority: str, why: str) -> None:
        super().__init__(f"the certificate of {authority} is not trusted: {why}")
        self.authority = authority
        self.why = why


class Broken(HttpError):
    """The connection ended before the answer did. What was asked may or may not have happened."""


class NotHttp(HttpError):
    """What came is not an answer that we understand, so nothing after it can be believed."""
