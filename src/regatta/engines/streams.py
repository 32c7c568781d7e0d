"""What comes along a stream from an engine to a door, whatever carries it."""

from __future__ import annotations

from typing import NamedTuple

from regatta.engines.base import LogLine


class Lines(NamedTuple):
    lines: tuple[LogLine, ...]


class Remark(NamedTuple):
    """Something a person should know about the stream itself, such as a log that is gone."""

    text: str


class Gone(NamedTuple):
    """The job is no more: deleted, or its time to live is over."""

    namespace: str
    name: str


class Synced(NamedTuple):
    """Everything that was there when the watch began has been told."""


class Lost(NamedTuple):
    """The other end is away; the stream looks for it."""

    why: str
