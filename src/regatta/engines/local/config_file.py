"""`config.yaml` of the state folder: how it is read, and what it says about keeping runs.

Commands and servers read the same file. A machine without one never loads a YAML reader for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from regatta.api.amounts import parse_duration
from regatta.api.errors import BadSetting
from regatta.controller.retention import Retention

NAME = "config.yaml"
RETENTION = "retention"
UNLIMITED = "unlimited"


def load_config(path: Path) -> dict[str, Any]:
    """What the file says, as a map; an empty one where there is no file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as bad:
        raise BadSetting(f"{path} cannot be read: {bad}") from bad
    import yaml

    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as bad:
        raise BadSetting(f"{path} is not YAML: {bad}") from bad
    if not isinstance(content, dict):
        raise BadSetting(f"{path} is not a map. Write lines such as `engine: local`.")
    return content


def read_retention(path: Path) -> Retention:
    """The file's own bounds, and those that hold where it names none."""
    return parse_retention(path, load_config(path).get(RETENTION))


def parse_retention(path: Path, said: object) -> Retention:
    if said is None:
        return Retention()
    if not isinstance(said, dict):
        raise BadSetting(
            f"{path}: {RETENTION} is {said!r}; write a map, such as "
            f"`{RETENTION}: {{age: 90d, runs: 2000, size: 5Gi}}`."
        )
    bounds: dict[str, float | int | None] = {}
    for name, value in said.items():
        if name not in READERS:
            raise BadSetting(
                f"{path}: {RETENTION}.{name} is unknown; it may hold {', '.join(READERS)}."
            )
        example, read = READERS[name]
        try:
            bounds[name] = None if value == UNLIMITED else read(value)
        except ValueError as wrong:
            raise BadSetting(
                f"{path}: {RETENTION}.{name} is {value!r}; write {example}, or {UNLIMITED}."
            ) from wrong
    return Retention(**bounds)  # type: ignore[arg-type]


def _age(value: object) -> float:
    if not isinstance(value, str):  # a bare number says nothing of its unit
        raise ValueError
    return _some(parse_duration(value))


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return int(_some(value))


def _size(value: object) -> int:
    from regatta.api.quantity import parse_memory  # commands that only look start without it

    return int(_some(parse_memory(value)))


def _some(number: float) -> float:
    if number <= 0:
        raise ValueError
    return number


#: What each bound is written as, and who reads it. ValueError: it is not.
READERS: dict[str, tuple[str, Callable[[object], float | int]]] = {
    "age": ("a time such as 90d or 12h", _age),
    "runs": ("a whole number above 0", _count),
    "size": ("an amount such as 5Gi", _size),
}
