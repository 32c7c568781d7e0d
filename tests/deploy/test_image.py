"""The `regatta` command with nothing but what the operator's image installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import files
from pathlib import Path

import pytest

import regatta

ROOT = Path(__file__).parents[2]
SOURCE = Path(regatta.__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of requirements/operator.txt, and no others."""
    return _folder_of("operator", tmp_path_factory.mktemp("site-packages"))


@pytest.fixture(scope="module")
def for_a_team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of requirements/team-server.txt."""
    return _folder_of("team-server", tmp_path_factory.mktemp("site-packages"))


def _folder_of(parts: str, folder: Path) -> Path:
    text = (ROOT / f"requirements/{parts}.txt").read_text()
    locked = re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==(?!.*win32)", text, re.M)
    assert "click" in locked
    for name in locked:
        for file in files(name) or ():
            first = file.parts[0]
            if first != ".." and not (folder / first).is_symlink():
                (folder / first).symlink_to(Path(sysconfig.get_path("purelib"), first))
    return folder


def command(
    installed: Path, home: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-m", "regatta.cli.main", *arguments],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{SOURCE}:{installed}",
            "HOME": str(home),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("verb", [["submit", "job.yaml"], ["get"], ["serve"], ["server", "start"]])
def test_without_a_server_s_parts_a_command_says_what_to_set_or_install(
    installed: Path, tmp_path: Path, verb: list[str]
) -> None:
    (tmp_path / "job.yaml").write_text((ROOT / "deploy/examples/resnet.yaml").read_text())
    arguments = [str(tmp_path / word) if word == "job.yaml" else word for word in verb]
    ended = command(installed, tmp_path, *arguments)
    assert ended.returncode == 5, ended
    assert ended.stderr == (
        "error: this installation cannot run a server of its own: fastapi, uvicorn are not "
        "installed. Set REGATTA_ENGINE=kubernetes to run jobs on a cluster, or REGATTA_SERVER to "
        "the address of a server; `pip install regatta-train` installs what is missing.\n"
    )


def test_there_a_cluster_can_be_spoken_to(installed: Path, tmp_path: Path) -> None:
    ended = command(installed, tmp_path, "get", REGATTA_ENGINE="kubernetes")
    assert ended.returncode == 2, ended
    assert ended.stderr.startswith("error: there is no kubeconfig"), ended


def test_the_image_means_a_cluster() -> None:
    final = (ROOT / "Dockerfile").read_text().rpartition("FROM ")[2]
    assert re.search(r"\bREGATTA_ENGINE=kubernetes\b", final)


IMPORT_ALL = """
import importlib, pkgutil, regatta.engines.kubernetes, regatta.server
for package in (regatta.engines.kubernetes, regatta.server):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".migrations." not in found.name:  # Alembic runs those
            importlib.import_module(found.name)
print("all of it")
"""


def test_a_teams_image_has_all_that_its_server_imports(for_a_team: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-S", "-c", IMPORT_ALL],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCE}:{for_a_team}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("all of it\n", 0), ended.stderr


def test_what_is_built_is_what_the_manifests_name() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for parts in ("operator", "team-server"):
        manifest = (ROOT / f"deploy/v1/{parts}.yaml").read_text()
        (image,) = re.findall(r"image: (\S+)", manifest)
        assert f"-t {image} " in text
    assert re.search(r"^ARG PARTS=operator$", text, re.M)
