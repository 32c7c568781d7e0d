"""The REST contract: shapes of answers and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from regatta.api.errors import RegattaError
from regatta.api.job import Phase
from regatta.engines.base import LogQuery, Submission
from regatta.engines.blocking import Blocking
from tests.doors import Regatta, delete_everything, eventually, shell_job


@pytest.fixture
def client(regatta: Regatta) -> Iterator[Blocking]:
    client = regatta.client
    yield client
    delete_everything(client)


def submit(client: Blocking, text: str, **more: object) -> None:
    client.submit(Submission(text=text, **more))  # type: ignore[arg-type]


def refusal(regatta: Regatta, method: str, path: str, body: object = None) -> RegattaError:
    with pytest.raises(RegattaError) as caught:
        regatta.wire.request(method, path, body)
    return caught.value


def test_a_submitted_job_is_answered_whole(client: Blocking, regatta: Regatta) -> None:
    raw = regatta.wire.request("POST", "/jobs", {"text": shell_job("whole")})

    answer = json.loads(raw)
    assert answer["job"]["apiVersion"] == "batch.paddlepaddle.org/v1"
    assert answer["job"]["metadata"]["uid"]
    assert answer["warnings"] == []
    assert answer["replaced"] == ""


def test_an_invalid_job_is_told_problem_by_problem(client: Blocking, regatta: Regatta) -> None:
    refused = refusal(regatta, "POST", "/jobs", {"text": "kind: PaddleJob\nspec: {}\n"})

    assert (refused.status, refused.code) == (422, "InvalidJob")
    assert "metadata.name" in {problem.path for problem in refused.problems}
    assert {problem.severity for problem in refused.problems} == {"error"}


def test_a_misspelt_field_of_the_request_is_named(client: Blocking, regatta: Regatta) -> None:
    refused = refusal(regatta, "POST", "/jobs", {"text": "x", "replase": True})

    assert (refused.status, refused.code) == (400, "BadRequest")
    assert [problem.path for problem in refused.problems] == ["replase"]


def test_a_body_that_is_not_said_to_be_json_is_told_what_to_say(
    client: Blocking, regatta: Regatta
) -> None:
    """As `curl -d` sends it."""
    place = urlsplit(regatta.address.url).netloc
    headers = {
        "Authorization": f"Bearer {regatta.files.token()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    with closing(HTTPConnection(place, timeout=60)) as connection:
        connection.request("POST", "/regatta/v1/jobs", json.dumps({"text": "x"}), headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())

    assert (answer.status, said["code"]) == (400, "BadRequest")
    assert "Content-Type: application/json" in said["message"]


def test_a_pattern_that_is_none_is_a_bad_request(client: Blocking, regatta: Regatta) -> None:
    submit(client, shell_job("searched"))
    with pytest.raises(RegattaError) as refused:
        next(client.logs("default", "searched", LogQuery(grep="(")))
    assert (refused.value.status, refused.value.code) == (400, "BadRequest")


UNKNOWN = {
    ("POST", "/jobs?dryrun=true"): "dryrun: unknown query parameter; did you mean dryRun?",
    ("DELETE", "/namespaces/default/jobs?endedbefore=2020-01-01T00:00:00Z"): (
        "endedbefore: unknown query parameter; did you mean endedBefore? Known here: live and ended"
    ),
    ("GET", "/jobs?foo=1"): "foo: unknown query parameter; Known here: namespace and finished",
    ("GET", "/capacity?a=1&a=2"): "a: unknown query parameter",
    ("GET", "/server?a=1"): "a: unknown query parameter; There are none here",
    ("GET", "/namespaces/default/jobs/x/logs?tail=1&tail=2"): "tail: given 2 times; give it once",
    ("GET", "/jobs?" + "&".join(f"a{n}=1" for n in range(500))): "the query has 500 parameters",
    ("GET", "/events?uid=x"): "name the job with it, job=NAME",
}


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
def test_what_a_route_does_not_know_of_a_query_is_refused_and_nothing_done(
    client: Blocking, regatta: Regatta, method: str, path: str
) -> None:
    submit(client, shell_job("stays"))
    eventually(lambda: client.get("default", "stays").status.phase == Phase.COMPLETED, "its end")
    body = {"text": shell_job("never")} if method == "POST" else None
    refused = refusal(regatta, method, path, body)
    assert (refused.status, refused.code) == (400, "BadRequest")
    assert UNKNOWN[method, path] in str(refused)
    assert [job.name for job in client.list()] == ["stays"]


NO_JSON = {
    "not UTF-8": (b'{"text": "\xff"}', "byte 10 is not UTF-8"),
    "too deep": (b"[" * 50_000, "the body cannot be read as JSON"),
    "a number beyond all": (
        b'{"text": ' + b"9" * 100_000 + b"}",
        "cannot be read as JSON: Exceeds",
    ),
    "a NUL": (b"\0", "at character 0, Expecting value"),
    "cut": (b'{"text": "x"', "at character 12, Expecting"),
    "a list": (b"[1]", "body: found a list of 1; write a map"),
    "an unknown field": (b'{"text": "x", "nmae": "y"}', "nmae: unknown field; did you mean name?"),
    "one of the shell": (
        b'{"text": "x", "shell": {"pyhton": "y"}}',
        "shell.pyhton: unknown field; did you mean python? Known here: directory, environment",
    ),
    "half a character": (b'{"text": "x", "name": "\\udfff"}', "name: \\udfff is half a character"),
}


@pytest.mark.parametrize("case", NO_JSON)
def test_a_body_that_cannot_be_read_is_told_where_and_why(
    client: Blocking, regatta: Regatta, case: str
) -> None:
    content, said = NO_JSON[case]
    headers = {
        "Authorization": f"Bearer {regatta.files.token()}",
        "Content-Type": "application/json",
    }
    place = urlsplit(regatta.address.url).netloc
    with closing(HTTPConnection(place, timeout=60)) as connection:
        connection.request("POST", "/regatta/v1/jobs", content, headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
    problems = [f"{one['path']}: {one['message']}" for one in told["problems"]]
    assert (answer.status, told["code"]) == (400, "BadRequest")
    assert said in " ".join([told["message"], *problems])


ODD = {
    "an id beyond all counting": ("GET", "/events?after=99999999999999999999999", None),
    "an id below all": ("GET", "/events?after=-1", None),
    "a time before all times": (
        "GET", "/namespaces/default/jobs/odd/logs?since=0001-01-01T00:00:00%2B14:00", None),
    "more lines than anybody has": (
        "GET", "/namespaces/default/jobs/odd/logs?tail=999999999999999999999", None),
    "a replica before the first": ("GET", "/namespaces/default/jobs/odd/logs?index=-1", None),
    "half a character in a name": ("POST", "/jobs", '{"text": "x", "name": "\\ud800"}'),
    "half a character in a variable": ("POST", "/jobs", '{"text": "x", "env": {"A": "\\ud800"}}'),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_odd_input_is_a_bad_request_and_no_accident(
    client: Blocking, regatta: Regatta, case: str
) -> None:
    submit(client, shell_job("odd"))
    method, path, body = ODD[case]
    refused = refusal(regatta, method, path, msgspec.Raw(body.encode()) if body else None)
    assert (refused.status, refused.code) == (400, "BadRequest"), refused


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({f"field{i}": 1 for i in range(500)}, "there are 501 fields; 100 is the most"),
        ({"env": {f"A{i}": 1 for i in range(10_001)}}, "env has 10,001 entries; 10,000 is the"),
        ({"sets": [1] * 10_001}, "sets has 10,001 entries; 10,000 is the most"),
        ({"shell": {"volumes": {f"v{i}": 1 for i in range(10_001)}}}, "volumes has 10,001"),
    ],
    ids=["fields", "variables", "settings", "volumes"],
)
def test_a_mistake_that_is_made_thousands_of_times_is_told_once(
    regatta: Regatta, body: dict[str, Any], said: str
) -> None:
    refused = refusal(regatta, "POST", "/jobs", {"text": "x", **body})
    assert (refused.status, refused.code) == (400, "BadRequest")
    [problem] = refused.problems
    assert said in problem.message


@pytest.mark.parametrize("last", ["²", "9" * 30, "9" * 5000, "-1"])
def test_an_id_that_no_event_has_is_a_bad_request(
    client: Blocking, regatta: Regatta, last: str
) -> None:
    with pytest.raises(RegattaError) as refused:
        next(regatta.wire.events("/events", {"follow": True}, last))
    assert refused.value.code == "BadRequest"


def test_what_does_not_exist_is_404(client: Blocking, regatta: Regatta) -> None:
    job = refusal(regatta, "GET", "/namespaces/default/jobs/none")
    path = refusal(regatta, "GET", "/nothing")

    assert (job.status, job.code) == (404, "JobNotFound")
    assert (path.status, path.code) == (404, "NoSuchPath")


def test_a_live_name_is_a_conflict(client: Blocking) -> None:
    submit(client, shell_job("live", "sleep 1000"))

    with pytest.raises(RegattaError, match="--replace") as caught:
        submit(client, shell_job("live"))

    assert (caught.value.status, caught.value.code) == (409, "JobIsLive")


def test_a_dry_run_creates_nothing(client: Blocking) -> None:
    preview = client.preview(Submission(text=shell_job("imagined", replicas=2)))

    assert [manifest["kind"] for manifest in preview.objects].count("Pod") == 2
    assert preview.environment["imagined-worker-0"]["PADDLE_TRAINERS_NUM"] == "2"
    assert client.list() == []


def test_the_namespace_filters_the_list(client: Blocking) -> None:
    submit(client, shell_job("here"), namespace="a")
    submit(client, shell_job("there"), namespace="b")

    assert [job.name for job in client.list("a")] == ["here"]
    assert sorted(job.name for job in client.list()) == ["here", "there"]


def test_pods_events_and_machine_have_their_views(client: Blocking) -> None:
    submit(client, shell_job("viewed"))
    eventually(lambda: client.get("default", "viewed").finished, "the job's end")

    [pod] = client.pods("default", "viewed")
    events = client.events("default", "viewed")

    assert (pod.role, pod.index, pod.phase, pod.exit_code) == ("worker", 0, "Succeeded", 0)
    assert pod.address.startswith("127.")
    assert [event.id for event in events] == sorted(event.id for event in events)
    assert client.events("default", "viewed", after=events[-1].id) == []
    assert client.capacity().nodes[0].cpus > 0


@pytest.mark.parametrize("replicas", [-1, True, "2", 2.0])
def test_scaling_to_what_is_no_count_is_refused_before_the_engine_hears_of_it(
    regatta: Regatta, replicas: object
) -> None:
    path = "/namespaces/default/jobs/any/scale"

    assert refusal(regatta, "POST", path, {"replicas": replicas}).code == "BadRequest"


def test_the_server_describes_itself(regatta: Regatta) -> None:
    info = json.loads(regatta.wire.request("GET", "/server"))

    assert info["guarded"]
    assert info["home"] == str(regatta.files.folder)
    assert (info["engine"], info["namespace"], info["takesShell"]) == ("local", "default", True)
