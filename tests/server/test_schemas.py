"""What `openapi.json` promises is what comes: every route, every status, every answer."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jsonschema_rs
import pytest

from regatta.daemon.server_files import is_held
from tests.doors import Regatta, delete_everything, eventually, shell_job

API = "/regatta/v1"
JOBS = "/namespaces/{namespace}/jobs"
JOB = JOBS + "/{name}"
HERE = "/namespaces/default/jobs"


class Asked(NamedTuple):
    method: str
    #: As it is declared, and as it is asked for.
    path: str
    target: str
    status: int
    body: object = None


LONG = shell_job("long", "sleep 1000")
SUSPENDED = shell_job("late", "sleep 1000", runPolicy={"suspend": True})

#: In this order: later ones find what earlier ones made.
CASES = (
    Asked("POST", "/jobs", "/jobs", 201, {"text": shell_job("done")}),
    Asked("POST", "/jobs", "/jobs", 201, {"text": LONG}),
    Asked("POST", "/jobs", "/jobs", 201, {"text": SUSPENDED}),
    Asked("POST", "/jobs", "/jobs", 409, {"text": LONG}),
    Asked("POST", "/jobs", "/jobs", 422, {"text": "kind: PaddleJob\nspec: {}\n"}),
    Asked("POST", "/jobs", "/jobs", 400, {"texd": ""}),
    Asked("POST", "/jobs", "/jobs?dryRun=true", 200, {"text": shell_job("dry", replicas=2)}),
    Asked("GET", "/jobs", "/jobs", 200),
    Asked("GET", "/jobs", "/jobs?finished=-1", 400),
    Asked("GET", "/runs", "/runs", 200),
    Asked("GET", "/runs", "/runs?uid=none", 404),
    Asked("GET", "/storage", "/storage", 200),
    Asked("GET", JOB, f"{HERE}/done", 200),
    Asked("GET", JOB, f"{HERE}/done?uid=none", 404),
    Asked("GET", JOB, f"{HERE}/none", 404),
    Asked("GET", JOB + "/pods", f"{HERE}/long/pods", 200),
    Asked("GET", JOB + "/pods", f"{HERE}/none/pods", 404),
    Asked("GET", JOB + "/logs", f"{HERE}/done/logs", 200),
    Asked("GET", JOB + "/logs", f"{HERE}/done/logs?index=-1", 400),
    Asked("GET", JOB + "/logs", f"{HERE}/none/logs", 404),
    Asked("GET", "/events", "/events", 200),
    Asked("GET", "/events", "/events?follow=true", 200),
    Asked("GET", "/events", "/events?after=-1", 400),
    Asked("GET", "/watch", "/watch", 200),
    Asked("GET", "/capacity", "/capacity", 200),
    Asked("GET", "/server", "/server", 200),
    Asked("POST", JOB + "/resume", f"{HERE}/late/resume", 200),
    Asked("POST", JOB + "/resume", f"{HERE}/done/resume", 409),
    Asked("POST", JOB + "/suspend", f"{HERE}/late/suspend", 200),
    Asked("POST", JOB + "/suspend", f"{HERE}/none/suspend", 404),
    Asked("POST", JOB + "/scale", f"{HERE}/long/scale", 200, {"replicas": 1}),
    Asked("POST", JOB + "/scale", f"{HERE}/long/scale", 400, {"replicas": -1}),
    Asked("POST", JOB + "/stop", f"{HERE}/long/stop", 200),
    Asked("DELETE", JOB, f"{HERE}/long", 200),
    Asked("DELETE", JOB, f"{HERE}/none", 404),
    Asked("DELETE", JOBS, f"{HERE}?endedBefore=2026-01-02T12:00:00", 400),
    Asked("DELETE", JOBS, f"{HERE}?endedBefore=1700000000.5", 400),
    Asked("DELETE", JOBS, f"{HERE}?live=true", 200),
)


@pytest.fixture
def described(regatta: Regatta) -> Iterator[dict[str, Any]]:
    yield json.loads(regatta.wire.request("GET", "/openapi.json"))
    delete_everything(regatta.client)


def exchange(
    regatta: Regatta, method: str, target: str, body: object = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """Of a stream, its first part."""
    place = urlsplit(regatta.address.url).netloc
    sent = {"Authorization": f"Bearer {regatta.files.token()}", **headers}
    if body is not None:
        sent["Content-Type"] = "application/json"
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        text = None if body is None else json.dumps(body)
        connection.request(method, target, text, sent)
        answer = connection.getresponse()
        streams = "event-stream" in answer.headers["Content-Type"]
        return answer, answer.read1() if streams else answer.read()


def promised(described: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    responses: dict[str, Any] = described["paths"][path][method.lower()]["responses"]
    return responses


def check(
    described: dict[str, Any], method: str, path: str, answer: http.client.HTTPResponse, said: bytes
) -> None:
    declared = promised(described, method, path)[str(answer.status)]["content"]
    kind = answer.headers["Content-Type"].partition(";")[0]
    schema = {**declared[kind]["schema"], "components": described["components"]}
    for value in [json.loads(said)] if kind == "application/json" else events_of(said):
        jsonschema_rs.validator_for(schema).validate(value)


def events_of(stream: bytes) -> list[dict[str, str]]:
    """Those that are whole."""
    parts = [part.splitlines() for part in stream.decode().split("\n\n")[:-1]]
    events = [[line for line in part if not line.startswith(":")] for part in parts]
    return [dict(line.split(": ", 1) for line in event) for event in events if event]


def test_every_answer_is_as_it_is_described(regatta: Regatta, described: dict[str, Any]) -> None:
    def finished() -> bool:
        return regatta.client.get("default", "done").finished

    for number, asked in enumerate(CASES):
        if number == 1:
            eventually(finished, "the first job's end")
        answer, said = exchange(regatta, asked.method, API + asked.target, asked.body)
        assert answer.status == asked.status, (asked, said)
        check(described, asked.method, API + asked.path, answer, said)


def test_every_route_is_described_and_tried(described: dict[str, Any]) -> None:
    routes = {
        (method.upper(), path)
        for path, operations in described["paths"].items()
        for method in operations
    }
    tried = {(asked.method, API + asked.path) for asked in CASES}
    apart = {("GET", "/healthz"), ("POST", f"{API}/server/stop")}

    assert routes == tried | apart


def test_what_any_route_may_say_is_described(regatta: Regatta, described: dict[str, Any]) -> None:
    for path, operations in described["paths"].items():
        for method in operations:
            target = path.format(namespace="default", name="none")
            refused = exchange(regatta, method.upper(), target, Authorization="Bearer wrong")
            foreign = exchange(regatta, method.upper(), target, Origin="http://evil.example")
            check(described, method, path, *refused)
            check(described, method, path, *foreign)
            assert refused[0].status == (200 if path == "/healthz" else 401)
            assert foreign[0].status == 403


def test_a_stop_is_answered_as_it_is_described(fresh: Regatta, described: dict[str, Any]) -> None:
    assert fresh("server", "start").code == 0
    path = f"{API}/server/stop"

    answer, said = exchange(fresh, "POST", path)

    assert answer.status == 202
    check(described, "POST", path, answer, said)
    eventually(lambda: not is_held(fresh.files.guardian_lock), "the end of both")


def test_a_job_says_what_it_is_made_of(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]

    assert set(schemas["Job"]["properties"]) >= {"apiVersion", "kind", "metadata", "spec", "status"}
    assert schemas["Refusal"]["required"] == ["code", "message"]


ALLOWED = {
    "/jobs": "GET, POST",
    f"{HERE}/any": "GET, DELETE",
    f"{HERE}/any/stop": "POST",
    "/watch": "GET",
}


@pytest.mark.parametrize("target", ALLOWED)
def test_a_method_that_means_nothing_is_told_which_do(regatta: Regatta, target: str) -> None:
    answer, said = exchange(regatta, "PATCH", API + target)

    assert (answer.status, json.loads(said)["code"]) == (405, "NoSuchMethod")
    assert answer.headers["Allow"] == ALLOWED[target]
    assert f"there is {ALLOWED[target]}" in json.loads(said)["message"]
