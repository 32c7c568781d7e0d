"""A v1 config as v2's door shows it."""

from __future__ import annotations

import subprocess

import pytest

from regatta.api.openpai.shown_as_v2 import as_v2
from tests.api.openpai.configs import converted, v1, words
from tests.api.openpai.test_conversion_files import good


def test_every_field_has_its_place() -> None:
    config = v1(
        "echo 1",
        role={
            "taskNumber": 3,
            "cpuNumber": 2,
            "memoryMB": 256,
            "gpuNumber": 1,
            "shmMB": 64,
            "portList": [{"label": "rpc", "beginAt": 0, "portNumber": 2}, {"label": "web"}],
            "minFailedTaskCount": None,
            "minSucceededTaskCount": 2,
        },
        dataDir="hdfs://h/data",
        outputDir="hdfs://h/out",
        codeDir="hdfs://h/code",
        virtualCluster="vc",
        retryCount=4,
        jobEnvs={"a": "it's", "n": 1},
        extras={"submitFrom": "x"},
    )
    assert as_v2(config) == {
        "protocolVersion": 2,
        "name": "job",
        "type": "job",
        "prerequisites": [
            {"type": "dockerimage", "name": "default", "uri": "team/x"},
            {"type": "data", "name": "default", "uri": ["hdfs://h/data"]},
            {"type": "output", "name": "default", "uri": "hdfs://h/out"},
            {"type": "script", "name": "default", "uri": "hdfs://h/code"},
        ],
        "parameters": {"a": "it's", "n": 1},
        "jobRetryCount": 4,
        "taskRoles": {
            "main": {
                "instances": 3,
                "completion": {"minFailedInstances": None, "minSucceededInstances": 2},
                "dockerImage": "default",
                "data": "default",
                "output": "default",
                "script": "default",
                "resourcePerInstance": {
                    "cpu": 2,
                    "memoryMB": 256,
                    "gpu": 1,
                    "ports": {"rpc": 2, "web": 1},
                },
                "extraContainerOptions": {"shmMB": 64},
                "commands": ["set +euo pipefail", "echo 1"],
            }
        },
        "deployments": [
            {
                "name": "default",
                "taskRoles": {"main": {"preCommands": ["export a='it'\"'\"'s'", "export n=1"]}},
            }
        ],
        "defaults": {"virtualCluster": "vc", "deployment": "default"},
        "extras": {"submitFrom": "x"},
    }


def test_a_registry_of_v1_is_shown_by_reference_and_its_secrets_masked() -> None:
    shown = as_v2(v1(authFile="hdfs://h/auth"))
    assert shown["secrets"] == "******"
    assert shown["prerequisites"][0]["auth"] == {
        "username": "<% $secrets.registry.username %>",
        "password": "<% $secrets.registry.password %>",
    }


def test_what_is_shown_could_be_submitted() -> None:
    for name in ("v1-hello", "v1-only-what-must-be", "v1-failures-do-not-count"):
        first = good(name)
        again = converted(as_v2(first.config))
        assert again.name == first.name
        assert again.roles == first.roles
        for ours, theirs in zip(
            again.document["spec"]["tasks"], first.document["spec"]["tasks"], strict=True
        ):
            assert ours["replicas"] == theirs["replicas"]
            assert ours.get("completion", {}).get("minFailed", 1) == theirs.get(
                "completion", {}
            ).get("minFailed", 1)


@pytest.mark.parametrize(("said", "shown"), [(None, 0), (3, 3), (-1, 1000), (-2, 1000)])
def test_retries_without_end_are_shown_as_the_most_that_v2_takes(
    said: int | None, shown: int
) -> None:
    config = as_v2(v1(retryCount=said))
    assert config["jobRetryCount"] == shown
    assert converted(config).document["spec"].get("runPolicy", {}).get("backoffLimit", 0) == shown


def test_what_v1_does_not_say_is_shown_as_v1_means_it() -> None:
    """v2 means another size where it does not say one."""
    assert as_v2(v1())["taskRoles"]["main"]["extraContainerOptions"] == {"shmMB": 64}


def test_variables_are_exported_before_the_command() -> None:
    built = words(as_v2(v1('echo "$a|$b"', jobEnvs={"a": "it's $5", "b": True})))
    done = subprocess.run(built, capture_output=True, text=True)
    assert done.stdout == "it's $5|true\n"


def test_a_command_that_goes_on_after_a_failure_still_does() -> None:
    built = words(as_v2(v1("false | true; false; echo still here $NOT_SET")))
    done = subprocess.run(built, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "still here\n")
