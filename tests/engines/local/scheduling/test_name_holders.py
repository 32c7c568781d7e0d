"""Which process has the names that others wait for: real sockets, of this process and another."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from regatta.engines.local.scheduling.name_holders import about_holders

HOLD = """
import socket, sys
held = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for one, name in zip(held, sys.argv[1:]):
    one.bind("\\0" + name)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def names() -> Iterator[list[str]]:
    """Five of a run's own; this process holds the first."""
    found = [f"test-{uuid.uuid4()}" for _ in range(5)]
    with ExitStack() as stack:
        stack.enter_context(socket.socket(socket.AF_UNIX)).bind("\0" + found[0])
        yield found


def test_nobody_is_named_for_names_that_are_free(names: list[str]) -> None:
    assert about_holders(names[1:]) == ""
    assert about_holders([]) == ""


def test_a_name_is_held_by_the_process_with_its_socket(names: list[str]) -> None:
    said = about_holders(names)
    assert said.startswith(f"; process {os.getpid()} (")
    assert said.endswith(f", uid {os.getuid()}) holds it")


def test_the_process_that_holds_most_is_named(names: list[str]) -> None:
    command = [sys.executable, "-c", HOLD, *names[1:4]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        said = about_holders(names)
        assert said.startswith(f"; process {other.pid} (python")
        assert said.endswith(") holds 3 of them")
        assert about_holders(names, least=4) == ""
        other.communicate()


CALLED = """
import ctypes
ctypes.CDLL(None).prctl(15, CALLED_WHAT, 0, 0, 0)
"""


@pytest.mark.parametrize(
    ("called", "told"), [(b"\xff\xfe", "\ufffd\ufffd"), (b"\x1b[2J", r"\x1b[2J")]
)
def test_what_a_process_calls_itself_ends_no_turn_and_reaches_no_terminal(
    names: list[str], called: bytes, told: str
) -> None:
    named = CALLED.replace("CALLED_WHAT", repr(called))
    command = [sys.executable, "-c", named + HOLD, *names[1:4]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert about_holders(names).startswith(f"; process {other.pid} ({told}, uid ")
        other.communicate()


def test_a_process_that_holds_fewer_than_are_worth_a_word_is_not_named(names: list[str]) -> None:
    assert about_holders(names, least=2) == ""
