"""Places in a document, as people write them: `spec.tasks[1].name`, `limits[nvidia.com/gpu]`.

One spelling everywhere, so that a path from an error message can be given to `--set`, and finds
its line in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Step = str | int

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_STEP = re.compile(r"\.?([A-Za-z_][A-Za-z0-9_-]*)|\[([^\[\]]+)\]", re.ASCII)


def join(path: str, step: Step) -> str:
    if isinstance(step, str) and _PLAIN.fullmatch(step):
        return f"{path}.{step}" if path else step
    return f"{path}[{step}]"


def join_all(path: str, steps: Iterable[Step]) -> str:
    for step in steps:
        path = join(path, step)
    return path


def split(path: str) -> list[Step]:
    """The steps of a written path. ValueError says where it stops making sense."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        first = match[0][0] if match else ""
        if match is None or (first == "." if at == 0 else first not in ".["):
            raise ValueError(f"cannot read {path[at:]!r} as the next step of a path")
        name, bracketed = match[1], match[2]
        steps.append(name or (int(bracketed) if bracketed.isdecimal() else bracketed))
        at = match.end()
    if not steps:
        raise ValueError("the path is empty")
    return steps


def lineage(path: str) -> Iterator[str]:
    """The place itself, then what holds it, up to but without the top."""
    while path:
        yield path
        at = path.rfind("[") if path.endswith("]") else path.rfind(".")
        path = path[: max(at, 0)]


def within(path: str, outer: str) -> bool:
    """Whether `path` is `outer` or lies below it."""
    return not outer or path == outer or path.startswith((f"{outer}.", f"{outer}["))
