"""Who serves no team needs no library of a team's: not installed, not imported."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = ("sqlalchemy", "alembic", "psycopg", "argon2")

#: A module that is None in `sys.modules` cannot be imported, as if it were not installed.
PROBE = """
import importlib, pkgutil, sys
for name in {libraries}:
    sys.modules[name] = None
import regatta
TEAM = (
    *("regatta.server.records", "regatta.server.accounts", "regatta.server.team"),
    *("regatta.server.openpai.", "regatta.cli.team_opening", "regatta.cli.team_places"),
)
walk = pkgutil.walk_packages(regatta.__path__, "regatta.", onerror=lambda _: None)
found = [module.name for module in walk]
ours = [name for name in found if not name.startswith((*TEAM, "regatta._inject"))]
for name in ours:
    if not name.endswith("__main__"):
        importlib.import_module(name)
from regatta.cli.main import VERBS, run
codes = {{verb: run([verb, "--help"]) for verb in VERBS}}
print("IMPORTED", len(ours), "FAILED", *(verb for verb, code in codes.items() if code))
"""


def test_every_verb_and_a_server_without_a_team_do_without_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(libraries=LIBRARIES)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()[-1].split()
    assert words[2:] == ["FAILED"]
    assert int(words[1]) > 200
