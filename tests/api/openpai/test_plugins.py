"""What runs around a role's commands, and in which order."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import InvalidConfig
from tests.api.openpai.configs import converted, task, v2, warnings, words
from tests.api.openpai.test_conversion_files import good

PLUGINS = "com.microsoft.pai.runtimeplugin"


def cmd(name: str, **fields: Any) -> dict[str, Any]:
    parameters = {"preCommands": [f"before {name}"], "postCommands": [f"after {name}"]}
    return {"plugin": "cmd", "parameters": parameters, **fields}


def lines(config: dict[str, Any]) -> list[str]:
    return words(config)[-1].split("\n")


def test_plugins_stand_around_the_deployment_which_stands_around_the_commands() -> None:
    config = v2(
        "run",
        deployments=[
            {
                "name": "d",
                "taskRoles": {"main": {"preCommands": ["pre"], "postCommands": ["post"]}},
            }
        ],
        defaults={"deployment": "d"},
        extras={PLUGINS: [cmd("a"), cmd("b")]},
    )
    assert lines(config) == [
        "before a",
        "before b",
        "pre",
        "run",
        "post",
        "after b",
        "after a",
    ]


def test_prerequisites_come_after_those_they_require_and_end_before_them() -> None:
    made = good("v2-callbacks").document["spec"]["tasks"][0]
    script = made["template"]["spec"]["containers"][0]["command"][-1]
    assert script.split("\n") == [
        "mount /data",
        "set +o errexit",
        "cp /data/model .",
        "ls",
        "set -o errexit",
        "python train.py",
        "set +o errexit",
        "cp model /data/",
        "set -o errexit",
        "umount /data",
    ]


def test_prerequisites_that_require_each_other_each_run_once() -> None:
    def one(name: str, other: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": "data",
            "plugin": f"{PLUGINS}.cmd",
            "require": [other],
            "callbacks": [{"event": "taskStarts", "commands": [f"start {name}"]}],
        }

    config = v2("run", role={"data": "a"}, prerequisites=[one("a", "b"), one("b", "a")])
    assert lines(config) == ["start b", "start a", "run"]


def test_a_plugin_may_be_for_some_roles_only() -> None:
    config = v2("run", extras={PLUGINS: [cmd("a", taskroles=["main"]), cmd("b", taskroles=[])]})
    assert lines(config) == ["before a", "run", "after a"]


def test_a_plugin_may_have_callbacks() -> None:
    callbacks = [
        {"event": "taskSucceeds", "commands": ["end"]},
        {"event": "taskStarts", "commands": ["begin", "go on"]},
    ]
    config = v2(
        "run", extras={PLUGINS: [{"plugin": "cmd", "parameters": {"callbacks": callbacks}}]}
    )
    assert lines(config) == ["begin", "go on", "run", "end"]


@pytest.mark.parametrize(("policy", "status", "out"), [("ignore", 0, "ran\n"), ("fail", 1, "")])
def test_a_failure_before_the_command_is_forgiven_only_on_request(
    policy: str, status: int, out: str
) -> None:
    plugin = {"plugin": "cmd", "parameters": {"preCommands": ["false"]}, "failurePolicy": policy}
    built = words(v2("echo ran", extras={PLUGINS: [plugin]}))
    done = subprocess.run(built, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (status, out)


def test_after_what_is_forgiven_a_failure_ends_the_task_again() -> None:
    plugin = {"plugin": "cmd", "parameters": {"preCommands": ["false"]}, "failurePolicy": "ignore"}
    built = words(v2("false", "echo ran", extras={PLUGINS: [plugin]}))
    done = subprocess.run(built, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stdout) == (1, "")


def clone_of(**parameters: Any) -> str:
    config = v2("run", extras={PLUGINS: [{"plugin": "git", "parameters": parameters}]})
    first, last = lines(config)
    assert last == "run"
    return first


def git(*words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_a_repository_is_cloned_first_and_options_are_no_commands() -> None:
    made = clone_of(repo_uri="https://h/r;ls", options=["-b", "my branch"], clone_dir="/c/")
    assert made.startswith("[ -e /c/.git ] || ")
    assert "git clone -b 'my branch' -- 'https://h/r;ls' " in made
    assert clone_of(repo_uri="https://h/r.git").startswith("[ -e /usr/local/pai/code/.git ] || ")


def test_tasks_that_share_a_folder_find_it_whole_there(tmp_path: Path) -> None:
    repository = tmp_path / "its repo"
    git("init", str(repository))
    (repository / "version").write_text("1")
    git("-C", str(repository), "add", ".")
    git("-C", str(repository), "commit", "-m", "one")
    folder = tmp_path / "of tasks" / "clone"
    script = clone_of(repo_uri=f"file://{repository}", clone_dir=str(folder))
    script += f"; cat {shlex.quote(str(folder))}/version"

    tasks = [
        subprocess.Popen(["bash", "-eu", "-c", script], stdout=subprocess.PIPE) for _ in range(4)
    ]

    assert [task.communicate()[0] for task in tasks] == [b"1"] * 4
    assert [path.name for path in folder.parent.iterdir()] == ["clone"]


def test_a_repository_that_cannot_be_had_leaves_nothing(tmp_path: Path) -> None:
    script = clone_of(repo_uri=f"file://{tmp_path}/none", clone_dir=str(tmp_path / "clone"))
    ended = subprocess.run(["bash", "-eu", "-c", f"{script}; echo ran"], capture_output=True)
    assert ended.returncode != 0
    assert ended.stdout == b""
    assert list(tmp_path.iterdir()) == []


def test_a_prerequisite_of_an_unknown_plugin_is_told_and_does_nothing() -> None:
    told = {problem.path: problem.severity for problem in good("v2-callbacks").warnings}
    assert told == {"prerequisites[3].plugin": "warning"}


MISTAKES = {
    f"extras[{PLUGINS}][0].parameters.repo_uri": {"plugin": "git"},
    f"extras[{PLUGINS}][0].parameters.callbacks[0]": {
        "plugin": "cmd",
        "parameters": {"callbacks": [None]},
    },
    f"extras[{PLUGINS}][0].parameters.callbacks[0].commands[0]": {
        "plugin": "cmd",
        "parameters": {
            "callbacks": [{"event": "taskStarts", "commands": ["echo <% $secrets.x %>"]}]
        },
    },
    f"extras[{PLUGINS}][0].parameters.preCommands[1]": {
        "plugin": "cmd",
        "parameters": {"preCommands": ["ls", "echo <% $secrets.x %>"]},
    },
}


@pytest.mark.parametrize(("path", "plugin"), MISTAKES.items())
def test_a_mistake_in_a_plugin_is_told_at_its_place(path: str, plugin: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        converted(v2(extras={PLUGINS: [plugin]}))
    assert [problem.path for problem in caught.value.problems] == [path]


def test_a_plugin_that_says_nothing_does_nothing() -> None:
    assert lines(v2("run", extras={PLUGINS: [{"plugin": "cmd", "failurePolicy": "ignore"}]})) == [
        "run"
    ]


def test_templates_in_plugins_are_rendered_too() -> None:
    plugin = {"plugin": "cmd", "parameters": {"preCommands": ["echo <% $parameters.a %>"]}}
    assert lines(v2("run", parameters={"a": 1}, extras={PLUGINS: [plugin]})) == ["echo 1", "run"]


def test_what_is_not_available_is_told_and_the_job_is_as_without_it() -> None:
    named = ["ssh", "tensorboard", "teamwise_storage", "comd", "other"]
    config = v2(
        "run", extras={PLUGINS: [{"plugin": name, "parameters": {"a": 1}} for name in named]}
    )
    told = warnings(config)
    assert list(told) == [f"extras[{PLUGINS}][{i}].plugin" for i in range(5)]
    assert "no ssh between tasks" in told[f"extras[{PLUGINS}][0].plugin"]
    assert "did you mean cmd?" in told[f"extras[{PLUGINS}][3].plugin"]
    assert task(config) == task(v2("run"))
