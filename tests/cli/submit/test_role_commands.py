"""Which `--command` of a line is for which role."""

from __future__ import annotations

import click
import pytest

from regatta.cli.settings import verb
from regatta.cli.submit.command_line import submission_options
from regatta.cli.submit.role_commands import RoleCommands


def commands(*words: str) -> dict[str, str]:
    command = verb("run", RoleCommands)(submission_options(lambda **options: options))
    found: dict[str, str] = command.main(["job.yaml", *words], standalone_mode=False)["commands"]
    return found


READ = {
    "none": ([], {}),
    "for every role": (["--command", "python t.py"], {"*": "python t.py"}),
    "for one role": (["--role", "ps", "--command", "a b"], {"ps": "a b"}),
    "for two": (
        ["--role", "ps", "--command", "a", "--role=worker", "--command=b=c"],
        {"ps": "a", "worker": "b=c"},
    ),
    "for one, and for the others": (
        ["--command", "b", "--role", "ps", "--command", "a"],
        {"*": "b", "ps": "a"},
    ),
}


@pytest.mark.parametrize(("words", "found"), READ.values(), ids=READ)
def test_a_command_is_for_the_role_before_it(words: list[str], found: dict[str, str]) -> None:
    assert commands(*words) == found


REFUSED = {
    "a role without a command": (["--role", "ps"], "--role ps needs a --command behind it"),
    "a role behind its command": (["--command", "a", "--role", "ps"], "--role ps needs a --comm"),
    "two for every role": (["--command", "a", "--command", "b"], "--command is given twice; befo"),
    "two for a role": (
        ["--role", "ps", "--command", "a", "--role", "ps", "--command", "b"],
        "--command is given twice for role ps",
    ),
    "nothing behind it": (["--role", "ps", "--command"], "--command needs a value"),
}


@pytest.mark.parametrize(("words", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_belongs_to_no_role_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(click.UsageError, match=sentence) as refused:
        commands(*words)
    assert refused.value.ctx is not None
