"""`<% $parameters.x %>` in commands: what stands there is replaced once, and not looked at again.

A reference to what nobody defines stays as it is written, and so does one to a map or a list. What
belongs to `$secrets` is only found here: its value never becomes part of a text (`secret_values`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

SECRETS = "secrets"
ROOTS = ("parameters", "script", "output", "data", SECRETS)
#: Whatever wants to be one.
_ANY = re.compile(r"<%\s*\$(\w+)[^%]*%>")
_TAG = re.compile(rf"<%\s*\$({'|'.join(ROOTS)})((?:\.[\w-]+|\[[0-9]{{1,9}}\])+)\s*%>")
_STEP = re.compile(r"[\w-]+")


class Reference(msgspec.Struct, frozen=True):
    """One tag: `<% $data.uri[0] %>` is root `data` and steps `uri`, `0`."""

    root: str
    steps: tuple[str, ...]
    written: str

    @property
    def key(self) -> str:
        return ".".join(self.steps)


def parts(text: str) -> Iterator[str | Reference]:
    """The text, with its references taken out of it."""
    end = 0
    for match in _TAG.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        yield Reference(match[1], tuple(_STEP.findall(match[2])), match[0])
        end = match.end()
    if end < len(text):
        yield text[end:]


def rendered(text: str, values: Mapping[str, Any]) -> Iterator[str | Reference]:
    """The text with what `values` has under `parameters`, `data` and so on; secrets stay where they
    are referred to."""
    for part in parts(text):
        if isinstance(part, str) or part.root == SECRETS:
            yield part
        else:
            found = scalar(values.get(part.root), part.steps)
            yield part.written if found is None else found


def unread(
    text: str, values: Mapping[str, Any]
) -> Iterator[tuple[str, str, tuple[str, ...] | None]]:
    """Tags that nothing is put in place of: as written, the root, and the steps where it is one of
    ours. Secrets have rules of their own."""
    for found in _ANY.finditer(text):
        known = _TAG.fullmatch(found[0])
        if known is None:
            yield found[0], found[1], None
        elif known[1] != SECRETS:
            steps = tuple(_STEP.findall(known[2]))
            if scalar(values.get(known[1]), steps) is None:
                yield found[0], known[1], steps


def scalar(value: Any, steps: tuple[str, ...]) -> str | None:
    """What the steps lead to, as text. None where they lead nowhere, or to a map or a list."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return None if isinstance(value, dict | list | None) else as_text(value)


def as_text(value: str | float) -> str:
    """A number or a flag as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value)
