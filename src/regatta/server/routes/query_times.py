"""Times in a query. pydantic takes a number for seconds since 1970, of which no description of ours
speaks; whoever sends one means something else."""

from __future__ import annotations

import re

from pydantic import BeforeValidator

_NUMBER = re.compile(r"\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)


def _no_number(value: object) -> object:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        raise ValueError("write a time with its zone, such as 2026-01-02T12:00:00Z")
    return value


NOT_A_NUMBER = BeforeValidator(_no_number)
