"""The shape of a config: every field, its type, and a sentence at the author's own path.

The same for both protocols; their fields stand in `version_one` and `version_two`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator
from pydantic_core import ErrorDetails, PydanticCustomError

from regatta.api.checks.fields import MOST, NO_TEXT, SENTENCE, M, drafted, whole, wrong
from regatta.api.checks.quotes import about_text
from regatta.api.checks.rules import MAX_REPLICAS
from regatta.api.checks.suggestions import closest, did_you_mean, listed, shown
from regatta.api.checks.task_rules import MAX_TASKS, PORTS_PER_REPLICA
from regatta.api.problems import Problem
from regatta.api.source.paths import join_all, lineage

ALWAYS_THERE = ("http", "ssh")
LONGEST_NAME = 255

Loc = tuple[int | str, ...]


def number(low: int, high: int = MOST) -> BeforeValidator:
    return whole(low, high, "a whole number")


def count_or_never(*, minus_one: bool) -> BeforeValidator:
    """How many ends of one kind decide: a number, or null for a rule that is not there."""
    never = "null or -1" if minus_one else "null"

    def check(value: object) -> object:
        if value is None or (type(value) is int and 1 <= value <= MOST):
            return value
        if minus_one and type(value) is int and value == -1:
            return None
        quoted = isinstance(value, str) and value.strip().isdecimal()
        right = f"write a whole number of at least 1{' without the quotes' if quoted else ''}"
        raise wrong(value, f"{right}, or {never} for never")

    return BeforeValidator(check)


FromZero = Annotated[int | None, number(0)]
FromOne = Annotated[int | None, number(1)]
Ports = Annotated[int | None, number(1, PORTS_PER_REPLICA)]


def _hidden(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    sentence = f"found {kind_of(value)}; it must be text, so put it in quotes"
    raise PydanticCustomError(SENTENCE, "{sentence}", {"sentence": sentence})


#: Text that no message may show.
Hidden = Annotated[str | None, BeforeValidator(_hidden)]


def kind_of(value: object) -> str:
    """What a value is, for a message that must not say it."""
    kinds = {bool: "true or false", dict: "a map", list: "a list", str: "text"}
    return kinds.get(type(value), "nothing" if value is None else "a number")


def read(
    model: type[M], document: dict[str, Any], at: str = ""
) -> tuple[M, list[Problem], set[str]]:
    """The config as far as it can be read, what could not be, and the places that this explains.

    `at`: where this map stands in the config, when it is a part of it.
    """
    draft, errors = drafted(model, document)
    problems = [_problem(model, document, found, at) for found in errors]
    explained = {problem.path for problem in problems}
    for found in errors:
        if found["type"] == "extra_forbidden":
            loc = found["loc"]
            meant = closest(str(loc[-1]), _fields(_model_at(model, loc)))
            explained |= {join_all(at, (*loc[:-1], meant))} if meant else set()
    return draft, problems, explained


def news(found: Iterable[Problem], told: set[str]) -> Iterator[Problem]:
    """What was found, less what only follows from something that is told already."""
    return (problem for problem in found if told.isdisjoint(lineage(problem.path)))


def _problem(model: type[BaseModel], document: object, found: ErrorDetails, at: str) -> Problem:
    loc, kind = found["loc"], found["type"]
    path = join_all(at, loc)
    if kind == SENTENCE:
        return Problem(path, found["msg"])
    if kind == "extra_forbidden":
        return Problem(path, about_unknown(str(loc[-1]), _fields(_model_at(model, loc))))
    value: Any = document
    for step in loc:
        value = value[step]
    if kind == NO_TEXT:
        return Problem(path, about_text(value, path, None))
    wanted = "a list" if kind == "list_type" else "a map"
    said = kind_of(value) if loc[-1] == "auth" else shown(value)  # which may be all of it
    return Problem(path, f"found {said}; write {wanted}")


def about_unknown(key: str, known: Sequence[str]) -> str:
    return f"unknown field; {did_you_mean(key, known)}Known here: {listed(known)}"


def _fields(model: type[BaseModel]) -> list[str]:
    return [str(field.alias) for field in model.model_fields.values()]


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """The model of the map that holds this place."""
    here: Any = model
    for step in loc[:-1]:
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = here.model_fields.values()
            here = next(field.annotation for field in fields if field.alias == step)
        else:  # a list's items, or a map's values
            here = typing.get_args(here)[-1]
        here = _present(here)
    holder: type[BaseModel] = here
    return holder


def _present(annotation: Any) -> Any:
    """Of `X | None`, X."""
    if type(None) in typing.get_args(annotation):
        return next(kind for kind in typing.get_args(annotation) if kind is not type(None))
    return annotation


# Rules that both protocols have


def check_size(path: str, roles: int, field: str, counts: Iterable[int]) -> Iterator[Problem]:
    if roles > MAX_TASKS:
        yield Problem(path, f"found {roles} task roles; a job has at most {MAX_TASKS}")
    total = sum(counts)
    if total > MAX_REPLICAS:
        yield Problem(
            path,
            f"{field} comes to {total:,} tasks in all; a job has at most {MAX_REPLICAS:,}, because "
            "each is told of all the others",
        )


def check_ports(path: str, counts: dict[str, int]) -> Iterator[Problem]:
    """`http` and `ssh` are always there, and take their place too."""
    total = sum(counts.values()) + sum(label not in counts for label in ALWAYS_THERE)
    if total > PORTS_PER_REPLICA:
        yield Problem(
            path,
            f"found {total} ports in all, with those for {listed(ALWAYS_THERE)}; each task has at "
            f"most {PORTS_PER_REPLICA}",
        )
