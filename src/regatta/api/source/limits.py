"""How large and how odd a document may be before anybody looks at what it means.

Anything that passes here is plain JSON of a bounded size, so that no later step can be made to
run out of memory, of stack, or of patience.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from regatta.api.errors import InvalidJob
from regatta.api.problems import Problem
from regatta.api.source.paths import join

MAX_BYTES = 1024 * 1024
MAX_NODES = 100_000
MAX_DEPTH = 64
MAX_PROBLEMS = 100
#: What Linux gives a program: a variable or an argument takes no more than the first, its end
#: included, and all of them together no more than the second, whatever else is allowed.
MAX_STRING = 128 * 1024
MAX_STRINGS = 6 * 1024 * 1024


def check_plain(document: object) -> None:
    """Raise InvalidJob unless this is JSON that a job could be made of."""
    stack: list[tuple[object, str, int]] = [(document, "", 1)]
    seen = 0
    while stack:
        value, path, depth = stack.pop()
        seen += 1
        _check_size(seen, depth)
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise _refused(path, f"the key {key!r} is not text; put it in quotes")
                _check_text(path, key)
                stack.append((item, join(path, key), depth + 1))
        elif isinstance(value, list | tuple):
            stack.extend((item, join(path, i), depth + 1) for i, item in enumerate(value))
        elif isinstance(value, str):
            _check_text(path, value)
        elif isinstance(value, bool | None):
            pass
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise _refused(path, "the number does not fit 64 bits")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise _refused(path, "the number is not finite")
        else:
            raise _refused(path, f"{type(value).__name__} is not a JSON value")


def check_depth(document: object) -> None:
    """The same for size and depth alone, of what is not known to be a job yet: what comes next goes
    down into it step by step."""
    stack: list[tuple[object, int]] = [(document, 1)]
    seen = 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        _check_size(seen, depth)
        stack.extend((item, depth + 1) for item in _within(value))


def _check_size(seen: int, depth: int) -> None:
    if seen > MAX_NODES:
        raise _refused("", f"it has more than {MAX_NODES:,} values; a job needs a few hundred")
    if depth > MAX_DEPTH:
        raise _refused("", f"it is nested more than {MAX_DEPTH} levels deep")


def _within(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _check_text(path: str, text: str) -> None:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _refused(path, "the text has half of a surrogate pair, which is not a character")
    if "\0" in text:
        raise _refused(path, "the text has a NUL character, which no process could be given")


def _refused(path: str, message: str) -> InvalidJob:
    return InvalidJob([Problem(path, message)])


def capped(problems: list[Problem]) -> list[Problem]:
    """At most a screenful or two: a file of a thousand mistakes has one cause."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], Problem("", f"and {more:,} more problems like these")]
