"""Colours, where they are wanted: on a terminal, unless NO_COLOR or --no-color says otherwise."""

from __future__ import annotations

import os
import re
from typing import IO, NamedTuple

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bright-green": "92",
    "bright-yellow": "93",
    "bright-blue": "94",
    "bright-magenta": "95",
    "bright-cyan": "96",
}

#: For replicas, in the order they are met.
REPLICA_COLOURS = (
    *("cyan", "yellow", "green", "magenta", "blue"),
    *("bright-cyan", "bright-yellow", "bright-green", "bright-magenta", "bright-blue"),
)

PHASE_COLOURS = {
    "Pending": "yellow",
    "Starting": "cyan",
    "Running": "cyan",
    "Restarting": "yellow",
    "Scaling": "cyan",
    "Suspended": "dim",
    "Completed": "green",
    "Succeeded": "green",
    "Failed": "red",
    "Aborting": "yellow",
    "Aborted": "magenta",
    "Stopping": "yellow",
    "Stopped": "magenta",
    "Terminating": "dim",
}

# Everything that moves the cursor or talks to the terminal; colours (…m) may pass. A sequence that
# a line's end cuts off would swallow what is printed next, so it goes too.
_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\|$)"
    r"|\x1b\[[0-?]*[ -/]*[@-ln-~]"
    r"|\x1b[^\[\]\x1b\n]"
    r"|\x1b(?!\[[0-9;:]*m)"
    r"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]",
    re.MULTILINE,
)

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


class Painted(NamedTuple):
    text: str
    colour: str


class Paint:
    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, text: str, colour: str) -> str:
        if not self.enabled or not colour or not text:
            return text
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def phase(self, phase: str) -> str:
        return self(phase, PHASE_COLOURS.get(phase, ""))


def wants_colour(stream: IO[str], *, refused: bool) -> bool:
    if refused or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def harmless(text: str) -> str:
    """A replica's line without what would move the cursor or retitle the terminal."""
    return _CONTROL.sub("", text)


def plain(text: str) -> str:
    """Without colours: what takes room on the screen."""
    return _COLOUR.sub("", text)
