"""Every operation that OpenPAI's own description has, asked of a real server: its status, and its
body by the description's schemas, of what succeeds and of what is refused as documented."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from regatta.server.accounts.tokens import Kind
from regatta.server.accounts.visibility import Visibility
from regatta.server.team.team_settings import TeamSettings
from tests.openpai_configs import a_task_role, version_one
from tests.server.accounts.people import PASSWORD
from tests.server.openpai.contract import Client, Contract
from tests.server.openpai.jobs_of_openpai import LOOP, state_of, wait_for
from tests.server.team.serving import NO_LIMITS, a_team_server

SETTINGS = TeamSettings(
    rates=NO_LIMITS,
    tells_unknown_users=True,
    visibility=Visibility.ALL,
    virtual_clusters=("default", "closed"),
)
JOB = "/api/v2/jobs/{user}~{job}"
TASK = JOB + "/attempts/{jobAttemptId}/taskRoles/{taskRoleName}/taskIndex/{taskIndex}/attempts"
LOGS = TASK + "/{taskAttemptId}/logs"
TOKENS, USERS, GROUPS = "/api/v2/tokens", "/api/v2/users", "/api/v2/groups"

#: The last test asks what the others did.
pytestmark = pytest.mark.xdist_group("OpenPAI's contract")

#: Promised, and not ours to give: by whom, and why.
NOT_HERE = {
    ("GET", "/api/v2/authn/oidc/login", 302): "there is no OIDC",
    ("GET", "/api/v2/authn/oidc/logout", 302): "there is no OIDC",
    ("POST", "/api/v2/authn/basic/login", 404): "its own client's suite asks for 400",
    ("GET", "/api/v2/storages/{storage}", 200): "no storage is configured",
    ("GET", "/api/v2/storages/{storage}", 403): "no storage is configured",
    ("PUT", "/api/v2/users/me", 404): "who asks is there",
}


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract()


@pytest.fixture(scope="module")
def ask(contract: Contract, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("contract")
    with a_team_server(folder, settings=SETTINGS) as server:
        yield Client(server, contract)


@pytest.fixture(scope="module")
def admin(ask: Client) -> str:
    return ask.server.admin_token()


@pytest.fixture(scope="module")
def ann(ask: Client) -> str:
    return ask.server.token("ann")


@pytest.fixture(scope="module")
def application(ask: Client) -> str:
    return ask.server.token("ann", Kind.APPLICATION)


def test_about_the_server_and_signing_in(ask: Client, ann: str, application: str) -> None:
    login, logout = "/api/v2/authn/basic/login", "/api/v2/authn/basic/logout"
    ask("GET", "/api/v2/info", 200, token=None)
    right = {"username": "ann", "password": PASSWORD}
    token = ask("POST", login, 200, token=None, form=right).json["token"]
    for wrong, code in (
        ({**right, "password": "incorrect"}, "IncorrectPasswordError"),
        ({**right, "username": "nobody"}, "NoUserError"),
    ):
        ask("POST", login, 400, token=None, form=wrong, code=code)
    ask("DELETE", logout, 200, token=token)
    ask("DELETE", logout, 401, token=token, code="UnauthorizedUserError")
    ask("DELETE", logout, 403, token=application, code="ForbiddenUserError")


def test_tokens(ask: Client, ann: str, admin: str, application: str) -> None:
    ask("GET", TOKENS, 200, token=ann)
    ask("GET", TOKENS, 401, token=None)
    made = ask("POST", TOKENS + "/application", 200, token=ann).json["token"]
    ask("POST", TOKENS + "/application", 401, token="garbage")
    one = TOKENS + "/{token}"
    refused = ask.server.ask("DELETE", f"{TOKENS}/{made}", admin)
    ask.contract.judge("DELETE", one, refused)
    assert refused.status == 403
    for token, status in ((None, 401), (ann, 200)):
        answer = ask.server.ask("DELETE", f"{TOKENS}/{made}", token)
        ask.contract.judge("DELETE", one, answer)
        assert answer.status == status


def test_users(ask: Client, ann: str, admin: str, application: str) -> None:
    new = {"username": "bea", "password": PASSWORD}
    group, groups = USERS + "/{user}/group/", USERS + "/{user}/grouplist/"
    one, me = USERS + "/{user}", USERS + "/me"
    ask("POST", USERS, 201, token=admin, body=new)
    ask("POST", USERS, 409, token=admin, body=new, code="ConflictUserError")
    ask("GET", USERS, 200, token=admin)
    ask("GET", one, 200, token=admin, user="bea")
    ask("GET", one, 404, token=admin, user="nobody", code="NoUserError")
    ask("PUT", USERS, 201, token=admin, body=_change("bea"))
    ask("PUT", USERS, 404, token=admin, body=_change("nobody"), code="NoUserError")
    ask("PUT", me, 201, token=ann, body=_change("ann"))
    in_default = {"groupname": "default"}
    for method in ("PUT", "DELETE"):
        ask("POST", GROUPS, 201, token=admin, body={"groupname": f"of{method}"})
    for method in ("PUT", "DELETE"):
        ask(method, group, 201, token=admin, user="bea", body={"groupname": "ofPUT"})
        ask(method, group, 404, token=admin, user="nobody", body=in_default)
    ask("PUT", groups, 201, token=admin, user="bea", body={"grouplist": ["default"]})
    ask("PUT", groups, 404, token=admin, user="nobody", body={"grouplist": []})
    ask("DELETE", one, 404, token=admin, user="nobody")
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", USERS, {"body": new}),
        ("PUT", USERS, {"body": _change("bea")}),
        ("PUT", me, {"body": _change("bea")}),
        ("DELETE", one, {"user": "bea"}),
        ("PUT", group, {"user": "bea", "body": in_default}),
        ("DELETE", group, {"user": "bea", "body": in_default}),
        ("PUT", groups, {"user": "bea", "body": {"grouplist": []}}),
    ]
    for method, path, sent in changes:
        ask(method, path, 401, token=None, code="UnauthorizedUserError", **sent)
        for token in (ann, application):
            ask(method, path, 403, token=token, code="ForbiddenUserError", **sent)
    ask("GET", one, 401, token=None, user="bea")
    ask("DELETE", one, 200, token=admin, user="bea")


def test_groups(ask: Client, ann: str, admin: str, application: str) -> None:
    one, members = GROUPS + "/{group}", GROUPS + "/{group}/userlist"
    new = {"groupname": "team", "extension": {"acls": {"virtualClusters": ["default"]}}}
    change = {"data": {"groupname": "team", "description": "ours"}, "patch": True}
    ask("POST", GROUPS, 201, token=admin, body=new)
    ask("GET", GROUPS, 200, token=admin)
    ask("GET", one, 200, token=admin, group="team")
    ask("GET", one, 404, token=admin, group="none", code="NoGroupError")
    ask("GET", members, 200, token=admin, group="default")
    ask("PUT", GROUPS, 201, token=admin, body=change)
    none = {"data": {"groupname": "none"}, "patch": True}
    ask("PUT", GROUPS, 404, token=admin, body=none, code="NoGroupError")
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", GROUPS, {"body": new}),
        ("PUT", GROUPS, {"body": change}),
        ("DELETE", one, {"group": "team"}),
    ]
    for method, path, sent in changes:
        ask(method, path, 401, token=None, **sent)
        for token in (ann, application):
            ask(method, path, 403, token=token, **sent)
    ask("GET", one, 401, token=None, group="team")
    ask("GET", members, 401, token=None, group="team")
    ask("DELETE", one, 201, token=admin, group="team")


def test_what_there_is(ask: Client, ann: str, admin: str) -> None:
    clusters, storages = "/api/v2/virtual-clusters", "/api/v2/storages"
    ask("GET", clusters, 200, token=ann)
    ask("GET", clusters + "/{vc}", 200, token=ann, vc="default")
    ask("GET", clusters + "/{vc}", 404, token=ann, vc="none", code="NoVirtualClusterError")
    ask("GET", storages, 200, token=ann)
    ask("GET", storages + "/{storage}", 404, token=ann, storage="none", code="NoStorageError")
    for kind in ("nodes", "pods"):
        ask("GET", f"/api/v2/kubernetes/{kind}", 200, token=admin)
        ask("GET", f"/api/v2/kubernetes/{kind}", 401, token=None)
        ask("GET", f"/api/v2/kubernetes/{kind}", 403, token=ann, code="ForbiddenUserError")


def test_handing_jobs_in(ask: Client, ann: str) -> None:
    role = a_task_role("default", "true")
    ask("POST", "/api/v2/jobs", 202, token=ann, text=version_one("first", role))
    ask(
        "POST",
        "/api/v2/jobs",
        409,
        token=ann,
        text=version_one("first", role),
        code="ConflictJobError",
    )
    for cluster, status, code in (
        ("none", 400, "NoVirtualClusterError"),
        ("closed", 403, "ForbiddenUserError"),
    ):
        text = version_one("second", role, virtualCluster=cluster)
        ask("POST", "/api/v2/jobs", status, token=ann, text=text, code=code)


def test_a_job_from_its_submit_to_its_end(ask: Client, ann: str, tmp_path: Path) -> None:
    """Each answer is asked for while the job waits, runs, and has ended in each way."""
    go, here = tmp_path / "go", {"user": "ann", "job": "whole"}
    text = version_one("whole", a_task_role("ps_server", LOOP.format(go=go)))
    ask("POST", "/api/v2/jobs", 202, token=ann, text=text)
    _look_at_everything(ask, ann, "whole", "ps_server")
    wait_for(ask.server, ann, "whole", "RUNNING")
    _look_at_everything(ask, ann, "whole", "ps_server")
    task = {"jobAttemptId": 0, "taskRoleName": "ps_server", "taskIndex": 0, "taskAttemptId": 0}
    ask("GET", LOGS, 200, token=ann, **here, **task)
    ask("GET", LOGS, 200, token=ann, query="?tailMode=true", **here, **task)
    for method, status in (("PUT", 200), ("DELETE", 200)):
        ask(method, JOB + "/tag", status, token=ann, body={"value": "mine"}, **here)
        ask(method, JOB + "/tag", 400, token=ann, body={"value": "a,b"}, **here)
        gone = {"user": "ann", "job": "none"}
        ask(method, JOB + "/tag", 404, token=ann, body={"value": "mine"}, code="NoJobError", **gone)
    ask("DELETE", JOB + "/tag", 404, token=ann, body={"value": "no"}, code="NoTagError", **here)
    go.touch()
    wait_for(ask.server, ann, "whole", "SUCCEEDED")
    _look_at_everything(ask, ann, "whole", "ps_server")


@pytest.mark.parametrize(
    ("name", "command", "end"),
    [("failed", "echo no; exit 3", "FAILED"), ("killed", "kill -9 $$", "FAILED")],
)
def test_a_job_that_fails(ask: Client, ann: str, name: str, command: str, end: str) -> None:
    text = version_one(name, a_task_role("default", command), retryCount=1)
    ask("POST", "/api/v2/jobs", 202, token=ann, text=text)
    wait_for(ask.server, ann, name, end)
    _look_at_everything(ask, ann, name, "default")


def test_a_job_that_is_stopped(ask: Client, ann: str, tmp_path: Path) -> None:
    here, change = {"user": "ann", "job": "stopped"}, JOB + "/executionType"
    text = version_one("stopped", a_task_role("default", LOOP.format(go=tmp_path / "never")))
    ask("POST", "/api/v2/jobs", 202, token=ann, text=text)
    ask("PUT", change, 400, token=ann, body={"value": "PAUSE"}, **here)
    ask("PUT", change, 202, token=ann, body={"value": "STOP"}, **here)
    assert state_of(ask.server, ann, "stopped") in ("STOPPING", "STOPPED")
    wait_for(ask.server, ann, "stopped", "STOPPED")
    ask("PUT", change, 202, token=ann, body={"value": "START"}, **here)
    assert state_of(ask.server, ann, "stopped") == "STOPPED"
    _look_at_everything(ask, ann, "stopped", "default")
    ask("PUT", change, 404, token=ann, body={"value": "STOP"}, user="ann", job="none")


def test_what_is_not_there(ask: Client, ann: str) -> None:
    ask("POST", "/api/v2/jobs", 202, token=ann, text=version_one("there", a_task_role("r", "true")))
    none = {"user": "ann", "job": "none"}
    for path in ("", "/config", "/events", "/job-attempts"):
        ask("GET", JOB + path, 404, token=ann, code="NoJobError", **none)
    ask("GET", JOB + "/attempts/{jobAttemptId}", 404, token=ann, jobAttemptId=0, **none)
    ask("GET", JOB + "/job-attempts/{attemptIndex}", 404, token=ann, attemptIndex=0, **none)
    there = {"user": "ann", "job": "there", "jobAttemptId": 0}
    task = {"taskRoleName": "none", "taskIndex": 0}
    ask("GET", TASK, 404, token=ann, code="NoTaskError", **there, **task)
    task = {"taskRoleName": "r", "taskIndex": 0, "taskAttemptId": 9}
    ask("GET", LOGS, 404, token=ann, code="NoTaskLogError", **there, **task)


def test_nothing_that_is_promised_was_forgotten(contract: Contract, ask: Client) -> None:
    """Runs last: by then the tests above have asked for all of it."""
    assert contract.promised() - contract.seen == set(NOT_HERE)


@pytest.mark.parametrize(
    ("schema", "path", "gone"),
    [
        ("JobDetail", JOB, ("jobStatus", "appCreatedTime")),
        ("JobDetail", JOB, ("taskRoles", "r", "taskStatuses")),
        ("JobDetail", JOB, ("name",)),
        ("JobSummary", "/api/v2/jobs", (0, "subState")),
        ("JobEventsWithTotalCount", JOB + "/events", ("data", 0, "lastTimestamp")),
        ("VirtualCluster", "/api/v2/virtual-clusters/default", ("resourcesGuaranteed",)),
    ],
)
def test_an_answer_with_one_field_less_is_found(
    ask: Client, ann: str, schema: str, path: str, gone: tuple[Any, ...]
) -> None:
    answer = ask.server.ask("GET", path.format(user="ann", job="there"), ann).json
    ask.contract.validate(ask.contract.schema(schema), answer)
    place = answer
    for step in gone[:-1]:
        place = place[step]
    del place[gone[-1]]
    with pytest.raises(jsonschema_rs.ValidationError, match="is a required property"):
        ask.contract.validate(ask.contract.schema(schema), answer)


def _change(name: str) -> dict[str, Any]:
    return {"data": {"username": name, "email": "new@example.org"}, "patch": True}


def _look_at_everything(ask: Client, token: str, name: str, role: str) -> None:
    here = {"user": "ann", "job": name}
    ask("GET", "/api/v2/jobs", 200, token=token)
    ask("GET", "/api/v2/jobs", 200, token=token, query="?withTotalCount=true&limit=2")
    for path in ("", "/config", "/events", "/job-attempts", "/job-attempts/healthz"):
        ask("GET", JOB + path, 200, token=token, **here)
    attempt = ask("GET", JOB, 200, token=token, **here).json["jobStatus"]["attemptId"]
    for number in range(attempt + 1):
        ask("GET", JOB + "/attempts/{jobAttemptId}", 200, token=token, jobAttemptId=number, **here)
        ask(
            "GET",
            JOB + "/job-attempts/{attemptIndex}",
            200,
            token=token,
            attemptIndex=number,
            **here,
        )
        task = {"jobAttemptId": number, "taskRoleName": role, "taskIndex": 0}
        ask("GET", TASK, 200, token=token, **here, **task)
