"""Building the cluster's programs: once, side by side, and with a clear word where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes.controlplane import build as builder
from tests.kubernetes.controlplane.programs import MODULE_LIST, module_of

COMMAND = [sys.executable, "-m", "tests.kubernetes.controlplane.build", "pause"]
CHECKOUT = Path(__file__).parents[3]


@pytest.mark.timeout(1200)  # Go compiles its own library here, on a machine that is busy
def test_two_builders_at_once_build_once_and_leave_no_go_caches(tmp_path: Path) -> None:
    environment = {**os.environ, "REGATTA_TEST_CACHE": str(tmp_path)}
    both = [
        subprocess.Popen(
            COMMAND, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=1100)[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(words.count("compiling pause") for words in said) == 1
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == ["build.lock", f"pause-{module_of('pause').digest()}"]


def test_a_machine_without_go_gets_one_for_the_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GO", raising=False)
    monkeypatch.setattr(builder, "_is_new_enough", lambda _: False)
    go = builder.find_go(tmp_path)
    assert Path(go).is_relative_to(tmp_path)
    assert "go version go1.26" in subprocess.check_output([go, "version"], text=True)


def test_a_go_that_is_named_and_is_none_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GO", "/no/such/go")
    monkeypatch.setenv("REGATTA_TEST_CACHE", str(tmp_path))
    with pytest.raises(builder.CannotBuild, match="GO names /no/such/go"):
        builder.program("pause")


@pytest.mark.parametrize(
    ("said", "compiled"),
    [
        ("fatal error: unexpected signal\\n\\ngoroutine 1 [running]:\\n", 2),
        ("./main.go:3:1: undefined: x\\n", 1),
    ],
    ids=["Go crashed", "it does not compile"],
)
def test_a_build_in_which_go_itself_crashed_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, compiled: int
) -> None:
    """A stand-in for Go, which crashes when nobody asks it to."""
    tries, go = tmp_path / "tries", tmp_path / "go"
    fails = f"echo >>{tries}; [ $(wc -l <{tries}) -gt 1 ] || {{ printf '{said}' >&2; exit 2; }}"
    go.write_text(f'#!/bin/sh\n[ "$1" = build ] || exit 0\n{fails}\n')
    go.chmod(0o755)
    monkeypatch.setenv("GO", str(go))
    monkeypatch.setenv("REGATTA_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(builder, "PAUSE_SECONDS", 0.0)

    if compiled == 1:
        with pytest.raises(builder.CannotBuild, match="undefined: x"):
            builder.build("pause")
    else:
        builder.build("pause")

    assert len(tries.read_text().splitlines()) == compiled


def test_kubebuilder_assets_are_used_where_they_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in builder.ASSETS:
        (tmp_path / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert [builder.program(name) for name in builder.ASSETS] == [
        tmp_path / name for name in builder.ASSETS
    ]
    assert builder.missing("etcd", "kube-apiserver") == []


def test_every_module_has_its_go_mod_and_every_dependency_is_pinned() -> None:
    folders = {entry.parent.name for entry in Path(builder.__file__).parent.glob("*/go.mod")}
    assert folders == {module.name for module in MODULE_LIST}
    for module in MODULE_LIST:
        required = "require" in (module.folder / "go.mod").read_text()
        assert (module.folder / "go.sum").exists() == required


def test_an_unknown_program_is_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"no module or program is called 'minikube'.*kwok"):
        builder.program("minikube")
