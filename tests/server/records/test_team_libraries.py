"""Who serves no team needs no library of a team's: not installed, not imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


#: A server in its own process, which says once it answers what it has imported of a team's.
SERVING = """
import os, signal, sys, threading, time
from regatta.daemon.find import answering, local_files

def tell():
    while answering(local_files()) is None:
        time.sleep(0.02)
    team = ("regatta.server.records", "regatta.server.accounts", "regatta.server.team")
    team += ("regatta.server.openpai", "regatta.cli.team_opening", *{libraries})
    found = [name for name in sys.modules if name.startswith(team)]
    print("IMPORTED", len(sys.modules) > 300, *found, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=tell, daemon=True).start()
{serve}
"""
DOORS = {
    "in the foreground": "from regatta.cli.main import run; sys.exit(run(['serve']))",
    "in the background": "from regatta.server.run import main; sys.exit(main())",
}


@pytest.mark.parametrize("door", DOORS)
def test_a_server_for_one_person_imports_nothing_of_a_teams(tmp_path: Path, door: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVING.format(libraries=LIBRARIES, serve=DOORS[door])],
        env={**os.environ, "REGATTA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "IMPORTED True\n" in done.stdout, (done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
