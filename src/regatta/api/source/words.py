"""A line as a shell reads it, taken apart into the words of a command. No shell runs it: what only
a shell would understand is refused, with the line that asks for one."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from regatta.api.checks.suggestions import shown

#: Each as a whole: in single quotes, in double quotes, behind a backslash.
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
#: Outside of quotes these mean something to a shell, and nothing to a program. One & within a word
#: is left alone, for the sake of addresses; `$(NAME)` is a pod's own.
_FOR_A_SHELL = re.compile(
    r"[|;<>`\n]|&&|&(?!\S)|(?<!\S)[&(]|(?<!\S)~(?![^\s/])|\$[A-Za-z_{]|\$\((?![A-Za-z0-9_.-]+\))"
)
_IN_DOUBLE_QUOTES = re.compile(r"(?<!\\)(\$[A-Za-z_][A-Za-z0-9_]*|\$\{[^}]*\}|`[^`]*`)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
#: What a plain sh does not read.
_BASH = re.compile(r"(?<![^\s;&|(])(?:source|\[\[|shopt|pushd)(?=\s)|[<>]\(|<<<|&>|\bpipefail\b")
#: What starts an environment, and what then runs in it.
_ACTIVATES = re.compile(
    r"(?:source|\.)\s+(?P<at>'[^']+'|\"[^\"]+\"|[^\s;&|]+)\s*(?:(?:&&|;|\n)\s*(?P<rest>.+))?$",
    re.DOTALL,
)
_ACTIVATE = "/bin/activate"
#: What a shell does itself: there is no such program.
_BUILT_IN = (".", "alias", "cd", "eval", "exec", "export", "set", "source", "ulimit", "unset")


def split_words(line: str) -> list[str]:
    """ValueError says what is wrong with the line, and what would be right."""
    line = _in_one(line).strip()
    try:
        words = shlex.split(line)
    except ValueError:
        found, right = "has a quote that is never closed", "close it"
        if line.endswith("\\"):
            found, right = "ends with a \\", "leave it out"
        raise ValueError(f"{shown(line)} {found}; {right}") from None
    if not words:
        raise ValueError('it is empty; write what to run, such as "python train.py"')
    if not words[0].strip():
        raise ValueError(
            f"its first word is {shown(words[0])}, and that is the program; write what to run, "
            'such as "python train.py"'
        )
    if _VARIABLE.match(words[0]):
        raise ValueError(
            f"{shown(words[0])} is no program; variables are set with --env {words[0]}"
        )
    if _FOR_A_SHELL.search(_QUOTED.sub("_", line)) or words[0] in _BUILT_IN:
        meant = "" if words[0] in _BUILT_IN else "; what is meant as it stands goes in quotes"
        right = _without_a_shell(line, words) or f"ask for one: {_asking_a_shell(line)}{meant}"
        raise ValueError(f"{shown(line)} is for a shell, and none reads it; {right}")
    return words


def unread(line: str) -> str:
    """What of a line that can be split a shell would have put something else for: it stands in
    double quotes, where it may be meant so."""
    if reads_words(split_words(line)):
        return ""  # which reads it
    for quoted in _QUOTED.findall(_in_one(line)):
        if quoted.startswith('"') and (found := _IN_DOUBLE_QUOTES.search(quoted)):
            return (
                f"{shown(found[0])} is handed over as it stands, for no shell reads the line; ask "
                f"for one: {_asking_a_shell(_in_one(line).strip())}, or put it in single "
                "quotes"
            )
    return ""


def _in_one(line: str) -> str:
    """Without the line ends that a backslash takes away."""

    def joined(quoted: re.Match[str]) -> str:
        if quoted[0].startswith("'"):
            return quoted[0]
        return _ESCAPED.sub(lambda sign: "" if sign[1] == "\n" else sign[0], quoted[0])

    return _QUOTED.sub(joined, line.replace("\r\n", "\n"))


def reads_words(words: list[str]) -> bool:
    """Whether these start a shell."""
    return bool(words) and PurePosixPath(words[0]).name in _SHELLS


def shell_for(line: str) -> str:
    """The shell that reads it: any machine's, unless the line needs more."""
    return "bash" if _BASH.search(_QUOTED.sub("_", line)) else "sh"


def _without_a_shell(line: str, words: list[str]) -> str:
    """What does the same with no shell, and more than it: what a shell sets for itself alone ends
    with it. Empty where there is no such thing."""
    if (found := _ACTIVATES.match(line)) and (at := shlex.split(found["at"])[0]).endswith(
        _ACTIVATE
    ):
        python = shlex.quote(at.removesuffix(_ACTIVATE) + "/bin/python")
        return f"name the environment's Python: --python {python}{_behind(found['rest'])}"
    if _FOR_A_SHELL.search(_QUOTED.sub("_", line)):
        return ""
    if words[0] == "cd" and len(words) == 2:
        return f"name the folder with --workdir {shlex.quote(words[1])}{_behind(None)}"
    if words[0] == "export" and all(map(_VARIABLE.match, words[1:])) and words[1:]:
        variables = " ".join(f"--env {shlex.quote(word)}" for word in words[1:])
        return f"set variables with {variables}{_behind(None)}"
    return ""


def _behind(rest: str | None) -> str:
    """Whatever else is to run, on the same line."""
    if not rest:
        return ", and what to run with --command LINE"
    try:
        split_words(rest)
        return f" --command {shlex.quote(rest)}"
    except ValueError:
        return f" {_asking_a_shell(rest)}"


def _asking_a_shell(line: str) -> str:
    """As one would type it, where the line has no quotes of its own."""
    shell = shell_for(line)
    if not set(line) & set("'\"\\"):
        return f"--command '{shell} -c \"{line}\"'"
    return f"--command {shlex.quote(shlex.join([shell, '-c', line]))}"
