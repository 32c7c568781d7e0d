"""What a process sees: Kubernetes' rules for variables, and what this machine adds or refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.local.replicas.build import (
    PROGRESS_PATH,
    Placement,
)
from regatta.engines.local.replicas.variables import expand
from tests.engines.local.replicas.pods import a_pod, env_of, problems_of, run_of


def test_only_a_short_list_is_inherited(tmp_path: Path) -> None:
    shell = {
        "PATH": "/bin", "VIRTUAL_ENV": "/v", "HOME": "/h", "USER": "me", "LANG": "C", "LC_ALL": "C",
        "TZ": "UTC", "TMPDIR": "/t", "LD_LIBRARY_PATH": "/l",
        "AWS_SECRET_ACCESS_KEY": "x", "PYTHONPATH": "/mine", "SSH_AUTH_SOCK": "/s",
    }  # fmt: skip
    env = env_of({}, tmp_path, context={"shell": shell})
    assert {k: v for k, v in env.items() if k in shell} == {
        **{k: shell[k] for k in list(shell)[:9]},
        "PYTHONPATH": PROGRESS_PATH,
    }


def test_the_engine_adds_what_training_on_one_machine_needs(tmp_path: Path) -> None:
    env = env_of({}, tmp_path)
    del env["PATH"]
    assert env == {
        "PYTHONUNBUFFERED": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PADDLE_LOG_DIR": "/runs/0/paddle",
        "CUDA_VISIBLE_DEVICES": "",
        "REGATTA_PROGRESS": "/runs/0/progress.jsonl",
        "PYTHONPATH": PROGRESS_PATH,
    }


def test_the_users_own_variables_win_over_all_others(tmp_path: Path) -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "job-env-1"}}],
        "env": [
            {"name": "GLOO_SOCKET_IFNAME", "value": "eth0"},
            {"name": "PADDLE_PORT", "value": "1"},
            {"name": "PYTHONPATH", "value": "/code"},
        ],
    }
    shared = {"job-env-1": {"PADDLE_PORT": "2", "PADDLE_NNODES": "2", "PYTHONUNBUFFERED": "0"}}
    env = env_of(container, tmp_path, environments=shared)
    assert env["GLOO_SOCKET_IFNAME"] == "eth0"
    assert env["PADDLE_PORT"] == "1"
    assert env["PADDLE_NNODES"] == "2"
    assert env["PYTHONUNBUFFERED"] == "0"
    assert env["PYTHONPATH"] == f"{PROGRESS_PATH}:/code"


@pytest.mark.parametrize(
    ("asked", "devices"), [("2", "GPU-a,GPU-b"), (1, "GPU-a"), (None, "")], ids=str
)
def test_a_container_sees_the_gpus_it_asked_for(
    tmp_path: Path, asked: object, devices: str
) -> None:
    container = {"resources": {"limits": {"nvidia.com/gpu": asked}}} if asked else {}
    placement = Placement(address="127.64.0.7", port_base=12340, gpus=("GPU-a", "GPU-b"))
    assert env_of(container, tmp_path, placement=placement)["CUDA_VISIBLE_DEVICES"] == devices


@pytest.mark.parametrize(
    ("env", "runtime", "devices"),
    [
        ({"PAI_TASK_INDEX": "0"}, "none", "GPU-a,GPU-b"),
        ({"PAI_TASK_INDEX": "0", "CUDA_VISIBLE_DEVICES": "GPU-b"}, "none", "GPU-b"),
        ({"PAI_TASK_INDEX": "0", "NVIDIA_VISIBLE_DEVICES": "all"}, "none", "all"),
        ({"PAI_TASK_INDEX": "0"}, "podman", None),
        ({"PADDLE_TRAINER_ID": "0"}, "none", None),
    ],
    ids=["a task", "its own choice", "its own word", "its container is told", "no task"],
)
def test_a_task_knows_its_gpus_by_openpais_name_too(
    tmp_path: Path, env: dict[str, str], runtime: str, devices: str | None
) -> None:
    container = {
        "image": "x",
        "resources": {"limits": {"nvidia.com/gpu": 2}},
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    placement = Placement(address="127.64.0.7", port_base=12340, gpus=("GPU-a", "GPU-b"))
    run = run_of(a_pod(container), tmp_path, placement=placement, context={"runtime": runtime})
    assert run.containers[0].sees.get("NVIDIA_VISIBLE_DEVICES") == devices


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("100$$", "100$"),
    ],
)
def test_variables_expand_as_kubernetes_expands_them(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def test_variables_that_double_are_refused_before_they_take_all_memory(tmp_path: Path) -> None:
    doubled = [{"name": f"B{n + 1}", "value": f"$(B{n})$(B{n})"} for n in range(60)]
    found = problems_of(a_pod({"env": [{"name": "B0", "value": "vv"}, *doubled]}), tmp_path)
    first = next(iter(found))
    assert first == "spec.containers[0].env[B16].value"
    assert "longer than the 131,071 bytes that Linux gives" in found[first]


@pytest.mark.parametrize("key", ["env", "command", "args"])
def test_many_that_are_long_are_refused_as_well(tmp_path: Path, key: str) -> None:
    a = {"name": "A", "value": "x" * 100_000}
    many = [{"name": f"B{n}", "value": "$(A)"} for n in range(30_000)]
    container = {"env": [a, *many]} if key == "env" else {"env": [a], key: ["$(A)"] * 30_000}
    found = problems_of(a_pod(container), tmp_path)
    assert "more than the 6 MiB that Linux gives a program" in found[f"spec.containers[0].{key}"]


@pytest.mark.parametrize("key", ["command", "args"])
def test_a_word_that_is_too_long_once_it_is_expanded_is_named(tmp_path: Path, key: str) -> None:
    container = {"env": [{"name": "A", "value": "x" * 70_000}], key: ["echo", "$(A)$(A)"]}
    assert list(problems_of(a_pod(container), tmp_path)) == [f"spec.containers[0].{key}[1]"]


def test_so_is_the_path_in_a_volume(tmp_path: Path) -> None:
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "$(A)$(A)"}
    env = [{"name": "A", "value": "x" * 70_000}]
    pod = a_pod({"env": env, "volumeMounts": [mount]}, volumes=[{"name": "v", "emptyDir": {}}])
    assert "spec.containers[0].volumeMounts[0].subPathExpr" in problems_of(pod, tmp_path)


def test_a_variable_sees_those_before_it_and_the_command_sees_all(tmp_path: Path) -> None:
    container = {
        "env": [
            {"name": "EARLY", "value": "$(LATE)"},
            {"name": "LATE", "value": "l"},
            {"name": "LAST", "value": "$(LATE)$(POD)"},
        ],
        "envFrom": [{"configMapRef": {"name": "e"}}],
        "command": ["echo", "$(LAST)"],
        "args": ["$(POD)", "$(PATH)"],
    }
    process = run_of(a_pod(container), tmp_path, environments={"e": {"POD": "p"}}).containers[0]
    assert process.env["EARLY"] == "$(LATE)"
    assert process.env["LAST"] == "lp"
    assert process.argv == ("echo", "lp", "p", "$(PATH)")  # the image's PATH is not known either


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "job-worker-0"),
        ({"fieldRef": {"fieldPath": "metadata.namespace"}}, "team"),
        ({"fieldRef": {"fieldPath": "metadata.uid"}}, "u-1"),
        ({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "ctr"),
        ({"fieldRef": {"fieldPath": "metadata.labels['none']"}}, ""),
        ({"fieldRef": {"fieldPath": "metadata.annotations['note']"}}, "x"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.64.0.7"),
        ({"fieldRef": {"fieldPath": "status.hostIP"}}, "127.64.0.7"),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, os.uname().nodename),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}, "500"),
        ({"resourceFieldRef": {"resource": "limits.memory"}}, str(2**30)),
        ({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "1024"),
    ],
    ids=str,
)
def test_a_pod_can_ask_about_itself(tmp_path: Path, source: dict[str, Any], value: str) -> None:
    container = {
        "env": [{"name": "X", "valueFrom": source}],
        "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
    }
    assert env_of(container, tmp_path)["X"] == value


@pytest.mark.parametrize(
    ("container", "path"),
    [
        (
            {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            "spec.containers[0].env[X].valueFrom.secretKeyRef",
        ),
        (
            {"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]},
            "spec.containers[0].env[X].valueFrom.configMapKeyRef",
        ),
        (
            {"envFrom": [{"configMapRef": {"name": "job-env-1"}}, {"configMapRef": {"name": "c"}}]},
            "spec.containers[0].envFrom[0].configMapRef",
        ),
        ({"envFrom": [{"secretRef": {"name": "s"}}]}, "spec.containers[0].envFrom[0].secretRef"),
    ],
    ids=["secret key", "config map key", "config map", "secret"],
)
def test_references_that_lead_nowhere_here_say_what_to_write_instead(
    tmp_path: Path, container: dict[str, Any], path: str
) -> None:
    problems = problems_of(a_pod(container), tmp_path, environments={"job-env-1": {}})
    assert list(problems) == [path]
    assert "--env NAME=VALUE" in problems[path]


def test_optional_references_are_left_out(tmp_path: Path) -> None:
    reference = {"name": "s", "key": "k", "optional": True}
    container = {
        "env": [{"name": "X", "valueFrom": {"secretKeyRef": reference}}],
        "envFrom": [{"configMapRef": {"name": "c", "optional": True}}],
    }
    assert "X" not in env_of(container, tmp_path)


def test_an_unknown_field_names_those_that_are_known(tmp_path: Path) -> None:
    container = {"env": [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "spec.color"}}}]}
    (message,) = problems_of(a_pod(container), tmp_path).values()
    assert "metadata.name" in message
