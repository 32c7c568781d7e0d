"""From a pod to processes: Kubernetes' rules, and what this machine adds or refuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.local.replicas.build import Placement
from regatta.engines.local.submit.ignored import list_ignored
from tests.engines.local.replicas.pods import a_pod, problems_of, run_of

# -- what runs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"command": ["python", "train.py"]}, ["sys", "train.py"]),
        ({"command": ["python3"], "args": ["-m", "x"]}, ["sys", "-m", "x"]),
        ({"command": ["./run.sh"]}, ["./run.sh"]),
    ],
    ids=str,
)
def test_python_is_the_jobs_interpreter(
    tmp_path: Path, container: dict[str, Any], words: list[str]
) -> None:
    process = run_of(a_pod(container), tmp_path, context={"python": sys.executable}).containers[0]
    assert list(process.argv) == [sys.executable if word == "sys" else word for word in words]
    assert process.env["PATH"].startswith(os.path.dirname(sys.executable) + ":")


def test_python_is_otherwise_the_shells_under_either_name(tmp_path: Path) -> None:
    only_three = tmp_path / "bin"
    only_three.mkdir()
    (only_three / "python3").symlink_to(sys.executable)
    pod = a_pod({"command": ["python", "x.py"]})
    process = run_of(pod, tmp_path, context={"shell": {"PATH": str(only_three)}}).containers[0]
    assert process.argv == (str(only_three / "python3"), "x.py")


def test_a_relative_interpreter_is_seen_from_the_jobs_directory(tmp_path: Path) -> None:
    pod = a_pod({"command": ["python"]})
    process = run_of(pod, tmp_path, context={"python": ".venv/bin/python"}).containers[0]
    assert process.argv == (f"{tmp_path}/.venv/bin/python",)


@pytest.mark.parametrize(
    "container", [{"command": None, "image": "paddle:2.6"}, {"command": None, "args": ["x"]}]
)
def test_a_pod_without_a_command_is_told_what_to_add(
    tmp_path: Path, container: dict[str, Any]
) -> None:
    problems = problems_of(a_pod(container), tmp_path)
    assert list(problems) == ["spec.containers[0].command"]
    message = problems["spec.containers[0].command"]
    assert "write command in the file, say it with --command" in message
    assert "--runtime docker" in message


@pytest.mark.parametrize(
    ("working_dir", "expected"), [(None, "."), ("sub", "sub"), ("./sub/../sub", "sub")]
)
def test_the_working_directory_is_the_jobs_unless_said(
    tmp_path: Path, working_dir: str | None, expected: str
) -> None:
    (tmp_path / "sub").mkdir()
    container = {"workingDir": working_dir} if working_dir else {}
    process = run_of(a_pod(container), tmp_path).containers[0]
    assert process.cwd == os.path.normpath(tmp_path / expected)


def test_a_working_directory_that_is_not_there_is_a_problem_unless_it_is_mounted(
    tmp_path: Path,
) -> None:
    container: dict[str, Any] = {"workingDir": "/no/such/code/here"}
    assert "spec.containers[0].workingDir" in problems_of(a_pod(container), tmp_path)
    container["volumeMounts"] = [{"name": "code", "mountPath": "/no/such/code"}]
    pod = a_pod(container, volumes=[{"name": "code", "emptyDir": {}}])
    assert run_of(pod, tmp_path).containers[0].cwd == "/no/such/code/here"


@pytest.mark.parametrize("working_dir", [None, "sub"])
def test_a_job_directory_that_is_not_there_is_blamed_on_the_option_that_named_it(
    tmp_path: Path, working_dir: str | None
) -> None:
    container = {"workingDir": working_dir} if working_dir else {}
    gone = tmp_path / "gone"
    (message,) = problems_of(a_pod(container), gone).values()
    assert set(problems_of(a_pod(container), gone)) == {"--workdir"}
    assert message.startswith(f"{gone} is not there; name the folder")


def test_a_job_directory_that_nobody_needs_may_be_missing(tmp_path: Path) -> None:
    process = run_of(a_pod({"workingDir": str(tmp_path)}), tmp_path / "gone").containers[0]
    assert process.cwd == str(tmp_path)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    container = {
        "command": None,
        "workingDir": "/no/such",
        "envFrom": [{"secretRef": {"name": "s"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    pod = a_pod(container, volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    assert set(problems_of(pod, tmp_path)) == {
        "spec.containers[0].command",
        "spec.containers[0].workingDir",
        "spec.containers[0].envFrom[0].secretRef",
        "spec.volumes[0].secret",
    }


def test_init_containers_sidecars_and_containers_find_their_places(tmp_path: Path) -> None:
    pod = a_pod(
        initContainers=[
            {"name": "fetch", "command": ["a"]},
            {"name": "proxy", "command": ["b"], "restartPolicy": "Always"},
        ]
    )
    pod["spec"]["containers"].append({"name": "second", "command": ["c"]})
    run = run_of(pod, tmp_path)
    assert [process.name for process in run.init] == ["fetch"]
    assert [process.name for process in run.containers] == ["main", "second", "proxy"]


def test_a_run_holds_its_ports_and_gpus_and_knows_its_pod(tmp_path: Path) -> None:
    placement = Placement(address="127.64.0.1", port_base=20000, gpus=("0",))
    pod = a_pod(restartPolicy="OnFailure", terminationGracePeriodSeconds=5)
    run = run_of(pod, tmp_path, placement=placement)
    assert (run.run_id, run.pod, run.restart_policy, run.grace_seconds) == (
        "u-1/3", "job-worker-0", "OnFailure", 5.0,
    )  # fmt: skip
    assert [hold.name for hold in run.holds] == ["regatta-ports-20000", "regatta-gpu-0"]


def test_a_pod_without_containers_is_a_problem(tmp_path: Path) -> None:
    assert "spec.containers" in problems_of({"metadata": {}, "spec": {}}, tmp_path)


# -- images -----------------------------------------------------------------------------------


def test_with_a_container_runtime_the_image_runs(tmp_path: Path) -> None:
    container = {
        "image": "paddle:2.6",
        "command": ["python"],
        "args": ["train.py"],
        "env": [{"name": "A", "value": "b"}],
        "workingDir": "/code",
    }
    process = run_of(a_pod(container), tmp_path, context={"runtime": "docker"}).containers[0]
    argv = list(process.argv)
    assert argv[:4] == ["docker", "run", "--network", "host"]
    assert "--init" in argv
    assert argv[-2:] == ["paddle:2.6", "train.py"]
    assert argv[argv.index("--entrypoint") + 1] == "python"
    assert argv[argv.index("--workdir") + 1] == "/code"
    given = {argv[n + 1].split("=")[0] for n, word in enumerate(argv) if word == "--env"}
    assert {"A", "REGATTA_RUN", "REGATTA_PROGRESS", "PYTHONPATH"} <= given
    assert "PATH" not in given
    name = argv[argv.index("--name") + 1]
    assert process.cleanup == ("docker", "rm", "--force", name)
    assert process.mounts == ()


def test_the_runtimes_client_has_its_settings_of_the_shell_and_the_container_has_not(
    tmp_path: Path,
) -> None:
    shell = {
        "PATH": "/bin", "HOME": "/home/me", "SECRET": "x", "http_proxy": "p", "DOCKER_HOST": "d",
        "CONTAINERS_CONF": "c", "CONTAINER_HOST": "h", "XDG_RUNTIME_DIR": "r",
    }  # fmt: skip
    pod = a_pod({"image": "hello"})
    process = run_of(pod, tmp_path, context={"runtime": "podman", "shell": shell}).containers[0]
    assert process.env == {name: value for name, value in shell.items() if name != "SECRET"}
    assert not set(shell) & set(process.sees)
    without = run_of(pod, tmp_path, context={"runtime": "podman"}).containers[0]
    assert "PATH" not in without.sees
    assert without.env["PATH"]


def test_a_container_counts_its_own_gpus_from_zero(tmp_path: Path) -> None:
    pod = a_pod({"image": "hello", "resources": {"limits": {"nvidia.com/gpu": 2}}})
    placement = Placement(address="127.64.0.7", port_base=12340, gpus=("2", "3"))
    run = run_of(pod, tmp_path, context={"runtime": "docker"}, placement=placement)
    process = run.containers[0]
    assert '"device=2,3"' in process.argv
    assert process.sees["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_a_container_has_the_limits_and_the_pull_policy_of_the_pod(tmp_path: Path) -> None:
    container = {
        "image": "hello",
        "imagePullPolicy": "Never",
        "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Mi"}},
    }
    process = run_of(a_pod(container), tmp_path, context={"runtime": "podman"}).containers[0]
    assert process.container is not None
    assert (process.container.memory_limit, process.container.pull) == ("1Gi", "never")
    argv = process.argv
    assert argv[argv.index("--memory") + 1] == str(1 << 30)
    assert argv[argv.index("--pull") + 1] == "never"


def test_an_image_alone_is_enough_with_a_container_runtime(tmp_path: Path) -> None:
    pod = a_pod({"command": None, "image": "hello"})
    argv = run_of(pod, tmp_path, context={"runtime": "podman"}).containers[0].argv
    assert argv[0] == "podman"
    assert argv[-1] == "hello"


def test_without_an_image_a_container_runtime_has_nothing_to_run(tmp_path: Path) -> None:
    problems = problems_of(a_pod(), tmp_path, context={"runtime": "docker"})
    assert list(problems) == ["spec.containers[0].image"]


# -- what is ignored --------------------------------------------------------------------------


def test_what_has_no_meaning_here_is_listed() -> None:
    pod = a_pod(
        {
            "image": "x",
            "imagePullPolicy": "Never",
            "livenessProbe": {"exec": {}},
            "lifecycle": {"preStop": {}},
        },
        nodeSelector={"gpu": "a100"},
        tolerations=[{"key": "k"}],
        restartPolicy="Never",
    )
    assert list_ignored(pod) == [
        "spec.nodeSelector",
        "spec.tolerations",
        "spec.containers[0].image",
        "spec.containers[0].imagePullPolicy",
        "spec.containers[0].lifecycle",
        "spec.containers[0].livenessProbe",
    ]
    with_runtime = list_ignored(pod, runtime="docker")
    assert not [path for path in with_runtime if "image" in path]


def test_a_plain_pod_ignores_nothing() -> None:
    assert list_ignored(a_pod()) == []
