"""What only v2 has: prerequisites by type, deployments by name, gangs, and what it cannot have."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.errors import InvalidConfig
from regatta.controller.environment.references import expand
from tests.api.openpai.configs import container, converted, v2, warnings, words
from tests.api.openpai.test_conversion_files import good

RESOURCES = {"cpu": 1, "memoryMB": 512, "gpu": 0}


def problems(config: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        converted(config)
    return [problem.path for problem in caught.value.problems]


def test_templates_refer_to_what_the_role_chose() -> None:
    made = good("v2-parameters").document["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert expand(made["command"][-1], {}).split("\n") == [
        "git clone -b main http://git.example/repo repo",
        "wget http://files.example/a http://files.example/b",
        "python repo/train.py --epochs 10 --rate 0.1 --verbose=true --first 64 --name deep "
        "--out /mnt/results",
        "echo '<% $parameters.unknown %> <% $parameters.layers %>'",
    ]


def test_prerequisites_of_one_name_differ_by_type() -> None:
    config = v2(
        "echo <% $data.uri[0] %> <% $output.failurePolicy %> <% $data.auth.username %>",
        role={"data": "image", "output": "image"},
        prerequisites=[
            {"type": "data", "name": "image", "uri": ["d"], "auth": {"username": "u"}},
            {"type": "output", "name": "image", "uri": "o", "failurePolicy": "ignore"},
        ],
    )
    assert words(config)[-1] == "echo d ignore <% $data.auth.username %>"
    assert container(config)["image"] == "team/x"


def test_registries_are_those_of_images_that_are_used() -> None:
    def image(name: str, user: str) -> dict[str, Any]:
        return {"type": "dockerimage", "name": name, "uri": "x", "auth": {"username": user}}

    data = {"type": "data", "name": "image", "uri": ["d"], "auth": {"username": "not an image"}}
    other = image("other", "b")
    config = v2(
        image={"auth": {"username": "a"}}, prerequisites=[image("unused", "c"), data, other]
    )
    config["taskRoles"]["second"] = {**config["taskRoles"]["main"], "dockerImage": "other"}
    assert [entry.username for entry in converted(config).registries] == ["a", "b"]


def test_only_the_deployment_that_was_chosen_counts() -> None:
    config = v2(
        "run",
        deployments=[
            {"name": "a", "taskRoles": {"main": {"preCommands": ["a"]}}},
            {"name": "b", "taskRoles": {"main": {"preCommands": ["b"]}}},
            {"name": "c"},
        ],
        defaults={"deployment": "b"},
    )
    assert words(config)[-1] == "b\nrun"
    assert warnings(config) == {}
    config["defaults"]["deployment"] = "c"
    assert words(config)[-1] == "run"
    del config["defaults"]
    assert words(config)[-1] == "run"
    assert list(warnings(config)) == ["deployments"]


def test_a_secret_that_a_deployment_lacks_is_told_once_and_there() -> None:
    roles = {
        name: {"preCommands": ["ls", "echo <% $secrets.x %>"], "postCommands": ["<%$secrets.y%>"]}
        for name in ("main", "second")
    }
    config = v2(deployments=[{"name": "z"}, {"name": "d", "taskRoles": roles}])
    config["defaults"] = {"deployment": "d"}
    config["taskRoles"]["second"] = config["taskRoles"]["main"]
    at = "deployments[1].taskRoles"
    assert problems(config) == [
        f"{at}.main.preCommands[1]",
        f"{at}.main.postCommands[0]",
        f"{at}.second.preCommands[1]",
        f"{at}.second.postCommands[0]",
    ]


def test_a_plugin_for_all_roles_lacks_its_secret_only_once() -> None:
    plugin = {"plugin": "cmd", "parameters": {"preCommands": ["echo <% $secrets.x %>"]}}
    config = v2(extras={"com.microsoft.pai.runtimeplugin": [plugin]})
    config["taskRoles"]["second"] = config["taskRoles"]["main"]
    assert len(problems(config)) == 1


WRONG = {
    "protocolVersion": v2() | {"protocolVersion": 2.0},
    "prerequisites[1].type": v2(prerequisites=[{"name": "a"}]),
    "prerequisites[1].uri": v2(prerequisites=[{"name": "a", "type": "dockerimage"}]),
    "prerequisites[0].uri": v2(image={"uri": 7}),
    "prerequisites[0].auth.username": v2(image={"auth": {"username": "<% $secrets.x %>"}}),
    "prerequisites[0].auth.registryuri": v2(image={"auth": {"registryuri": "<%$secrets.x%>"}}),
    "prerequisites[0].failurePolicy": v2(image={"failurePolicy": "fail"}),
    "taskRoles.main.output": v2(role={"output": "image"}),
    "taskRoles.main.resourcePerInstance.cpu": v2(
        role={"resourcePerInstance": {"memoryMB": 1, "gpu": 0}}
    ),
    "taskRoles.main.resourcePerInstance.memoryMB": v2(
        role={"resourcePerInstance": {"cpu": 1, "gpu": 0}}
    ),
    "taskRoles.main.resourcePerInstance.ports": v2(
        role={"resourcePerInstance": {**RESOURCES, "ports": {"a": 19}}}
    ),
    "taskRoles": v2() | {"taskRoles": {}},
}


@pytest.mark.parametrize(("path", "config"), WRONG.items())
def test_one_mistake_is_one_problem_at_its_field(path: str, config: dict[str, Any]) -> None:
    assert problems(config) == [path]


@pytest.mark.parametrize("uri", [["a", 1], [1], "a"])
def test_the_addresses_of_data_are_a_list_of_texts(uri: object) -> None:
    config = v2(prerequisites=[{"type": "data", "name": "d", "uri": uri}])
    assert problems(config) == ["prerequisites[1].uri"]


@pytest.mark.parametrize("kind", ["script", "output", "data"])
def test_only_an_image_must_say_where_it_is(kind: str) -> None:
    """What a plugin runs is somewhere else, or nowhere."""
    assert warnings(v2(prerequisites=[{"type": kind, "name": "p"}])) == {}


@pytest.mark.parametrize(("length", "wrong"), [(255, []), (256, ["prerequisites[1].name"])])
def test_a_prerequisites_name_is_as_long_as_a_jobs(length: int, wrong: list[str]) -> None:
    config = v2(prerequisites=[{"type": "script", "name": "p" * length}])
    assert (problems(config) if wrong else list(warnings(config))) == wrong


@pytest.mark.parametrize("version", ["1.5", 1, 1.5])
def test_a_version_is_text_or_a_number(version: object) -> None:
    assert warnings(v2(version=version, image={"version": version})) == {}


def test_a_deployment_that_is_nowhere_is_told_in_openpais_words() -> None:
    with pytest.raises(InvalidConfig) as caught:
        converted(v2(defaults={"deployment": "d"}))
    [told] = caught.value.problems
    assert told.message == "Default deployment d does not exist. Write it below deployments"


def test_an_output_has_one_address() -> None:
    config = v2(prerequisites=[{"type": "output", "name": "o", "uri": ["a"]}])
    assert problems(config) == ["prerequisites[1].uri"]


SILENT = {
    "no mail asked for": {"jobStatusChangeNotification": {"succeeded": False}},
    "no scheduler": {"hivedScheduler": None},
    "anything else": {"storage": [], "submitFrom": "x"},
    "a gang": {"gangAllocation": True},
}


@pytest.mark.parametrize("extras", SILENT.values(), ids=list(SILENT))
def test_what_changes_nothing_is_not_worth_a_word(extras: dict[str, Any]) -> None:
    options = {"shmMB": 64, "infiniband": False}
    assert warnings(v2(extras=extras, role={"extraContainerOptions": options})) == {}


@pytest.mark.parametrize(
    "extras",
    [
        {"jobStatusChangeNotification": {"succeeded": False, "failed": True}},
        {"hivedScheduler": {"jobPriorityClass": ""}},
        {"storages": []},
    ],
)
def test_what_cannot_be_had_is_told(extras: dict[str, Any]) -> None:
    assert list(warnings(v2(extras=extras))) == [f"extras.{next(iter(extras))}"]


def test_a_registry_s_number_is_told_like_a_command_s() -> None:
    auth = {"username": "<% $secrets.u %>", "password": "<% $secrets.p %>"}
    config = v2(image={"auth": auth}, secrets={"u": 1, "p": 2})
    assert list(warnings(config)) == ["secrets.u", "secrets.p"]


def test_some_tasks_that_retry_alone_make_all_do_so() -> None:
    config = v2(role={"taskRetryCount": 2}, extras={"gangAllocation": False})
    config["taskRoles"]["second"] = {**config["taskRoles"]["main"], "taskRetryCount": 0}
    spec = converted(config).document["spec"]
    assert (spec["runPolicy"]["restartScope"], spec["runPolicy"]["backoffLimit"]) == ("Replica", 2)
    told = warnings(config)["extras.gangAllocation"]
    assert told.startswith("found false: all tasks of a job start together here")
    assert "at most 2 times" in told


def test_a_job_that_retries_nothing_says_nothing_of_it() -> None:
    assert "runPolicy" not in converted(v2()).document["spec"]
    assert "runPolicy" not in converted(v2(extras={"gangAllocation": False})).document["spec"]


def test_one_task_alone_needs_no_name_for_others() -> None:
    config = v2(role={"taskRetryCount": 2}, extras={"gangAllocation": False})
    assert "intranet" not in converted(config).document["spec"]


def test_a_number_of_ends_that_cannot_come_is_no_rule_and_a_warning() -> None:
    many = {"minFailedInstances": 2, "minSucceededInstances": 3}
    made = converted(v2("true", role={"completion": many}))
    assert made.document["spec"]["tasks"][0]["completion"] == {"minFailed": None}
    assert [problem.path for problem in made.warnings] == [
        f"taskRoles.main.completion.{field}" for field in many
    ]


def test_a_folder_that_no_command_refers_to_is_told_to_mean_nothing() -> None:
    """As in what v2's door shows of a v1 config, which is sent back as it is."""
    folder = {"type": "script", "name": "code", "uri": "$PAI_DEFAULT_FS_URI/code"}
    role = {"script": "code"}

    told = warnings(v2(prerequisites=[folder], role=role))

    assert "what codeDir does needs a v1 config" in told["taskRoles.main.script"]
    used = v2("ls <% $script.uri %>", prerequisites=[folder], role=role)
    assert warnings(used) == {}
