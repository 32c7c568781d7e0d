"""`--role ROLE --command LINE`: which command is for whom, by where they stand on the line."""

from __future__ import annotations

import click

from regatta.api.job import EVERY_ROLE
from regatta.cli.other_words import other_option
from regatta.cli.settings import Verb

#: Between a role and its command once they are one word: nothing on a command line can hold it.
_AND = "\0"


class RoleCommands(Verb):
    """click tells how often an option stands on a line, and not behind which other one: a role and
    the command behind it become one word first."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        args = list(args)  # click takes them out
        try:
            return super().parse_args(context, _joined(context, args))
        except click.NoSuchOption as unknown:
            instead = other_option(str(context.command.name), unknown.option_name, args)
            if not instead:
                raise
            # The option that is spelt most like it would do something else.
            raise click.UsageError(instead, context) from None


def by_role(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    commands: dict[str, str] = {}
    for word in given:
        role, joined, line = word.partition(_AND)
        if not joined:
            role, line = EVERY_ROLE, word
        if role in commands:
            raise click.UsageError(
                f"--command is given twice for role {role}; give one"
                if joined
                else "--command is given twice; before each write the --role that it is for",
                context,
            )
        commands[role] = line
    return commands


def _joined(context: click.Context, args: list[str]) -> list[str]:
    words: list[str] = []
    left = list(args)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*words, word, *left]
        if word != "--role" and not word.startswith("--role="):
            words.append(word)
            continue
        role = _value(context, word, left)
        if not left or left[0].partition("=")[0] != "--command":
            raise click.UsageError(
                f"--role {role} needs a --command behind it; "
                f'write --role {role or "ROLE"} --command "python train.py"',
                context,
            )
        words.append(f"--command={role}{_AND}{_value(context, left.pop(0), left)}")
    return words


def _value(context: click.Context, word: str, left: list[str]) -> str:
    option, equals, value = word.partition("=")
    if equals:
        return value
    if not left:
        raise click.UsageError(f"{option} needs a value", context)
    return left.pop(0)
