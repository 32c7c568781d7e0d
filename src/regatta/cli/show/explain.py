"""Prints an error to stderr: the sentence, each problem with its place, and what to do next."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable

from regatta.api.checks.suggestions import readable
from regatta.api.errors import RegattaError
from regatta.api.problems import Problem
from regatta.cli.outcomes import Exit, Stop, report
from regatta.cli.settings import Settings
from regatta.cli.show.ansi import Paint, wants_colour

#: Set, it shows the traceback of what was not expected.
TRACEBACK = "REGATTA_TRACEBACK"
#: What Python makes of bytes on the command line or in the environment that are not UTF-8.
_NO_TEXT = r"[\udc80-\udcff]"


def explain(error: Stop | RegattaError, settings: Settings) -> int:
    found = report(error, settings.server)
    paint = _paint(settings)
    if found.message:
        print(f"{paint('error:', 'red')} {_lines(found.message)}", file=sys.stderr)
    show_problems(found.problems, settings)
    if found.hint:
        print(f"  {_lines(found.hint)}", file=sys.stderr)
    return int(found.code)


def explain_unexpected(error: Exception, settings: Settings) -> int:
    """The last resort: a sentence instead of a traceback, unless that is asked for."""
    if isinstance(error, UnicodeEncodeError) and re.search(_NO_TEXT, error.object):
        raw = os.fsencode(error.object[max(0, error.start - 60) : error.end + 60])
        odd = Stop(
            Exit.INVALID,
            f"{str(raw)[1:]} is not UTF-8 text",
            "Names, folders, variables and the PATH that a command sends have to be; "
            "rename it, or leave it out.",
        )
        return explain(odd, settings)
    if os.environ.get(TRACEBACK):
        raise error
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        message = f"the system refused something: {error.strerror}{where}"
    else:
        message = f"something unexpected happened: {type(error).__name__}: {error}"
    hint = f"With {TRACEBACK}=1 in the environment the same command shows where."
    return explain(Stop(Exit.FAILED, message, hint), settings)


def show_problems(problems: Iterable[Problem], settings: Settings) -> None:
    """One line each, errors and warnings alike."""
    paint = _paint(settings)
    for problem in problems:
        if problem.severity == "warning":
            print(f"  {paint('warning:', 'yellow')} {_lines(str(problem))}", file=sys.stderr)
        else:
            print(f"  {paint('-', 'red')} {_lines(str(problem))}", file=sys.stderr)


def _lines(text: str) -> str:
    """What a file, an option or a program said may stand in a message, and is not to move the
    cursor or turn the line around."""
    return "\n".join(map(readable, text.split("\n")))


def _paint(settings: Settings) -> Paint:
    return Paint(wants_colour(sys.stderr, refused=settings.no_color))
