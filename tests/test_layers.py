"""The import contracts hold, and each of them can be broken: a planted import is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT = Path(sys.executable).with_name("lint-imports")

#: For every contract, a module of ours and an import that must not stand in it.
PLANTED = {
    "layers": ("engines/base.py", "import regatta.client"),
    "brain": ("controller/judge.py", "import time"),
    "engines-apart": ("engines/local/apply.py", "import regatta.engines.kubernetes.objects"),
    "shared-ground": ("engines/preview.py", "import regatta.engines.local.home"),
    "cluster-layers": (
        "engines/kubernetes/operator/apply.py",
        "import regatta.engines.kubernetes.engine.engine",
    ),
    "cluster-api": ("engines/kubernetes/cache/informer.py", "import regatta.api.job"),
    "server-and-client": ("server/app.py", "import regatta.client.engine"),
    "team-libraries": ("server/app.py", "import sqlalchemy"),
    "supervisor": ("engines/local/supervisor/pump.py", "import regatta.api.job"),
}


def contracts() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [contract["id"] for contract in settings["tool"]["importlinter"]["contracts"]]


def test_every_contract_has_an_import_that_would_break_it() -> None:
    assert sorted(PLANTED) == sorted(contracts())


@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_import_breaks_its_contract(contract: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src/regatta", tmp_path / "regatta", ignore=_no_caches)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert _lint(tmp_path, contract).returncode == 0
    module, line = PLANTED[contract]
    with (tmp_path / "regatta" / module).open("a") as file:
        file.write(f"\n{line}\n")
    broken = _lint(tmp_path, contract)
    assert broken.returncode == 1, broken.stdout
    assert "1 broken" in broken.stdout


def _lint(folder: Path, contract: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache", "--contract", contract],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


def _no_caches(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
