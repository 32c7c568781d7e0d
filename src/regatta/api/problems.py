"""How bad input is told: one problem per mistake, each with its place and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    #: Where, as a person would write it: `spec.worker.replicas`, `spec.tasks[1].name`.
    path: str
    #: What was found and what is right, one sentence.
    message: str
    severity: Severity = "error"
    #: The line of the file, from 1, where the text is known.
    line: int | None = None

    def __str__(self) -> str:
        if self.path and self.line:
            return f"{self.path} (line {self.line}): {self.message}"
        place = self.path or (f"line {self.line}" if self.line else "")
        return f"{place}: {self.message}" if place else self.message


def how_many(problems: Iterable[Problem]) -> str:
    """In a sentence; warnings are none."""
    count = sum(problem.severity == "error" for problem in problems)
    return f"the job has {count} problem{'' if count == 1 else 's'}"
