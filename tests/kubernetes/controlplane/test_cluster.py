"""`make kube-up` and `make kube-down`: a cluster that a person holds, and whose it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def make(target: str, folder: Path, **more: str) -> str:
    said = [f"{name}={value}" for name, value in {"CLUSTER": str(folder), **more}.items()]
    ended = subprocess.run(
        ["make", "--no-print-directory", "-s", target, "NODES=1", *said],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended
    return ended.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


def test_whoever_comes_second_is_told_whose_cluster_it_is(folder: Path) -> None:
    try:
        first = make("kube-up", folder)
        assert first.startswith("Kubernetes ")
        assert f"`make kube-down CLUSTER={folder}` stops it." in first
        ours = make("kube-up", folder)
        assert ours == f"It ran already: this checkout started it.\n{first}"
        state = folder / "cluster.json"
        state.write_text(json.dumps(json.loads(state.read_text()) | {"checkout": "/elsewhere"}))
        theirs = make("kube-up", folder)
        assert theirs.startswith(
            "It ran already: /elsewhere started it; `make kube-up CLUSTER=FOLDER` makes one of "
            "your own.\n"
        )
    finally:
        assert make("kube-down", folder) == "stopped\n"
    assert not folder.exists()
