"""Start-up time is part of the interface: heavy modules stay out of the common commands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.doors import Regatta

HEAVY = ("pydantic", "rich", "fastapi", "starlette", "uvicorn", "asyncio", "httpx", "yaml",
         "importlib.metadata", "sqlite3")  # fmt: skip

PROBE = """
import sys
from regatta.cli.main import run
code = run(sys.argv[1:])
print("HEAVY", code, *(name for name in {heavy} if name in sys.modules))
"""


@pytest.mark.parametrize("words", [["--help"], ["get"], ["get", "-o", "json"], ["logs", "--help"]])
def test_common_commands_import_nothing_heavy(regatta: Regatta, words: list[str]) -> None:
    regatta("server", "start")

    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY), *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=regatta.environment,
    )

    assert done.stdout.splitlines()[-1] == "HEAVY 0", done


def test_help_names_every_verb(regatta: Regatta) -> None:
    from regatta.cli.main import VERBS

    page = regatta("--help").out

    assert [verb for verb in VERBS if f"\n  {verb} " not in page] == []


def test_every_verb_explains_itself(regatta: Regatta) -> None:
    from regatta.cli.main import VERBS, run

    assert [verb for verb in VERBS if run([verb, "--help"]) != 0] == []
