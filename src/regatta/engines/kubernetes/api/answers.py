"""What an API server sends back, decoded only as far as somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class Answer:
    """What the API server sent back, not yet decoded."""

    __slots__ = ("headers", "raw", "status")

    def __init__(self, status: int, headers: Mapping[str, str], raw: bytes) -> None:
        self.status = status
        self.headers = headers
        self.raw = raw

    def json(self) -> dict[str, Any]:
        return msgspec.json.decode(self.raw, type=dict[str, Any])

    def into(self, kind: type[T]) -> T:
        return msgspec.json.decode(self.raw, type=kind)

    @property
    def identity(self) -> Identity:
        """Name, uid and resourceVersion of the object that was answered with."""
        return _identity(self.raw).metadata

    @property
    def warning(self) -> str:
        """What the server would have a person know: deprecated or unknown fields."""
        return self.headers.get("warning", "")


class Identity(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct, frozen=True):
    metadata: Identity = Identity()


_identity = msgspec.json.Decoder(_Identified).decode


class PageMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continues: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    metadata: PageMetadata = PageMetadata()
    items: list[msgspec.Raw] | None = None


class Listing(msgspec.Struct, Generic[T]):
    """All objects as they were at one moment."""

    items: list[T]
    resource_version: str


def decoder_of(kind: type[T]) -> Callable[[msgspec.Raw | bytes], T]:
    """How to read one object as `kind`, which may bring a `from_json` of its own."""
    own: Callable[[msgspec.Raw | bytes], T] | None = getattr(kind, "from_json", None)
    return own or msgspec.json.Decoder(kind).decode
