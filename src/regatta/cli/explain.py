"""Prints an error to stderr: the sentence, each problem with its place, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from regatta.api.problems import InvalidJob, Problem
from regatta.cli.ansi import Paint, wants_colour
from regatta.cli.outcomes import Stop, report
from regatta.cli.settings import Settings
from regatta.client.errors import ClientError
from regatta.engines.base import EngineError


def explain(error: Stop | ClientError | EngineError | InvalidJob, settings: Settings) -> int:
    found = report(error)
    paint = _paint(settings)
    if found.message:
        print(f"{paint('error:', 'red')} {found.message}", file=sys.stderr)
    show_problems(found.problems, settings)
    if found.hint:
        print(f"  {found.hint}", file=sys.stderr)
    return int(found.code)


def show_problems(problems: Iterable[Problem], settings: Settings) -> None:
    """One line each, errors and warnings alike."""
    paint = _paint(settings)
    for problem in problems:
        if problem.severity == "warning":
            print(f"  {paint('warning:', 'yellow')} {problem}", file=sys.stderr)
        else:
            print(f"  {paint('-', 'red')} {problem}", file=sys.stderr)


def _paint(settings: Settings) -> Paint:
    return Paint(wants_colour(sys.stderr, refused=settings.no_color))
