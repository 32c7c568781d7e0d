"""Our own description of OpenPAI's routes: whole, and true of what is answered."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import submit, wait_for
from tests.server.team.serving import TeamServer


def described(server: TeamServer) -> Any:
    return server.ask("GET", "/regatta/v1/openapi.json", server.admin_token()).json


def test_every_reference_is_to_something_and_every_route_says_what_it_answers(
    shared: TeamServer,
) -> None:
    whole = described(shared)
    named = set(whole["components"]["schemas"])
    asked = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(whole)))
    assert asked <= named
    for path, operations in whole["paths"].items():
        for method, operation in operations.items():
            if not path.startswith("/api/"):
                continue
            answers = operation["responses"]
            for status, said in answers.items():
                for content in said.get("content", {}).values():
                    assert content["schema"], f"{method} {path} {status} says nothing"
            assert {"400", "401", "404", "500"} <= set(answers), f"{method} {path}"


@pytest.mark.parametrize(
    ("described_as", "asked"),
    [
        ("/api/v2/jobs", "/api/v2/jobs"),
        ("/api/v2/jobs", "/api/v2/jobs?withTotalCount=true"),
        ("/api/v2/jobs/{framework}", "/api/v2/jobs/ann~told"),
        ("/api/v2/jobs/{framework}/attempts/{attempt}", "/api/v2/jobs/ann~told/attempts/0"),
        ("/api/v2/jobs/{framework}/events", "/api/v2/jobs/ann~told/events"),
        ("/api/v2/jobs/{framework}/job-attempts", "/api/v2/jobs/ann~told/job-attempts"),
        ("/api/v1/jobs", "/api/v1/jobs"),
        ("/api/v1/user/{username}/jobs/{name}", "/api/v1/user/ann/jobs/told"),
        ("/api/v2/virtual-clusters", "/api/v2/virtual-clusters"),
        ("/api/v2/virtual-clusters", "/api/v2/virtual-clusters?nodes"),
        ("/api/v2/cluster/sku-types", "/api/v2/cluster/sku-types"),
        ("/api/v2/storages", "/api/v2/storages"),
    ],
)
def test_an_answer_is_as_it_is_described(shared: TeamServer, described_as: str, asked: str) -> None:
    ann = shared.token("ann")
    if shared.ask("GET", "/api/v2/jobs/ann~told", ann).status == 404:
        submit(shared, ann, hello("told", "exit 3"))
        wait_for(shared, ann, "told", "FAILED")
    whole = described(shared)
    answer = shared.ask("GET", asked, ann)
    said = whole["paths"][described_as]["get"]["responses"][str(answer.status)]
    schema = said["content"]["application/json"]["schema"]
    judge = jsonschema_rs.validator_for({**schema, "components": whole["components"]})
    judge.validate(answer.json)
