"""What replicas print reaches a terminal as text and colours, and as nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regatta.cli.show.ansi import harmless
from tests.doors import Regatta, Terminal, shell_job

CASES = {
    "plain text passes": ("loss ↓ 0.5\tok", "loss ↓ 0.5\tok"),
    "colours pass": ("\x1b[1;31mred\x1b[0m \x1b[38:5:1m1", "\x1b[1;31mred\x1b[0m \x1b[38:5:1m1"),
    "titles do not": ("a\x1b]0;pwn\x07b\x1b]0;pwn\x1b\\c", "abc"),
    "a title without an end does not": ("a\x1b]0;pwn", "a"),
    "clearing the screen does not": ("a\x1b[2Jb\x1b[?25lc\x1b[!pd", "abcd"),
    "a sequence that is cut off does not": ("a\x1b[12", "a[12"),
    "a lone escape does not": ("a\x1b", "a"),
    "a reset does not": ("a\x1bcb", "ab"),
    "the 8-bit forms do not": ("a\x9b2Jb\x9d0;x\x9cc", "a2Jb0;xc"),
    "only the line that it is on is cut": ("a\x1b]0;x\nb", "a\nb"),
    "what looks like a colour and is a setting does not": ("a\x1b[>4;2mb", "a[>4;2mb"),
}  # fmt: skip


@pytest.mark.parametrize(("said", "shown"), CASES.values(), ids=list(CASES))
def test_what_a_replica_may_tell_a_terminal(said: str, shown: str) -> None:
    assert harmless(said) == shown


def test_last_lines_are_as_harmless_as_logs(
    regatta: Regatta, name: str, terminal: Callable[..., Terminal]
) -> None:
    script = r"printf 'a\033]0;pwn\007b\033[2Jc\033[31mred\n'; exit 1"
    windows = [
        terminal("run", regatta.write(shell_job(name, script))),
    ]
    assert windows[0].end() == 1
    windows += [terminal("describe", name), terminal("events", name), terminal("logs", name)]
    windows[1].end()
    windows[2].end()
    windows[3].end()

    for window in windows:
        assert "\x1b]" not in window.seen
        assert "\x1b[2J" not in window.seen
        assert "\x07" not in window.seen
    assert "its last lines:" in windows[0].seen
    assert "its last lines:" in windows[1].seen
    assert "abc\x1b[31mred" in windows[0].seen


def test_a_pipe_gets_what_the_replica_said(regatta: Regatta, name: str) -> None:
    script = r"printf 'a\033[2Jb\n'; exit 1"

    assert "    a\x1b[2Jb\n" in regatta("run", "-", stdin=shell_job(name, script)).out
