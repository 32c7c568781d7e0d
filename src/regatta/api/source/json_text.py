"""JSON as people write it: with comments, a comma too many, a line that breaks inside a text.

Each means what its author meant. What is no JSON even so is told where JSON stops being one, which
a reader of YAML could not know: to it a brace opens something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from regatta.api.source.paths import join

#: A text, a comment, or a comma before a closing bracket. Nothing is tried twice (`*+`), and what
#: never ends is taken as it is, to its end: whoever sends a file chooses how long this takes.
_LOOSE = re.compile(
    r"""
    (?P<kept> "(?:\\.|[^"\\])*+ (?:"|\\?\Z) | /\*(?:[^*]|\*(?!/))*+\Z )
    | //[^\n]*+
    | /\*(?:[^*]|\*(?!/))*+\*/
    | ,(?=(?: \s | //[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/ )*+[}\]])
    """,
    re.DOTALL | re.VERBOSE,
)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:\n]|[^\s{}\[\],:"]+', re.DOTALL)
_OBJECT = re.compile(r'\s*\{\s*(?:"|\}|//|/\*)')
_SAID = {
    "Expecting ',' delimiter": "a comma is missing before this, or a quote inside a text needs a "
    "backslash before it",
    "Expecting ':' delimiter": "a colon is missing before this",
    "Expecting property name enclosed in double quotes": "a name in double quotes belongs here",
    "Expecting value": "a value belongs here: text in double quotes, a number, true, false or null",
    "Unterminated string starting at": "a text begins here and never ends; close it with a quote",
    "Extra data": "the file should have ended before this; a bracket was closed too early, or "
    "stands here once too often",
}


class DoubledKey(ValueError):
    """A name that stands twice in a map, which a reader that knows lines should tell."""


def read_json(text: str) -> Any:
    """Raises ValueError where it is none, even loosely; RecursionError where it is too deep."""
    try:
        return _loads(text)
    except DoubledKey:
        raise
    except ValueError:
        return _loads(_LOOSE.sub(_kept, text))


def lines_of(text: str) -> Iterator[tuple[str, int]]:
    """The places of what `read_json` read, each with the line of its name, or of a list's item.
    None of a text in one line, which that would tell nothing of."""
    if "\n" not in text.strip():
        return
    line, opened = 1, list[_Opened]()
    for token in _TOKEN.findall(_LOOSE.sub(_kept, text)):
        begins, line = line, line + token.count("\n")
        if token in ("\n", ":"):
            continue
        if token in ("}", "]"):
            opened.pop()
        elif not opened:
            opened.append(_Opened("", token == "["))
        elif token == ",":
            opened[-1].goes_on()
        else:
            holder = opened[-1]
            if holder.is_list:
                holder.place = join(holder.path, holder.number)
                yield holder.place, begins
            elif not holder.place:
                holder.place = join(holder.path, json.loads(token, strict=False))
                yield holder.place, begins
                continue
            if token in ("{", "["):
                opened.append(_Opened(holder.place, token == "["))


@dataclass(slots=True)
class _Opened:
    """A map or a list, and what of it is being read."""

    path: str
    is_list: bool
    number: int = 0
    #: Empty in a map: a name comes next.
    place: str = ""

    def goes_on(self) -> None:
        self.number, self.place = self.number + 1, ""


def about_json(text: str) -> tuple[str, int] | None:
    """What is wrong with what wants to be JSON, and in which line; None where it does not."""
    if not _OBJECT.match(text):
        return None
    try:
        _loads(_LOOSE.sub(_kept, text))
    except json.JSONDecodeError as wrong:
        return _SAID.get(wrong.msg, wrong.msg), wrong.lineno
    except (ValueError, RecursionError):
        pass
    return None


def _loads(text: str) -> Any:
    # Not strict: a line may break inside a text, and then it breaks there.
    return json.loads(text, object_pairs_hook=_once, strict=False)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise DoubledKey("a key stands twice")
    return dict(pairs)


def _kept(found: re.Match[str]) -> str:
    """Texts as they are, and as many lines as there were."""
    return found["kept"] or "\n" * found[0].count("\n")
