"""Secrets of a v2 config: a value reaches the process that needs it, and nothing else.

A script keeps a placeholder where a secret belongs. The replica has the value in a variable that
comes from a Secret, and a script of ours (`scripts.FILL_IN`) puts it in its place there. No job, no
message and no command line ever shows it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from regatta.api.openpai.plugins import Piece
from regatta.api.openpai.reading import kind_of
from regatta.api.openpai.templates import SECRETS, Reference, parts, rendered, scalar
from regatta.api.openpai.wanted import Registry
from regatta.api.problems import Problem
from regatta.api.secrets import MASK
from regatta.api.source.limits import MAX_STRING
from regatta.api.source.paths import join_all

WRITE_AGAIN = f"found {MASK}, which stands for what was hidden; write the real {{}} again"
#: What a key of a Secret may be.
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_VARIABLE = "REGATTA_SECRET_{}"


class Filled(msgspec.Struct, frozen=True):
    """A script with placeholders, and what belongs where they stand."""

    script: str
    #: A placeholder, and the variable that holds its value.
    fillings: tuple[tuple[str, str], ...]
    #: A variable, and the key of its secret.
    variables: tuple[tuple[str, str], ...]


def fill(pieces: Sequence[Piece], values: Mapping[str, Any]) -> Filled:
    """The commands as one script. `values` is what templates in them refer to."""
    found: list[str | Reference] = []
    for i, piece in enumerate(pieces):
        found += [*(["\n"] if i else []), *rendered(piece.text.strip(), values)]
    keys = list(dict.fromkeys(part.key for part in found if isinstance(part, Reference)))
    script, placeholders = _with_placeholders(found, keys)
    named = [(_VARIABLE.format(i), key) for i, key in enumerate(keys)]
    fillings = tuple((placeholders[key], variable) for variable, key in named)
    return Filled(script, fillings, tuple(named))


def _with_placeholders(
    found: Sequence[str | Reference], keys: Iterable[str]
) -> tuple[str, dict[str, str]]:
    """Placeholders that stand nowhere else: what a parameter says is no reference, however much it
    looks like one."""
    keys, width = list(keys), 1
    while True:
        space = " " * width
        marks = {key: f"<%{space}${SECRETS}.{key}{space}%>" for key in keys}
        script = "".join(part if isinstance(part, str) else marks[part.key] for part in found)
        uses = dict.fromkeys(keys, 0)
        for part in found:
            if isinstance(part, Reference):
                uses[part.key] += 1
        if all(script.count(marks[key]) == uses[key] for key in keys):
            return script, marks
        width += 1


def check_shape(secrets: object) -> Iterator[Problem]:
    if secrets == MASK:
        yield Problem(SECRETS, WRITE_AGAIN.format("secrets"))
    elif secrets is not None and not isinstance(secrets, dict):
        yield Problem(SECRETS, f"found {kind_of(secrets)}; write a map of names and values")


def check_use(piece: Piece, secrets: Mapping[str, Any]) -> Iterator[Problem]:
    """What one command says of secrets, against those there are."""
    for part in parts(piece.text):
        if isinstance(part, Reference) and part.root == SECRETS:
            path = join_all(SECRETS, part.steps)
            value = scalar(secrets, part.steps)
            if not _KEY.fullmatch(part.key):
                right = "a secret's name has at most 253 letters, digits, - and _"
                yield Problem(piece.path, f"found {part.written}; {right}")
            elif value is None:
                yield Problem(
                    piece.path,
                    f"it refers to {path}, which is no value; write text under {path}",
                )
            elif len(value.encode()) >= MAX_STRING - len(_VARIABLE) - 8:
                yield Problem(
                    path,
                    f"it is longer than the {MAX_STRING:,} bytes that Linux gives a program as one "
                    "variable; keep it in a file",
                )


def about_numbers(used: Iterable[Reference], secrets: Mapping[str, Any]) -> Iterator[Problem]:
    for part in used:
        value: Any = secrets
        for step in part.steps:
            value = value[int(step)] if isinstance(value, list) else value[step]
        if not isinstance(value, str):
            yield Problem(
                join_all(SECRETS, part.steps),
                f"it is read as {kind_of(value)}, and may have been written another way, such as "
                "with zeros before it; put it in quotes, so that it stays as it is",
                "warning",
            )


def used_in(texts: Iterable[str]) -> list[Reference]:
    """The secrets that are referred to, each once."""
    found = (part for text in texts for part in parts(text))
    return list(
        {
            part.key: part for part in found if isinstance(part, Reference) and part.root == SECRETS
        }.values()
    )


def values_of(used: Iterable[Reference], secrets: Mapping[str, Any]) -> dict[str, str]:
    return {part.key: scalar(secrets, part.steps) or "" for part in used}


def revealed(text: str, values: Mapping[str, Any]) -> str:
    """With secrets in their places: for a registry's password, which goes to no replica."""
    return "".join(
        part if isinstance(part, str) else scalar(values.get(SECRETS), part.steps) or ""
        for part in rendered(text, values)
    )


def registry(auth: Any, values: Mapping[str, Any]) -> Registry | None:
    """Who we are to the registry of an image; None where `auth` says nothing."""
    if auth is None or not (auth.username or auth.password):
        return None
    return Registry(
        registry=revealed(auth.registryuri or "https://index.docker.io/v1/", values),
        username=revealed(auth.username or "", values),
        password=revealed(auth.password or "", values),
    )


def masked(config: dict[str, Any]) -> dict[str, Any]:
    """The config as anybody may see it."""
    shown = copy.deepcopy(config)
    if shown.get(SECRETS) is not None:
        shown[SECRETS] = MASK
    for item in shown.get("prerequisites") or ():
        auth = item.get("auth") if isinstance(item, dict) else None
        if isinstance(auth, dict) and _says_something(auth.get("password")):
            auth["password"] = MASK
    return shown


def _says_something(password: object) -> bool:
    """Anything but references, which only name what is hidden elsewhere."""
    if not isinstance(password, str):
        return password is not None
    return any(isinstance(part, str) and part.strip() for part in parts(password))
