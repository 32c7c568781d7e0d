"""The guardian stays small: one runs for every state folder, for as long as its server does."""

from __future__ import annotations

import subprocess
import sys

from tests.doors import SOURCE

HEAVY = ("json", "typing", "re", "subprocess", "msgspec", "asyncio", "click")


def test_the_guardian_imports_nothing_heavy() -> None:
    probe = f"""
import sys
before = set(sys.modules)
import regatta.daemon.guardian
print(sorted(set({HEAVY}) & (set(sys.modules) - before)))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", probe],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(SOURCE)},
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")
