"""`$(VAR)` in commands and values, as Kubernetes reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from regatta.api.source.limits import MAX_STRING

_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))")

TOO_LONG = (
    f"with what `$(...)` in it stands for, it is longer than the {MAX_STRING - 1:,} bytes that "
    "Linux gives a program as one variable or argument; write it to a file, and name the file here"
)


class TooLong(Exception):
    """What no program could be given. It is not made: forty variables, each twice the one before,
    would take all memory there is."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(VAR)` by its value, `$$` by `$`; all else, and what nobody defines, as it stands. Raises
    TooLong."""
    parts: list[str] = []
    size = end = 0
    for match in _REFERENCE.finditer(text):
        name = match["name"]
        value = "$" if name is None else variables.get(name, match[0])
        parts += (text[end : match.start()], value)
        size += match.start() - end + len(value)
        end = match.end()
        if size >= MAX_STRING:
            raise TooLong
    return "".join((*parts, text[end:]))
