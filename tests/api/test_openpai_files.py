"""OpenPAI's configs as job files: read, changed by a command line, told of in their own words."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from regatta.api.errors import InvalidConfig, InvalidJob
from regatta.api.job import Completion
from regatta.api.load import load_job
from regatta.api.openpai.wanted import Setting
from regatta.api.problems import Problem
from regatta.api.secrets import JobSecret
from tests.openpai_configs import a_task_role, hello, version_one, version_two

USER = Setting(user="ann")


def variables(job: Any, task: int = 0) -> dict[str, Any]:
    container = job.spec.tasks[task].template["spec"]["containers"][0]
    return {each["name"]: each.get("value") for each in container["env"]}


def test_a_config_is_a_job_file() -> None:
    job = load_job(hello(), setting=USER).job

    assert job.name.startswith("hello-world-")
    assert [task.known_as for task in job.spec.tasks] == ["default"]
    assert variables(job)["PAI_JOB_NAME"] == "ann~Hello_World"


def test_another_name_is_another_name_of_theirs() -> None:
    job = load_job(hello(), setting=USER, name="Second_One").job

    assert job.name.startswith("second-one-")
    assert variables(job)["PAI_JOB_NAME"] == "ann~Second_One"


def test_the_command_line_changes_the_job_that_it_becomes() -> None:
    job = load_job(hello("h"), env={"A": "b"}, sets=["spec.tasks[0].replicas=3"]).job

    assert job.spec.tasks[0].replicas == 3
    assert variables(job)["A"] == "b"


def test_that_no_failure_counts_is_said_by_null() -> None:
    roles = [
        a_task_role("never", "true", minFailedTaskCount=None),
        a_task_role("once", "true"),
        a_task_role("twice", "true", 2, minFailedTaskCount=2),
    ]

    tasks = load_job(version_one("j", *roles)).job.spec.tasks

    told = [task.completion or Completion() for task in tasks]
    assert [completion.min_failed for completion in told] == [None, 1, 2]


def test_comments_in_json_are_passed_over_but_not_in_texts() -> None:
    text = hello("h", "echo http://x // y").replace("{", "{ // the job\n", 1)

    job = load_job(text).job

    command = job.spec.tasks[0].template["spec"]["containers"][0]["command"]
    assert command[-1].endswith("echo http://x // y")


def test_what_is_wrong_is_told_at_the_line_of_the_config() -> None:
    text = version_two("j", ["true"]).replace("memoryMB: 128", "memoryMB: much")

    with pytest.raises(InvalidConfig) as caught:
        load_job(text)

    (problem,) = caught.value.problems
    assert problem.path == "taskRoles.worker_0.resourcePerInstance.memoryMB"
    assert problem.line == text[: text.index("memoryMB")].count("\n") + 1
    assert caught.value.openpai_code == "InvalidProtocolError"


def test_what_only_the_job_shows_is_told_there_too() -> None:
    """The name of an image, which nothing but the rules of pod templates look at."""
    text = version_one("j", a_task_role("t", "true"), jobEnvs={"A": "x" * 200_000})

    with pytest.raises(InvalidConfig) as caught:
        load_job(text)

    assert [problem.path for problem in caught.value.problems] == ["jobEnvs.A"]


def test_what_an_engine_finds_is_told_there_too() -> None:
    loaded = load_job(version_two("j", ["true"]))

    (found,) = loaded.with_lines(
        [Problem("spec.tasks[0].template.spec.containers[0].command", "no bash here")]
    )

    assert found.path == "taskRoles.worker_0.commands"
    assert found.line is not None


def test_warnings_come_along() -> None:
    loaded = load_job(version_one("j", a_task_role("t", "true"), retryCount=-2))

    assert loaded.job.spec.run_policy.backoff_limit == -1
    assert [warning.path for warning in loaded.warnings] == ["retryCount"]


def test_secrets_stand_beside_the_job_and_not_in_it() -> None:
    auth = {"username": "me", "password": "<% $secrets.reg %>", "registryuri": "https://r"}
    text = version_two(
        "Job",
        ["echo <% $secrets.token %>"],
        secrets={"token": "planted-1", "reg": "planted-2", "unused": "planted-3"},
        prerequisites=[{"type": "dockerimage", "name": "image", "uri": "x", "auth": auth}],
    )

    loaded = load_job(text)

    name = loaded.job.name
    token, registry = loaded.secrets
    assert token == JobSecret(name=f"{name}-secrets", data={"token": "planted-1"})
    assert (registry.name, registry.type) == (
        f"{name}-registry",
        "kubernetes.io/dockerconfigjson",
    )
    auths = json.loads(registry.data[".dockerconfigjson"])["auths"]
    assert auths == {"https://r": {"username": "me", "password": "planted-2"}}
    shown = f"{loaded.job} {loaded.document} {loaded.warnings} {loaded}"
    assert "planted" not in shown


def test_two_configs_in_one_file_are_not_a_job() -> None:
    text = f"{version_two('a', ['true'])}---\n{version_two('b', ['true'])}"

    with pytest.raises(InvalidJob, match="there is no PaddleJob"):
        load_job(text)


def test_the_document_that_is_sent_to_a_cluster_is_whole() -> None:
    document = load_job(hello(), setting=USER).document

    assert yaml.safe_load(yaml.safe_dump(document)) == document
    assert document["metadata"]["annotations"]["batch.paddlepaddle.org/openpai-job"] == (
        "Hello_World"
    )
