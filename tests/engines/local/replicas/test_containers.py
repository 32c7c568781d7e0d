"""The command lines that run an image, and remove what is left of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regatta.engines.local.replicas import containers
from regatta.engines.local.replicas.containers import (
    container_name,
    init_options,
    out_of_memory_argv,
    pull_word,
    remove_argv,
    remove_containers,
    run_argv,
)
from regatta.engines.local.replicas.runspec import Mount, Process, RunSpec, encode_run


def options(runtime: str = "docker", **more: object) -> tuple[str, ...]:
    """Of the command line, what these words add to one without."""
    plain = run_argv(runtime, name="n", image="i", env={})
    given = run_argv(runtime, **{"name": "n", "image": "i", "env": {}, **more})  # type: ignore[arg-type]
    assert given[: len(plain) - 1] == plain[:-1]
    assert given[-1] == plain[-1]
    return given[len(plain) - 1 : -1]


def test_an_image_with_its_own_program_gets_only_the_arguments() -> None:
    argv = run_argv("podman", name="n", image="i", env={}, args=["--epochs", "2"])
    assert argv == (
        "podman", "run", "--network", "host", "--name", "n", "--pull", "missing",
        "--log-driver", "none", "--stop-timeout", "0", "--http-proxy=false", "i", "--epochs", "2",
    )  # fmt: skip


def test_a_command_replaces_the_images_program() -> None:
    argv = run_argv("docker", name="n", image="i", env={}, command=["python", "-u"], args=["x.py"])
    assert argv[-5:] == ("--entrypoint", "python", "i", "-u", "x.py")


def test_variables_and_mounts_are_passed_on() -> None:
    mounts = [
        Mount(source="/a:b", target="/data", read_only=True),
        Mount(source="/out", target="/out"),
    ]
    assert options(env={"A": "x=y z"}, mounts=mounts) == (
        "--env", "A=x=y z",
        "--mount", "type=bind,source=/a:b,target=/data,readonly",
        "--mount", "type=bind,source=/out,target=/out",
    )  # fmt: skip


def test_a_secret_is_passed_by_its_name_alone() -> None:
    assert options(passed=["TOKEN"]) == ("--env", "TOKEN")


def test_each_runtime_has_its_own_word_for_gpus() -> None:
    assert options("docker", gpus=["0", "3"]) == ("--gpus", '"device=0,3"')
    podman = ("--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=3")
    assert options("podman", gpus=["0", "3"]) == podman


CORES = os.cpu_count() or 1
LIMITS = {
    "none": ({}, ()),
    "half a core": ({"cpu": "500m"}, ("--cpus", "0.5")),
    "more cores than there are": ({"cpu": 4096}, ("--cpus", str(CORES))),
    "less than a runtime takes": ({"cpu": "1m"}, ("--cpus", "0.01")),
    "nothing, which is no limit": ({"cpu": 0, "memory": "0"}, ()),
    "memory, and no swap": ({"memory": "1Ki"}, ("--memory", "1024", "--memory-swap", "1024")),
    "GPUs, which are no such limit": ({"nvidia.com/gpu": 1}, ()),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS.values(), ids=list(LIMITS))
def test_limits_are_the_containers(case: tuple[dict[str, object], tuple[str, ...]]) -> None:
    limits, expected = case
    assert options(limits=limits) == expected


def test_when_to_pull_is_said_in_the_runtimes_words() -> None:
    said = {None: "missing", "IfNotPresent": "missing", "Always": "always", "Never": "never"}
    assert {policy: pull_word(policy) for policy in said} == said


def test_podman_has_an_init_where_its_own_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_PODMANS_FOLDERS", (str(tmp_path / "libexec"),))
    (tmp_path / "libexec").mkdir()
    assert init_options("podman", str(tmp_path)) == ()
    assert init_options("docker", str(tmp_path)) == ("--init",)
    init = tmp_path / "libexec/catatonit"
    init.touch(mode=0o755)
    found = init_options("podman", str(tmp_path))
    assert found == ("--init", "--init-path", str(init))
    assert "--init" in run_argv("podman", name="n", image="i", env={}, init=found)


def test_a_container_is_found_again_by_its_run() -> None:
    name = container_name("uid/2", "main")
    assert name == "regatta-uid-2-main"
    assert remove_argv("docker", name) == ("docker", "rm", "--force", name)
    assert out_of_memory_argv("docker", name)[-1] == name


def a_run(folder: Path, *cleanup: str) -> Path:
    process = Process(name="main", argv=("true",), env={}, cwd="/", cleanup=cleanup)
    file = folder / "run.json"
    spec = RunSpec(run_id="u/1", pod="p", folder="/nowhere", init=(process,), containers=(process,))
    file.write_bytes(encode_run(spec))
    return file


def test_what_a_run_left_in_its_runtime_is_removed(tmp_path: Path) -> None:
    remove_containers(a_run(tmp_path, "sh", "-c", f"echo removed >> {tmp_path}/removed"))
    assert (tmp_path / "removed").read_text() == "removed\n" * 2  # of the init container, too


def test_a_removal_that_fails_at_first_is_tried_again(tmp_path: Path) -> None:
    tries = f"echo try >> {tmp_path}/tries; [ $(grep -c try {tmp_path}/tries) -gt 1 ]"
    process = Process(name="main", argv=("true",), env={}, cwd="/", cleanup=("sh", "-c", tries))
    file = tmp_path / "run.json"
    file.write_bytes(
        encode_run(RunSpec(run_id="u/1", pod="p", folder="/nowhere", containers=(process,)))
    )
    remove_containers(file)
    assert (tmp_path / "tries").read_text() == "try\n" * 2


def test_a_runtime_that_is_gone_or_hangs_does_not_keep_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_REMOVAL_SECONDS", 0.2)
    remove_containers(a_run(tmp_path, "no-such-runtime", "rm"))
    remove_containers(a_run(tmp_path, "sleep", "600"))
    remove_containers(tmp_path / "no-such-file")
