"""Links to what a task printed, good for two minutes for whoever has one.

A link names one stream of one life of one task, and carries the server's signature instead of a
token, so that it can be handed to a browser. Pure.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

import msgspec

from regatta.server.openpai_errors import OpenPaiError, forbidden

GOOD_FOR_MILLIS = 120_000
EXPIRED = (
    f"This link to a log was good for {GOOD_FOR_MILLIS // 1000} seconds, which are over; ask for "
    "the logs of the task again."
)


class LogLink(msgspec.Struct, frozen=True, array_like=True):
    job: str
    #: The engine's name for it.
    role: str
    index: int
    attempt: int
    #: stdout, stderr or all.
    stream: str
    #: Only the end of it.
    tail: bool
    #: Milliseconds since 1970.
    ends: int


def no_log(why: str = "") -> OpenPaiError:
    said = "Log of task is not found."
    return OpenPaiError(404, "NoTaskLogError", f"{said[:-1]}: {why}" if why else said)


def sign(link: LogLink, key: bytes) -> str:
    body = msgspec.json.encode(link)
    return f"{_text(body)}.{_text(_mark(body, key))}"


def read_link(signed: str, key: bytes, now: int) -> LogLink:
    """Raises OpenPaiError: 404 for what was not signed here, 403 for what is over."""
    body, _, mark = signed.partition(".")
    try:
        written, shown = _bytes(body), _bytes(mark)
    except (binascii.Error, ValueError):
        raise no_log() from None
    if not hmac.compare_digest(_mark(written, key), shown):
        raise no_log()
    link = msgspec.json.decode(written, type=LogLink)
    if now > link.ends:
        raise forbidden(EXPIRED)
    return link


def _mark(body: bytes, key: bytes) -> bytes:
    return hmac.new(key, b"log\0" + body, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
