"""`config.yaml` of the state folder: how it is read, and what it says about keeping runs.

Commands and servers read the same file. A machine without one never loads a YAML reader for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from regatta.api.amounts import parse_duration
from regatta.api.errors import BadSetting, InvalidJob
from regatta.controller.retention import UNBOUNDED, Retention

NAME = "config.yaml"
RETENTION = "retention"
UNLIMITED = "unlimited"
#: Bytes of logs that somebody may mean.
SMALLEST = 1024**2
#: What else the file may hold: for commands, and for a team's server.
OTHERS = ("engine", "context", "kubeconfig", "namespace", "team")


def load_config(path: Path) -> dict[str, Any]:
    """What the file says, as a map; an empty one where there is no file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as bad:
        raise BadSetting(f"{path} cannot be read: {bad}") from bad
    from regatta.api.source.yaml import read_value

    try:
        content = read_value(text) or {}
    except InvalidJob as bad:
        raise BadSetting(f"{path} is not YAML: {bad}. Correct it, or move it away.") from bad
    if not isinstance(content, dict):
        raise BadSetting(f"{path} is not a map. Write lines such as `engine: local`.")
    return content


class Kept(NamedTuple):
    """The bounds that hold, and what is wrong with the file's own: then there are none."""

    bounds: Retention = Retention()
    problem: str = ""


def read_retention(path: Path) -> Kept:
    """The file's own bounds, and those that hold where it names none. A file that is wrong keeps
    no server from its jobs."""
    try:
        return take_retention(path, load_config(path))
    except BadSetting as bad:
        return Kept(UNBOUNDED, str(bad))


def take_retention(path: Path, content: dict[str, Any]) -> Kept:
    """Out of what the file says, also where the word itself is misspelt."""
    name = next((name for name in content if name == RETENTION or _is_meant(name)), None)
    if name is None:
        return Kept()
    said = content.pop(name)
    if name != RETENTION:
        return Kept(UNBOUNDED, f"{path}: {name} is unknown; write {RETENTION}.")
    if said is None:
        return Kept()
    if not isinstance(said, dict):
        return Kept(
            UNBOUNDED,
            f"{path}: {RETENTION} is {said!r}; write a map, such as "
            f"`{RETENTION}: {{age: 90d, runs: 2000, size: 5Gi}}`.",
        )
    bounds: dict[str, float | int | None] = {}
    problems = []
    for name, value in said.items():
        if name not in READERS:
            allowed = ", ".join(READERS)
            problems.append(f"{path}: {RETENTION}.{name} is unknown; it may hold {allowed}.")
            continue
        example, read = READERS[name]
        try:
            bounds[name] = None if value == UNLIMITED else read(value)
        except ValueError:
            problems.append(
                f"{path}: {RETENTION}.{name} is {value!r}; write {example}, or {UNLIMITED}."
            )
    if problems:
        return Kept(UNBOUNDED, " ".join(problems))
    return Kept(Retention(**bounds))  # type: ignore[arg-type]


def _is_meant(name: object) -> bool:
    if name in OTHERS or not isinstance(name, str):
        return False
    import difflib

    return bool(difflib.get_close_matches(name.lower(), [RETENTION]))


def _age(value: object) -> float:
    if not isinstance(value, str):  # a bare number says nothing of its unit
        raise ValueError
    return _some(parse_duration(value, with_unit=True))


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return int(_some(value))


def _size(value: object) -> int:
    from regatta.api.quantity import parse_memory  # commands that only look start without it

    size = int(parse_memory(value))
    if size < SMALLEST:  # its unit was forgotten
        raise ValueError
    return size


def _some(number: float) -> float:
    if number <= 0:
        raise ValueError
    return number


#: What each bound is written as, and who reads it. ValueError: it is not.
READERS: dict[str, tuple[str, Callable[[object], float | int]]] = {
    "age": ("a time such as 90d or 12h", _age),
    "runs": ("a whole number above 0", _count),
    "size": ("an amount of 1Mi or more, such as 5Gi", _size),
}
