"""`team.isolation` in `config.yaml`, and `--isolation`: what they may say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regatta.api.errors import BadSetting
from regatta.server.team.isolating.isolation import KINDS, IsolationSettings
from regatta.server.transport_rules import is_loopback

SECTION = "team.isolation"


def isolation_of(
    said: dict[str, Any],
    kind: str | None,
    host: str,
    *,
    root: bool | None = None,
    file: Path | None = None,
) -> IsolationSettings:
    """`said`: what `file` has. `kind`: the command line's word, which goes before the file's.
    `root`: whether this process is. Raises BadSetting."""
    where = f"{file}: {SECTION}" if file else SECTION
    unknown = [name for name in said if name not in ("kind", *_READERS)]
    if unknown:
        allowed = ", ".join(("kind", *_READERS))
        raise BadSetting(f"{where}.{unknown[0]} is unknown; it may hold {allowed}")
    chosen = kind or said.get("kind")
    if chosen is None:
        if not is_loopback(host):
            raise BadSetting(
                f"--host is {host}, which other machines can reach, and nothing says whose the "
                "processes of members' jobs are; add --isolation users (as root), container or "
                "none"
            )
        if os.geteuid() == 0 if root is None else root:
            raise BadSetting(
                "the server is started as root, and nothing says whose the processes of members' "
                "jobs are; add --isolation users, container or none (then they are root's)"
            )
        chosen = "none"
    if chosen not in KINDS:
        raise BadSetting(f"{where}.kind is {chosen!r}; write {', '.join(KINDS)}")
    values: dict[str, Any] = {}
    for name, (right, read) in _READERS.items():
        if said.get(name) is None:
            continue
        try:
            values[name] = read(said[name])
        except (ValueError, TypeError):
            raise BadSetting(f"{where}.{name} is {said[name]!r}; write {right}") from None
    return IsolationSettings(kind=chosen, **values)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _absolute(value: object) -> Path:
    path = Path(_text(value))
    if not path.is_absolute():
        raise ValueError
    return path


def _uids(value: object) -> range:
    first, dash, last = _text(value).partition("-")
    if not dash or int(last) < int(first):
        raise ValueError
    return range(int(first), int(last) + 1)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(map(_text, value))


def _texts_by_name(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    return {_text(name): _text(text) for name, text in value.items()}


#: What each is written as, and who reads it. ValueError: it is not.
_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "work": ("the full path of a folder, such as /var/lib/regatta/work", _absolute),
    "uids": ("the first and the last, such as 200000-299999", _uids),
    "register": ("the full path of a folder, such as /var/lib/regatta/uids", _absolute),
    "folders": ("a list of folders, such as [/data]", _texts),
    "images": ("a map, such as `{paddle:2.6: /opt/paddle/bin/python}`", _texts_by_name),
    "runtime": ("podman or docker", _text),
    "environment": ("a map of variables", _texts_by_name),
}
