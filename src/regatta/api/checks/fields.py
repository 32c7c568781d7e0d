"""What one field of a draft may hold, and the sentence for what it may not.

A draft is a pydantic model in which every field may be absent. What is of the wrong shape is told
and then taken for absent, so that the rules still see the rest and all problems come at once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from regatta.api.amounts import whole_seconds
from regatta.api.checks.suggestions import shown

MOST = 2**31 - 1
SECONDS = "a whole number of seconds"
#: The kinds of error whose sentence is complete, and whose is made where the text is known.
SENTENCE, NO_TEXT = "sentence", "no_text"

M = TypeVar("M", bound=BaseModel)


def wrong(value: object, right: str) -> PydanticCustomError:
    sentence = f"found {shown(value)}; {right}"
    return PydanticCustomError(SENTENCE, "{sentence}", {"sentence": sentence})


def whole(low: int, high: int, what: str, not_a_map: str = "") -> BeforeValidator:
    """`not_a_map`: what to write for somebody who meant another field of that name."""

    def check(value: object) -> object:
        if value is None or (type(value) is int and low <= value <= high):
            return value
        right = f"write {what}"
        if isinstance(value, dict) and not_a_map:
            right = not_a_map
        elif isinstance(value, str) and value.strip().isdecimal():
            right += " without the quotes"
        elif isinstance(value, str) and what == SECONDS:
            right += f": {seconds}" if (seconds := whole_seconds(value)) else ", such as 3600"
        elif not isinstance(value, int) and what.startswith("a whole number"):
            right += f", such as {max(low, 2)}"
        if type(value) is int and what.startswith("a whole number"):
            told = high < MOST or value > high
            right += f" from {low:,} to {high:,}" if told else f" of at least {low:,}"
        raise wrong(value, right)

    return BeforeValidator(
        check, json_schema_input_type=Annotated[int, Field(ge=low, le=high)] | None
    )


def text(what: str) -> BeforeValidator:
    def check(value: object) -> object:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float):  # how it was written is known where it is told
            raise PydanticCustomError(NO_TEXT, "not text")
        raise wrong(value, f"write {what}, in quotes")

    return BeforeValidator(check)


def flag(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    raise wrong(value, "write true or false, without quotes")


def list_of(fits: Callable[[object], bool], what: str, item: object, most: int) -> BeforeValidator:
    """A list that is right or wrong as a whole; it has at most so many items."""

    def check(value: object) -> object:
        if value is None:
            return value
        odd = value if not isinstance(value, list) else next((x for x in value if not fits(x)), [])
        if odd != []:
            raise wrong(odd, f"write a list of {what}")
        if isinstance(value, list) and len(value) > most:
            raise wrong(value, f"write at most {most}")
        return value

    shape = Annotated[list[item], Field(max_length=most)] | None  # type: ignore[valid-type]
    return BeforeValidator(check, json_schema_input_type=shape)


def drafted(model: type[M], document: dict[str, Any]) -> tuple[M, list[ErrorDetails]]:
    """The document without what could not be read of it, and what that was."""
    try:
        return model.model_validate(document), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
    readable = copy.deepcopy(document)
    for found in errors:
        _blank(readable, found["loc"], unknown=found["type"] == "extra_forbidden")
    return model.model_validate(readable), errors


def _blank(document: Any, loc: tuple[int | str, ...], *, unknown: bool) -> None:
    for step in loc[:-1]:
        document = document[step]
    if unknown:
        del document[loc[-1]]
    else:
        document[loc[-1]] = None
