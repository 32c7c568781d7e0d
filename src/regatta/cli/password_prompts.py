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


def password_file_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--password-file",
        metavar="FILE",
        help="Has the password on its only line; - for standard input.",
    )(function)


def asked_password(whose: str, file: str | None, *, twice: bool = False) -> str:
    """`twice`: it is a new one, which nobody has seen while typing it."""
    if file == STDIN:
        return only_line("-", sys.stdin.read())
    if file is not None:
        return read_password_file(Path(file))
    if not sys.stdin.isatty():
        raise Stop(
            Exit.INVALID,
            "there is nobody to ask for a password: standard input is no terminal",
            "Give it with --password-file FILE, or with --password-file - on standard input.",
        )
    from getpass import getpass

    first = getpass(f"Password of {whose}: ")
    return same_twice(first, getpass("The same once more: ")) if twice else first


def read_password_file(path: Path) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as unreadable:
        raise BadSetting(f"--password-file {path} cannot be read: {unreadable}") from None
    return only_line(str(path), text)


def only_line(where: str, text: str) -> str:
    first, _, rest = text.partition("\n")
    if rest.strip():
        raise BadSetting(f"--password-file {where} has several lines; the password is to be alone")
    return first.removesuffix("\r")


def same_twice(first: str, second: str) -> str:
    """What was typed at two prompts."""
    if first != second:
        raise BadSetting("the two passwords differ; type the same one twice")
    return first
