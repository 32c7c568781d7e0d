"""Where a password comes from: a prompt, or a file. Never the arguments of a command, which anybody
on the machine can read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from regatta.api.errors import BadSetting
from regatta.cli.outcomes import Exit, Stop

STDIN = "-"
OPTION = "--password-file"


def password_file_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        OPTION,
        metavar="FILE",
        help="Has the password on its only line; - for standard input.",
    )(function)


def asked_password(
    whose: str,
    file: str | None,
    *,
    twice: bool = False,
    called: str = "Password",
    option: str = OPTION,
) -> str:
    """`twice`: it is a new one, which nobody has seen while typing it. `called`: what the prompt
    asks for, where a command wants two; `option`: which one names the file."""
    if file == STDIN:
        return only_line("-", sys.stdin.read(), option)
    if file is not None:
        return read_password_file(Path(file), option)
    if not sys.stdin.isatty():
        raise Stop(
            Exit.INVALID,
            "there is nobody to ask for a password: standard input is no terminal",
            f"Give it with {option} FILE, or with {option} - on standard input.",
        )
    from getpass import getpass

    first = getpass(f"{called} of {whose}: ")
    return same_twice(first, getpass("The same once more: ")) if twice else first


def read_password_file(path: Path, option: str = OPTION) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as unreadable:
        raise BadSetting(f"{option} {path} cannot be read: {unreadable}") from None
    return only_line(str(path), text, option)


def only_line(where: str, text: str, option: str = OPTION) -> str:
    first, _, rest = text.partition("\n")
    if rest.strip():
        raise BadSetting(f"{option} {where} has several lines; the password is to be alone")
    return first.removesuffix("\r")


def same_twice(first: str, second: str) -> str:
    """What was typed at two prompts."""
    if first != second:
        raise BadSetting("the two passwords differ; type the same one twice")
    return first
