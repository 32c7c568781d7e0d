"""OpenPAI's first API of jobs: its shapes, its words, and that reading needs a token."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import LOOP, wait_for
from tests.server.team.serving import TeamServer

MINE = "/api/v1/user/ann/jobs"


def test_a_job_of_v1_from_its_submit_to_its_end(on_both: TeamServer, tmp_path: Path) -> None:
    ann, go = on_both.token("ann"), tmp_path / "go"
    made = on_both.ask("POST", MINE, ann, text=hello("old_1", LOOP.format(go=go)))
    assert made.status == 201
    assert made.headers["Location"] == f"{MINE}/old_1"
    assert made.json["jobStatus"]["subState"] == "APPLICATION_WAITING"
    assert list(made.json["taskRoles"]) == ["default"]
    assert on_both.ask("GET", "/api/v1/jobs", ann).json[0]["name"] == "old_1"
    assert on_both.ask("GET", f"{MINE}/", ann).json[0]["namespace"] == "ann"
    wait_for(on_both, ann, "old_1", "RUNNING")
    running = on_both.ask("GET", f"{MINE}/old_1", ann).json
    assert running["jobStatus"]["subState"] == "APPLICATION_RUNNING"
    assert running["taskRoles"]["default"]["taskStatuses"][0]["containerGpus"] == 0
    stopped = on_both.ask("PUT", f"{MINE}/old_1/executionType", ann, body={"value": "STOP"})
    assert (stopped.status, stopped.json) == (
        202,
        {"message": "execute job old_1 successfully"},
    )
    assert on_both.ask("GET", f"{MINE}/old_1", ann).json["jobStatus"]["state"] in (
        "RUNNING",
        "STOPPED",
    )
    wait_for(on_both, ann, "old_1", "STOPPED")
    shown = on_both.ask("GET", f"{MINE}/old_1", ann).json
    assert shown["taskRoles"]["default"]["taskStatuses"][0]["containerExitCode"] == -7400
    ended = shown["jobStatus"]
    assert (ended["appExitCode"], ended["subState"]) == (-7351, "FRAMEWORK_COMPLETED")
    assert ended["appExitSpec"]["phrase"] == "APP_STOP_FRAMEWORK_REQUESTED"
    gone = on_both.ask("DELETE", f"{MINE}/old_1", ann)
    assert (gone.status, gone.json) == (202, {"message": "deleted job old_1 successfully"})
    assert on_both.ask("GET", f"{MINE}/old_1", ann).code == (404, "NoJobError")


def test_where_a_job_is_begins_as_the_clients_own_paths_do(shared: TeamServer) -> None:
    ann, gateway = shared.token("ann"), "/rest-server"
    made = shared.ask("POST", gateway + MINE, ann, text=hello("behind", "echo here"))
    assert made.headers["Location"] == f"{gateway}{MINE}/behind"
    assert shared.ask("GET", made.headers["Location"], ann).json["name"] == "behind"
    ended = wait_for(shared, ann, "behind", "SUCCEEDED")
    log = ended["taskRoles"]["default"]["taskStatuses"][0]["containerLog"]
    uri = shared.ask("GET", gateway + log, ann).json["locations"][0]["uri"]
    assert uri.startswith(f"{shared.url}{gateway}/api/")
    assert shared.ask("GET", uri.removeprefix(shared.url)).body == b"here\n"


@pytest.mark.parametrize(
    ("path", "status"), [(MINE, 404), ("/api/v1/jobs", 404), ("/api/v2/jobs", 400)]
)
def test_a_virtual_cluster_that_is_not_there_is_404_to_v1_alone(
    shared: TeamServer, path: str, status: int
) -> None:
    config = hello("astray", "true", virtualCluster="none")
    refused = shared.ask("POST", path, shared.token("ann"), text=config)
    assert refused.code == (status, "NoVirtualClusterError")
    said = "Virtual cluster none is not found. For its virtualCluster write default."
    assert refused.json["message"] == said


@pytest.mark.parametrize("path", ["/api/v1/user/ann/jobs/named", "/api/v2/user/ann/jobs/named2"])
def test_a_put_names_the_job_by_its_path(shared: TeamServer, path: str) -> None:
    ann = shared.token("ann")
    answer = shared.ask("PUT", path, ann, text=hello("other", "true"))
    assert (answer.status, answer.json["name"]) == (201, path.rpartition("/")[2])
    again = shared.ask("PUT", path, ann, text=hello("other", "true"))
    assert again.code == (409, "ConflictJobError")
    assert f"Job name {answer.json['name']} already exists" in again.json["message"]


def test_a_config_comes_back_as_it_was_sent_as_json_or_yaml(shared: TeamServer) -> None:
    ann = shared.token("ann")
    shared.ask("POST", "/api/v1/jobs", ann, text=hello("kept", "true # comment"))
    as_json = shared.ask("GET", f"{MINE}/kept/config", ann)
    assert as_json.json["taskRoles"][0]["command"] == "true # comment"
    as_yaml = shared.ask("GET", f"{MINE}/kept/config", ann, headers={"Accept": "text/yaml"})
    assert yaml.safe_load(as_yaml.body) == as_json.json
    # As a client of the time asks for it, too.
    for path in ("/api/v1/jobs/ann~kept", "/api/v1/jobs/kept"):
        assert shared.ask("GET", path, ann).json["name"] == "kept"


def test_reading_needs_a_token_and_ones_own_name(shared: TeamServer) -> None:
    ann = shared.token("ann")
    for path in ("/api/v1/jobs", MINE, f"{MINE}/x", "/api/v1/virtual-clusters"):
        assert shared.ask("GET", path).code == (401, "UnauthorizedUserError")
    other = shared.ask("POST", "/api/v1/user/bob/jobs", ann, text=hello("not_mine", "true"))
    assert other.code == (403, "ForbiddenUserError")


def test_what_is_wrong_is_said_in_v1s_words(shared: TeamServer) -> None:
    ann = shared.token("ann")
    assert shared.ask("POST", MINE, ann, text="{").code == (400, "InvalidParametersError")
    assert shared.ask("GET", f"{MINE}/none/ssh", ann).code == (404, "NoJobError")
    shared.ask("POST", MINE, ann, text=hello("plain", "true"))
    assert shared.ask("GET", f"{MINE}/plain/ssh", ann).code == (404, "NoJobSshInfoError")
    assert shared.ask("GET", f"{MINE}/none/config", ann).code == (404, "NoJobError")
