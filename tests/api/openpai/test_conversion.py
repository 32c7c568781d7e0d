"""Field by field: what a config says, and what its PaddleJob says."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.errors import InvalidConfig
from regatta.api.load import validate_document
from regatta.api.openpai.conversion import convert, is_openpai
from regatta.api.openpai.wanted import Setting
from regatta.api.problems import Problem
from regatta.api.source.paths import split
from tests.api.openpai.configs import (
    PLACE,
    container,
    converted,
    task,
    v1,
    v2,
    variables,
    warnings,
)
from tests.api.openpai.test_conversion_files import GOOD, good, read


@pytest.mark.parametrize(
    ("document", "ours"),
    [
        (v1(), True),
        (v2(), True),
        ({"jobName": "x"}, True),
        ({"protocolVersion": 3}, True),
        ({"taskRoles": []}, True),
        ({"taskRoles": {}}, True),
        ({"taskRoles": "x"}, False),
        ({"name": "x", "type": "job"}, False),
        ({"kind": "PaddleJob", "taskRoles": []}, False),
        ({"apiVersion": "batch.paddlepaddle.org/v1", "jobName": "x"}, False),
        ([], False),
        (None, False),
        ("jobName", False),
    ],
)
def test_a_config_is_known_by_its_keys(document: object, ours: bool) -> None:
    assert is_openpai(document) is ours


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"jobName": "x"}, "InvalidParametersError"),
        ({"taskRoles": []}, "InvalidParametersError"),
        ({"jobName": "x", "taskRoles": {}}, "InvalidParametersError"),
        ({"taskRoles": {}}, "InvalidProtocolError"),
        ({"protocolVersion": 2, "jobName": "x"}, "InvalidProtocolError"),
        ({"jobName": "x", "extras": {"a": {1: 2}}}, "InvalidParametersError"),
        ({"protocolVersion": 2, "name": "a\0b"}, "InvalidProtocolError"),
    ],
)
def test_what_is_wrong_has_the_code_of_its_protocol(document: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        converted(document)
    assert caught.value.openpai_code == code
    assert caught.value.code == "InvalidJob"


def test_the_job_is_known_by_what_its_author_called_it() -> None:
    made = converted(v1(jobName="My_Job", virtualCluster="vc-1"))
    assert made.document["metadata"] == {
        "name": made.document["metadata"]["name"],
        "annotations": {
            "batch.paddlepaddle.org/openpai-job": "My_Job",
            "batch.paddlepaddle.org/openpai-user": "ada",
            "batch.paddlepaddle.org/virtual-cluster": "vc-1",
        },
    }
    assert (made.name, made.user, made.virtual_cluster) == ("My_Job", "ada", "vc-1")
    assert made.document["spec"]["schedulingPolicy"] == {"queue": "vc-1"}
    assert made.document["spec"]["mode"] == "Custom"


@pytest.mark.parametrize("config", [v1(), v2(), v1(virtualCluster="default"), v2(defaults={})])
def test_the_default_cluster_is_no_queue(config: dict[str, Any]) -> None:
    made = converted(config)
    assert made.virtual_cluster == "default"
    assert "schedulingPolicy" not in made.document["spec"]


def test_a_role_keeps_its_name_beside_the_one_that_hosts_can_have() -> None:
    made = good("v1-servers-and-workers")
    server, worker = made.document["spec"]["tasks"]
    assert server["name"] == "ps-server"
    assert server["alias"] == "ps_server"
    assert worker["name"] == "worker"
    assert "alias" not in worker
    assert made.roles == {server["name"]: "ps_server", "worker": "worker"}


@pytest.mark.parametrize("setting", [PLACE, Setting()], ids=["ada", "nobody"])
@pytest.mark.parametrize("config", [v1(virtualCluster="vc"), v2(defaults={"virtualCluster": "vc"})])
def test_every_replica_is_told_whose_job_it_is(config: dict[str, Any], setting: Setting) -> None:
    user = setting.user or "user"
    seen = variables(config, setting)
    own = {"PAI_DATA_DIR", "PAI_OUTPUT_DIR", "PAI_CODE_DIR"}
    assert {name: value for name, value in seen.items() if name not in own} == {
        "PAI_JOB_NAME": f"{user}~job",
        "PAI_FRAMEWORK_NAME": f"{user}~job",
        "FRAMEWORK_NAME": f"{user}~job",
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "HADOOP_USER_NAME": user,
        "PAI_DEFAULT_FS_URI": setting.default_fs_uri,
        "PAI_VIRTUAL_CLUSTER": "vc",
        "PAI_JOB_VC_NAME": "vc",
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "64" if "jobName" in config else "0",
    }
    assert own <= set(seen) if "jobName" in config else own.isdisjoint(seen)


def test_variables_of_the_job_are_text_and_win_over_ours() -> None:
    envs = {"a": True, "b": 10, "c": 0.1, "d": "$x $(x) $$", "PAI_USERNAME": "other"}
    seen = variables(v1(jobEnvs=envs))
    assert [seen[key] for key in envs] == ["true", "10", "0.1", "$x $(x) $$", "other"]
    names = [each["name"] for each in container(v1(jobEnvs=envs))["env"]]
    assert len(names) == len(set(names))


def test_what_is_not_said_is_as_openpai_has_it() -> None:
    assert task(v1())["replicas"] == 1
    assert container(v1())["resources"]["limits"] == {"cpu": 1, "memory": "100Mi"}
    assert "completion" not in task(v1())
    assert "ports" not in task(v1())
    assert "runPolicy" not in converted(v1()).document["spec"]
    assert set(task(v1())["template"]["spec"]) == {"containers"}
    assert (container(v1())["name"], container(v1())["image"]) == ("main", "team/x")
    assert task(v2())["replicas"] == 1
    [volume] = task(v2())["template"]["spec"]["volumes"]
    assert volume == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}}


def test_resources_are_requested_as_they_are_limited() -> None:
    asked = {"cpuNumber": 4, "memoryMB": 2048, "gpuNumber": 1, "shmMB": 128}
    found = container(v1(role=asked))
    right = {"cpu": 4, "memory": "2048Mi", "nvidia.com/gpu": 1}
    assert found["resources"] == {"requests": right, "limits": right}
    assert found["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
    [volume] = task(v1(role=asked))["template"]["spec"]["volumes"]
    assert volume["emptyDir"]["sizeLimit"] == "128Mi"


SHARED_MEMORY = {
    "v1 has what a container has by itself": (v1(), None, "64"),
    "v2 has more, and OpenPAI told 0": (v2(), "512Mi", "0"),
    "what v1 says is a volume": (v1(role={"shmMB": 80}), "80Mi", None),
    "what v2 says is a volume": (
        v2(role={"extraContainerOptions": {"shmMB": 80}}),
        "80Mi",
        None,
    ),
    "its author tells another": (
        v1(jobEnvs={"PAI_CURRENT_TASK_ROLE_SHM_MB": "7"}),
        None,
        "7",
    ),
}


@pytest.mark.parametrize(
    ("config", "volume", "told"), SHARED_MEMORY.values(), ids=SHARED_MEMORY.keys()
)
def test_shared_memory_is_as_large_as_in_openpai_and_told_so(
    config: dict[str, Any], volume: str | None, told: str | None
) -> None:
    """None is told where the brain reads the volume."""
    pod = task(config)["template"]["spec"]
    sizes = [each["emptyDir"]["sizeLimit"] for each in pod.get("volumes", ())]
    assert sizes == ([volume] if volume else [])
    assert variables(config).get("PAI_CURRENT_TASK_ROLE_SHM_MB") == told


def test_a_kind_of_gpu_is_a_label_of_nodes() -> None:
    pod = task(v1(gpuType="Tesla-V100"))["template"]["spec"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "Tesla-V100"}


COMPLETION_V1 = [
    ({}, None),
    ({"minFailedTaskCount": None}, {"minFailed": None}),
    ({"minFailedTaskCount": 2}, {"minFailed": 2}),
    ({"minSucceededTaskCount": None}, None),
    ({"minSucceededTaskCount": 1}, {"minSucceeded": 1}),
]


@pytest.mark.parametrize(("said", "right"), COMPLETION_V1)
def test_never_is_said_by_null_in_v1(said: dict[str, Any], right: dict[str, Any] | None) -> None:
    assert task(v1(role={"taskNumber": 2, **said})).get("completion") == right


COMPLETION_V2 = [
    (None, None),
    ({}, None),
    ({"minFailedInstances": None}, {"minFailed": None}),
    ({"minFailedInstances": -1}, {"minFailed": None}),
    ({"minFailedInstances": 2, "minSucceededInstances": -1}, {"minFailed": 2}),
    ({"minSucceededInstances": None}, None),
    ({"minSucceededInstances": 2}, {"minSucceeded": 2}),
]


@pytest.mark.parametrize(("said", "right"), COMPLETION_V2)
def test_never_is_said_by_null_or_minus_one_in_v2(said: Any, right: Any) -> None:
    assert task(v2(role={"instances": 2, "completion": said})).get("completion") == right


def test_ports_begin_where_they_are_told_to() -> None:
    listed = [{"label": "A.b~1", "beginAt": 1, "portNumber": 2}, {"label": "http", "beginAt": 0}]
    assert task(v1(role={"portList": listed}))["ports"] == [
        {"label": "A.b~1", "count": 2, "beginAt": 1},
        {"label": "http", "count": 1},
    ]
    asked = {"cpu": 1, "memoryMB": 100, "gpu": 0, "ports": {"b": 2, "a": 1}}
    assert task(v2(role={"resourcePerInstance": asked}))["ports"] == [
        {"label": "b", "count": 2},
        {"label": "a", "count": 1},
    ]


def test_ports_whose_labels_make_the_same_variable_are_told_at_the_second() -> None:
    labels = ["a.b", "http", "a_b", "A_b", "a~b"]
    config = v1(role={"portList": [{"label": label} for label in labels]})
    told = warnings(config)
    assert list(told) == ["taskRoles[0].portList[2].label", "taskRoles[0].portList[4].label"]
    assert "portList[0]" in told["taskRoles[0].portList[4].label"]
    assert "a_b" in told["taskRoles[0].portList[4].label"]


NEVER = [132, 135, 136, 141, 198, 220, 221, 222, *range(224, 236), 249, 252, 254]


@pytest.mark.parametrize(
    ("config", "limit", "codes"),
    [
        (v1(retryCount=3), 3, sorted([*NEVER, 139, 196])),
        (v1(retryCount=-1), -1, sorted([*NEVER, 139, 196])),
        (v1(retryCount=-2), -1, sorted([*NEVER, 139, 196])),
        (v2(jobRetryCount=3), 3, NEVER),
    ],
)
def test_ends_that_are_permanent_are_not_retried(
    config: dict[str, Any], limit: int, codes: list[int]
) -> None:
    assert converted(config).document["spec"]["runPolicy"] == {
        "backoffLimit": limit,
        "noRetry": {"exitCodes": codes, "reasons": ["OOMKilled"]},
    }


def test_tasks_retry_one_by_one_only_without_a_gang() -> None:
    role = {"instances": 2, "taskRetryCount": 5}
    alone = v2(role=role, jobRetryCount=2, extras={"gangAllocation": False})
    spec = converted(alone).document["spec"]
    assert spec["runPolicy"]["restartScope"] == "Replica"
    assert spec["runPolicy"]["backoffLimit"] == 5
    assert spec["intranet"] == "Service"
    assert "at most 5 times" in warnings(alone)["extras.gangAllocation"]
    together = v2(role=role, jobRetryCount=2)
    spec = converted(together).document["spec"]
    assert "restartScope" not in spec["runPolicy"]
    assert spec["runPolicy"]["backoffLimit"] == 2
    assert "intranet" not in spec
    assert list(warnings(together)) == ["taskRoles.main.taskRetryCount"]


def test_a_job_without_a_gang_and_without_task_retries_is_retried_as_a_whole() -> None:
    config = v2(jobRetryCount=2, extras={"gangAllocation": False})
    assert "restartScope" not in converted(config).document["spec"]["runPolicy"]
    assert "again" not in warnings(config)["extras.gangAllocation"]


def test_what_cannot_be_honoured_is_a_warning_at_its_field() -> None:
    told = {problem.path: problem.message for problem in good("v1-always-again").warnings}
    assert list(told) == [
        "killAllOnCompletedTaskNumber",
        "authFile",
        "retryCount",
        "jobEnvs.isDebug",
    ]
    assert told["killAllOnCompletedTaskNumber"] == (
        "killAllOnCompletedTaskNumber has been obsoleted, please use minFailedTaskCount and "
        "minSucceededTaskCount instead."
    )
    assert list(warnings(v1(jobEnvs={"paiAzRDMA": True}))) == ["jobEnvs.paiAzRDMA"]
    told = {problem.path: problem.message for problem in good("v2-what-is-elsewhere-only").warnings}
    assert list(told) == [
        "extras.hivedScheduler",
        "extras.storages",
        "extras.jobStatusChangeNotification",
        "taskRoles.main.taskRetryCount",
        "taskRoles.main.extraContainerOptions.infiniband",
        "deployments",
    ]


def test_the_config_is_kept_as_it_was_written() -> None:
    config = v1(extras={"submitFrom": "x"}, jobEnvs={"n": 1})
    made = converted(config)
    assert made.config == config
    assert made.config is not config
    assert made.extras == {"submitFrom": "x"}
    assert made.protocol == 1
    config = v2(parameters={"a": [1]}, extras={"anything": {"b": 2}})
    made = converted(config)
    assert made.config == config
    assert made.extras == {"anything": {"b": 2}}
    assert made.protocol == 2


AT_THE_EDGE = {
    "a name of 255 characters": v1(jobName="a" * 255),
    "a name of 255 characters in v2": v2() | {"name": "a" * 255},
    "all memory shared": v1(role={"memoryMB": 100, "shmMB": 100}),
    "the last port": v1(role={"portList": [{"label": "a", "beginAt": 65534, "portNumber": 2}]}),
    "twenty ports": v1(role={"portList": [{"label": "a", "portNumber": 18}]}),
    "twenty ports with their own http": v1(
        role={"portList": [{"label": "http", "portNumber": 19}]}
    ),
    "as many ends as tasks": v1(
        role={"taskNumber": 2, "minFailedTaskCount": 2, "minSucceededTaskCount": 2}
    ),
    "six thousand tasks": v2(role={"instances": 6000}),
    "a thousand retries": v2(jobRetryCount=1000),
}


@pytest.mark.parametrize("config", AT_THE_EDGE.values(), ids=list(AT_THE_EDGE))
def test_the_largest_that_is_allowed_is_allowed(config: dict[str, Any]) -> None:
    made = converted(config, Setting())
    validate_document(made.document, strict=True)
    assert made.warnings == ()


BEYOND_IT = {
    "taskRoles": v1() | {"taskRoles": None},
    "taskRoles[0].portList": v1(role={"portList": [{"label": "a", "portNumber": 19}]}),
    "taskRoles[0].portList[0].beginAt": v1(role={"portList": [{"label": "a", "beginAt": 65536}]}),
    "taskRoles[0].shmMB": v1(role={"memoryMB": 100, "shmMB": 101}),
    "jobName": v1(jobName="a" * 256),
    "name": v2() | {"name": "a" * 256},
    "retryCount": v1(retryCount=1001),
    "taskRoles.main.instances": v2(role={"instances": 2**31}),
    "prerequisites": v2() | {"prerequisites": [], "taskRoles": {"a": None}},
    "deployments": v2(deployments=[]),
    "deployments[0]": v2(deployments=[None]),
    "defaults.deployment": v2(defaults={"deployment": "none"}),
}


@pytest.mark.parametrize(("path", "config"), BEYOND_IT.items())
def test_what_is_beyond_is_told_at_its_field(path: str, config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        converted(config)
    assert path in [problem.path for problem in caught.value.problems]


# Where it comes from

CONTAINER = "spec.tasks[0].template.spec.containers[0]"
WHERE_V1 = {
    "metadata.name": "jobName",
    "spec.tasks[0].replicas": "taskRoles[0].taskNumber",
    "spec.tasks": "taskRoles",
    "spec.tasks[0].name": "taskRoles[0].name",
    "spec.tasks[0].alias": "taskRoles[0].name",
    "spec.tasks[0].completion.minSucceeded": "taskRoles[0].minSucceededTaskCount",
    "spec.tasks[0].ports": "taskRoles[0].portList",
    f"{CONTAINER}.resources.limits.cpu": "taskRoles[0].cpuNumber",
    f"{CONTAINER}.env[9].value": "dataDir",
    f"{CONTAINER}.env[10].value": "outputDir",
    "spec.tasks[0].completion.minFailed": "taskRoles[0].minFailedTaskCount",
    "spec.tasks[0].ports[1].label": "taskRoles[0].portList[1]",
    "spec.tasks[0].ports[1].count": "taskRoles[0].portList[1].portNumber",
    f"{CONTAINER}.image": "image",
    f"{CONTAINER}.command[2]": "taskRoles[0].command",
    f"{CONTAINER}.resources.limits[nvidia.com/gpu]": "taskRoles[0].gpuNumber",
    f"{CONTAINER}.resources.requests.memory": "taskRoles[0].memoryMB",
    f"{CONTAINER}.env[13].value": "jobEnvs.second",
    f"{CONTAINER}.env[11].value": "codeDir",
    f"{CONTAINER}.env[0].value": "taskRoles[0]",
    "spec.tasks[0].template.spec.volumes[0].emptyDir.sizeLimit": "taskRoles[0].shmMB",
    f"{CONTAINER}.volumeMounts[0].mountPath": "taskRoles[0].shmMB",
    "spec.tasks[0].template.spec.nodeSelector": "gpuType",
    "spec.runPolicy.backoffLimit": "retryCount",
    "spec.schedulingPolicy.queue": "virtualCluster",
    "spec.elastic": "spec.elastic",
}


@pytest.mark.parametrize(("ours", "theirs"), WHERE_V1.items())
def test_a_place_of_the_job_leads_to_the_field_of_v1(ours: str, theirs: str) -> None:
    ports = [{"label": "a"}, {"label": "b"}]
    made = converted(v1(role={"portList": ports}, jobEnvs={"first": 1, "second": 2}))
    assert made.where(ours) == theirs
    assert made.told(Problem(ours, "it", "warning", 7)) == Problem(theirs, "it", "warning", 7)


WHERE_V2 = {
    "metadata.name": "name",
    "spec.tasks[0].replicas": "taskRoles.main.instances",
    "spec.tasks[0].completion.minSucceeded": "taskRoles.main.completion.minSucceededInstances",
    "spec.tasks[0].ports[0].count": "taskRoles.main.resourcePerInstance.ports.web",
    f"{CONTAINER}.image": "prerequisites[0].uri",
    f"{CONTAINER}.command[5]": "taskRoles.main.commands",
    f"{CONTAINER}.resources.limits.cpu": "taskRoles.main.resourcePerInstance.cpu",
    "spec.runPolicy.backoffLimit": "jobRetryCount",
    "spec.runPolicy.restartScope": "extras.gangAllocation",
    "spec.schedulingPolicy.queue": "defaults.virtualCluster",
}


@pytest.mark.parametrize(("ours", "theirs"), WHERE_V2.items())
def test_a_place_of_the_job_leads_to_the_field_of_v2(ours: str, theirs: str) -> None:
    asked = {"cpu": 1, "memoryMB": 100, "gpu": 0, "ports": {"web": 1}}
    assert converted(v2(role={"resourcePerInstance": asked})).where(ours) == theirs


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_every_mark_is_a_path_that_can_be_followed(path: Any) -> None:
    config = read(path)
    made = convert(config, PLACE)
    for theirs in made.marks.values():
        first = split(theirs)[0]
        assert isinstance(first, str)
        role = split(theirs)[1] if first == "taskRoles" and len(split(theirs)) > 1 else None
        holder = config["taskRoles"]
        assert role is None or (role in holder if isinstance(holder, dict) else role < len(holder))
