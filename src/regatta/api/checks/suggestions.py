"""Words for messages: what was found, shortened, and what was probably meant."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LONGEST = 60
#: More than the problems of a file that are told, of which each may look twice.
MOST_GUESSES = 300
_guesses_left: ContextVar[int | None] = ContextVar("guesses left", default=None)


@contextmanager
def few_guesses() -> Iterator[None]:
    """A file may have tens of thousands of unknown fields, and a guess takes a while: seconds, in
    which a server would answer nobody. Most of those are not told anyway."""
    token = _guesses_left.set(MOST_GUESSES)
    try:
        yield
    finally:
        _guesses_left.reset(token)


def closest(word: object, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, whatever its case, underscores or plural."""
    if not isinstance(word, str) or not word or len(word) > 200:
        return None
    left = _guesses_left.get()
    if left is not None:
        if left == 0:
            return None
        _guesses_left.set(left - 1)
    folded: dict[str, str] = {}
    for option in known:
        folded.setdefault(_fold(option), option)
    found = difflib.get_close_matches(_fold(word), folded, n=1, cutoff=0.7)
    return folded[found[0]] if found else None


def _fold(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """`did you mean x? ` or nothing, to stand before what is allowed."""
    suggestion = closest(word, known)
    return f"did you mean {suggestion}? " if suggestion else ""


def listed(words: Iterable[str], last: str = "and") -> str:
    """`a, b and c`; long lists are cut."""
    every = list(words)
    if len(every) > 30:
        return f"{', '.join(every[:30])} and {len(every) - 30} more"
    if len(every) < 2:
        return "".join(every)
    return f"{', '.join(every[:-1])} {last} {every[-1]}"


def shown(value: object) -> str:
    """A value as it stands in a message: as JSON, and never longer than a line."""
    if isinstance(value, dict):
        return "a map" if value else "an empty map"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None:
        return "nothing"
    if isinstance(value, str) and len(value) > _LONGEST:
        start = json.dumps(value[: _LONGEST - 20], ensure_ascii=False)
        return f"{readable(start)}... ({len(value):,} characters)"
    return readable(json.dumps(value, ensure_ascii=False, default=str))


def shown_key(key: str) -> str:
    """As it is where that can be read, else as `shown`."""
    if len(key) > _LONGEST:
        key = f"{key[: _LONGEST - 20]}..."
    return key if key and key.isprintable() else readable(json.dumps(key, ensure_ascii=False))


def readable(text: str) -> str:
    """With `\\u202e` for what nobody sees, and what would turn the rest of the line around."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
