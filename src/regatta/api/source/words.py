"""A line as a shell reads it, taken apart into the words of a command. No shell runs it: what only
a shell would understand is refused, with the line that asks for one."""

from __future__ import annotations

import re
import shlex

from regatta.api.checks.suggestions import shown

#: Between words these mean something to a shell, and nothing to a program.
_OPERATORS = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>")
#: In which such signs mean themselves.
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)


def split_words(line: str) -> list[str]:
    """ValueError says what is wrong with the line, and what would be right."""
    try:
        words = shlex.split(line)
    except ValueError:
        found = "ends with a \\" if line.endswith("\\") else "has a quote that is never closed"
        raise ValueError(f"{shown(line)} {found}") from None
    if not words:
        raise ValueError('it is empty; write what to run, such as "python train.py"')
    if _VARIABLE.match(words[0]):
        raise ValueError(
            f"{shown(words[0])} is no program; variables are set with --env {words[0]}"
        )
    if any(word in _OPERATORS or word.endswith(";") for word in _QUOTED.sub("_", line).split()):
        raise ValueError(
            f"{shown(line)} is for a shell, and none reads it; ask for one: "
            f"--command {shlex.quote(shlex.join(['sh', '-c', line]))}"
        )
    return words
