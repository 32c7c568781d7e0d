"""Jobs through OpenPAI's v2 API, as its users knew them, over a real server."""

from __future__ import annotations

import http.client
import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from regatta.server.accounts.visibility import Visibility
from regatta.server.bounds import connections
from regatta.server.team.team_settings import TeamSettings
from tests.doors import eventually
from tests.openpai_configs import a_task_role, hello, two_roles, version_one, version_two
from tests.patience import Patience
from tests.server.openpai.jobs_of_openpai import (
    LOOP,
    detail_of,
    log_of,
    state_of,
    submit,
    wait_for,
)
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server

JOBS = "/api/v2/jobs"


def names(server: TeamServer, token: str, query: str = "") -> list[str]:
    return [job["name"] for job in server.ask("GET", f"{JOBS}?{query}", token).json]


def stop(server: TeamServer, token: str, name: str) -> None:
    answer = server.ask("PUT", f"{JOBS}/ann~{name}/executionType", token, body={"value": "STOP"})
    assert answer.status == 202, answer.body


def test_the_guides_hello_world_waits_runs_prints_and_succeeds(
    on_both: TeamServer, tmp_path: Path
) -> None:
    ann, go = on_both.token("ann"), tmp_path / "go"
    submit(on_both, ann, hello("Tensorflow-Cifar10", LOOP.format(go=go)))
    first = detail_of(on_both, ann, "Tensorflow-Cifar10")["jobStatus"]
    assert first["state"] in ("WAITING", "RUNNING")
    assert (first["state"] == "WAITING") == bool(first["waitingReason"])
    running = wait_for(on_both, ann, "Tensorflow-Cifar10", "RUNNING")
    (task,) = running["taskRoles"]["default"]["taskStatuses"]
    assert task["taskState"] == "RUNNING"
    assert set(task["containerPorts"]) == {"http", "ssh"}
    for stream, words in (("stdout", b"begun\n"), ("stderr", b"aside\n")):
        eventually(
            lambda s=stream, w=words: log_of(on_both, ann, task["containerLog"], s).body == w,
            f"its words on {stream}",
        )
    go.touch()
    ended = wait_for(on_both, ann, "Tensorflow-Cifar10", "SUCCEEDED")
    status = ended["jobStatus"]
    assert (status["appExitCode"], status["appExitSpec"]["phrase"]) == (0, "Succeeded")
    assert status["submissionTime"] <= status["createdTime"] <= status["launchedTime"]
    assert status["launchedTime"] <= status["completedTime"]
    (task,) = ended["taskRoles"]["default"]["taskStatuses"]
    assert (task["taskState"], task["containerExitCode"]) == ("SUCCEEDED", 0)
    assert log_of(on_both, ann, task["containerLog"]).body == b"begun\naside\ndone\n"


def test_two_roles_find_each_other_and_keep_the_names_that_their_author_gave_them(
    shared: TeamServer,
) -> None:
    ann = shared.token("ann")
    submit(shared, ann, two_roles("Two.Roles"))
    wait_for(shared, ann, "Two.Roles", "SUCCEEDED")

    def when_all_have_ended() -> Any:
        shown = detail_of(shared, ann, "Two.Roles")
        tasks = shown["taskRoles"]["ps_server"]["taskStatuses"]
        return shown if {task["taskState"] for task in tasks} == {"STOPPED"} else None

    ended = eventually(when_all_have_ended, "the end of its servers on record")
    assert list(ended["taskRoles"]) == ["ps_server", "Worker"]
    workers = ended["taskRoles"]["Worker"]["taskStatuses"]
    assert [task["taskState"] for task in workers] == ["SUCCEEDED", "SUCCEEDED"]
    said = log_of(shared, ann, workers[1]["containerLog"]).body.decode().splitlines()
    assert said == ["found 0", "found 1", "ps_server has 2", "Worker has 2"]
    servers = ended["taskRoles"]["ps_server"]["taskStatuses"]
    assert [(task["taskState"], task["containerExitCode"]) for task in servers] == [
        ("STOPPED", -220),
        ("STOPPED", -220),
    ]


def test_what_was_accepted_is_in_the_next_answer(on_both: TeamServer) -> None:
    ann = on_both.token("ann")
    for number in range(12):
        name = f"at_once_{number}"
        answer = submit(on_both, ann, version_two(name, ["true"]))
        assert answer.json == {
            "status": 202,
            "message": f"Update job {name} for user ann successfully.",
        }
        assert names(on_both, ann)[0] == name
        shown = detail_of(on_both, ann, name)
        (task,) = shown["taskRoles"]["worker_0"]["taskStatuses"]
        assert task["taskIndex"] == 0


def test_a_job_says_why_it_waits(shared: TeamServer, tmp_path: Path) -> None:
    ann, go = shared.token("ann"), tmp_path / "go"
    large = {"cpuNumber": 6}
    submit(shared, ann, version_one("takes", a_task_role("r", LOOP.format(go=go), **large)))
    wait_for(shared, ann, "takes", "RUNNING")
    submit(shared, ann, version_one("waits", a_task_role("r", "true", **large)))
    path = f"{JOBS}/ann~waits"
    patience = Patience(60)
    while "cpu" not in detail_of(shared, ann, "waits")["jobStatus"]["waitingReason"].lower():
        assert state_of(shared, ann, "waits") == "WAITING"
        assert not patience.over
    why = detail_of(shared, ann, "waits")["jobStatus"]["waitingReason"]
    newest = shared.ask("GET", f"{path}/events", ann).json["data"][0]
    assert newest["message"] == why
    assert shared.ask("GET", f"{JOBS}?keyword=waits", ann).json[0]["waitingReason"] == why
    warnings = shared.ask("GET", f"{path}/events?type=Warning", ann).json
    assert all(event["type"] == "Warning" for event in warnings["data"])
    assert shared.ask("GET", f"{path}/events?type=Odd", ann).code == (400, "InvalidParametersError")
    go.touch()
    wait_for(shared, ann, "waits", "SUCCEEDED")


def test_a_stopped_job_is_stopping_at_once_and_what_it_printed_stays(
    on_both: TeamServer, tmp_path: Path
) -> None:
    ann = on_both.token("ann")
    command = f"trap 'until [ -e {tmp_path}/go ]; do sleep 0.05; done' TERM\n"
    submit(on_both, ann, hello("ends", command + LOOP.format(go=tmp_path / "never")))
    running = wait_for(on_both, ann, "ends", "RUNNING")
    (task,) = running["taskRoles"]["default"]["taskStatuses"]
    eventually(
        lambda: b"begun\n" in log_of(on_both, ann, task["containerLog"]).body, "its first word"
    )
    stop(on_both, ann, "ends")
    stopping = detail_of(on_both, ann, "ends")["jobStatus"]
    assert (stopping["state"], stopping["executionType"]) == ("STOPPING", "STOP")
    assert names(on_both, ann, "state=STOPPING") == ["ends"]
    (tmp_path / "never").touch()
    (tmp_path / "go").touch()
    ended = wait_for(on_both, ann, "ends", "STOPPED")
    assert ended["jobStatus"]["appExitCode"] == -210
    (task,) = ended["taskRoles"]["default"]["taskStatuses"]
    assert b"begun\n" in log_of(on_both, ann, task["containerLog"]).body


def test_a_failed_job_says_who_failed_and_how_and_each_attempt_is_kept(
    shared: TeamServer, tmp_path: Path
) -> None:
    ann = shared.token("ann")
    fails = f"echo try; [ -e {tmp_path}/once ] && exit 7; touch {tmp_path}/once; exit 5"
    roles = (a_task_role("ps_server", "true"), a_task_role("Worker", fails))
    submit(shared, ann, version_one("fails", *roles, retryCount=1))
    ended = wait_for(shared, ann, "fails", "FAILED")["jobStatus"]
    assert (ended["appExitCode"], ended["retries"], ended["attemptId"]) == (7, 1, 1)
    assert ended["retryDetails"] == {"user": 1, "platform": 0, "resource": 0}
    assert ended["appExitTriggerMessage"] == (
        "FailedTaskCount 1 has reached MinFailedTaskCount 1 in the TaskRole"
    )
    assert ended["appExitDiagnostics"] == "Worker[0] exited with code 7 (attempt 2 of 2)\ntry"
    assert ended["appExitTriggerTaskRoleName"] == "Worker"
    assert ended["appExitTriggerTaskIndex"] == 0
    assert ended["appExitSpec"]["type"] == "UNKNOWN_FAILURE"
    first = shared.ask("GET", f"{JOBS}/ann~fails/attempts/0", ann).json
    assert first["jobStatus"]["attemptState"] == "FAILED"
    assert first["jobStatus"]["appExitCode"] == 5
    (task,) = first["taskRoles"]["Worker"]["taskStatuses"]
    assert (task["taskState"], task["containerExitCode"]) == ("FAILED", 5)
    assert log_of(shared, ann, task["containerLog"]).body == b"try\n"
    attempts = shared.ask("GET", f"{JOBS}/ann~fails/job-attempts", ann).json
    assert [(one["attemptIndex"], one["isLatest"]) for one in attempts] == [(1, True), (0, False)]
    missing = shared.ask("GET", f"{JOBS}/ann~fails/attempts/2", ann)
    assert missing.code == (404, "NoJobError")


def test_no_answer_about_a_job_has_a_name_that_its_author_did_not_give(
    shared: TeamServer,
) -> None:
    ann = shared.token("ann")
    role = a_task_role("w.x", "exit 232", 2, minFailedTaskCount=2)
    submit(shared, ann, version_one("Names_1", role, retryCount=1))
    wait_for(shared, ann, "Names_1", "FAILED")
    path = f"{JOBS}/ann~Names_1"
    eventually(lambda: _failures(shared, ann, path), "the event on record")
    paths = [path, f"{path}/events", f"{path}/job-attempts", "/api/v1/user/ann/jobs/Names_1"]
    paths.append(f"{path}/attempts/0/taskRoles/w.x/taskIndex/0/attempts")
    for asked in paths:
        said = shared.ask("GET", asked, ann).body.decode()
        plain = re.sub(r'"debugId":"[^"]*"', "", said)
        assert not re.search(r"names-1|w-x-\d|noRetry", plain), asked
    (failed,) = _failures(shared, ann, path)
    assert re.match(r"w\.x\[\d\] exited with code 232", failed["message"])
    assert failed["taskName"] == f"ann~Names_1-w.x-{failed['taskIndex']}"
    tasks = detail_of(shared, ann, "Names_1")["taskRoles"]["w.x"]["taskStatuses"]
    assert failed["podUid"] == tasks[failed["taskIndex"]]["containerId"]


def _failures(server: TeamServer, token: str, path: str) -> list[Any]:
    """A recorder hears of events and of states by two streams."""
    events = server.ask("GET", f"{path}/events", token).json["data"]
    return [event for event in events if event["reason"] == "ReplicaFailed"]


def test_what_a_list_says_of_a_waiting_job_is_in_its_authors_names(shared: TeamServer) -> None:
    ann = shared.token("ann")
    submit(shared, ann, version_one("Again_1", a_task_role("w.x", "exit 3"), retryCount=50))
    patience = Patience(60)
    while True:
        (job,) = shared.ask("GET", f"{JOBS}?keyword=Again_1", ann).json
        if "exited" in (job["waitingReason"] or ""):
            break
        assert not patience.over, job
    assert job["waitingReason"].startswith("w.x[0] exited with code 3; starting again")
    stop(shared, ann, "Again_1")


def test_a_job_that_can_never_start_is_refused_by_its_own_name(shared: TeamServer) -> None:
    large = version_one("Too.Large", a_task_role("w.x", "true", cpuNumber=5000))
    refused = shared.ask("POST", JOBS, shared.token("ann"), text=large)
    assert refused.code == (400, "InvalidParametersError")
    assert refused.json["message"].startswith("Too.Large can never start")


def test_a_storage_that_a_config_names_is_not_found(shared: TeamServer) -> None:
    ann = shared.token("ann")
    named = version_two("stored", ["true"], extras={"storages": [{"name": "team_nfs"}]})
    refused = shared.ask("POST", JOBS, ann, text=named)
    assert refused.code == (404, "NoStorageError")
    assert "Storage team_nfs is not found" in refused.json["message"]
    assert "PAI_DEFAULT_FS_URI" in refused.json["message"]
    assert "stored" not in names(shared, ann)
    # What its author is given without asking, and what v1 has no such field for.
    usual = submit(shared, ann, version_two("usual", ["true"], extras={"storages": []}))
    assert "extras.storages" in usual.headers["X-Warning"]
    submit(shared, ann, hello("free", "true", extras={"storages": [{"name": "team_nfs"}]}))


def test_a_file_that_names_a_storage_runs_with_a_warning_where_files_run(
    shared: TeamServer,
) -> None:
    named = version_two("by_file", ["true"], extras={"storages": [{"name": "team_nfs"}]})
    sent = shared.ask("POST", "/regatta/v1/jobs", shared.token("ann"), body={"text": named})
    assert sent.status == 201, sent.body
    assert [one["path"] for one in sent.json["warnings"]] == ["extras.storages"]


def test_who_may_not_change_a_job_hears_what_was_refused(tmp_path: Path) -> None:
    settings = TeamSettings(rates=NO_LIMITS, visibility=Visibility.ALL)
    with a_team_server(tmp_path, settings=settings) as server:
        submit(server, server.token("ann"), hello("theirs", "true"))
        eve, path = server.token("eve"), f"{JOBS}/ann~theirs"
        for method, asked, verb in (
            ("PUT", f"{path}/executionType", "execute"),
            ("PUT", f"{path}/tag", "tag"),
            ("DELETE", f"{path}/tag", "tag"),
            ("DELETE", "/api/v1/user/ann/jobs/theirs", "delete"),
        ):
            refused = server.ask(method, asked, eve, body={"value": "STOP"})
            assert refused.code == (403, "ForbiddenUserError")
            said = f"User eve is not allowed to {verb} job ann~theirs."
            assert refused.json["message"] == said


def test_a_log_has_its_end_by_either_spelling_and_links_end(server: TeamServer) -> None:
    ann = server.token("ann")
    command = "for i in {1..6000}; do echo line $i; done; echo last"
    submit(server, ann, hello("long", command))
    ended = wait_for(server, ann, "long", "SUCCEEDED")
    log = ended["taskRoles"]["default"]["taskStatuses"][0]["containerLog"]
    whole = log_of(server, ann, log, "stdout")
    assert whole.status == 200
    assert whole.headers.get_content_type() == "text/plain"
    assert whole.body.count(b"\n") == 6001
    for query in ("?tail-mode=true", "?tailMode=true"):
        tail = log_of(server, ann, log, "all", query)
        assert tail.status == 206
        assert tail.body == whole.body[-16384:]
    assert log_of(server, ann, log, "stderr", "?tail-mode=true").body == b""
    uri = server.ask("GET", log, ann).json["locations"][0]["uri"].removeprefix(server.url)
    assert server.ask("GET", uri).status == 200
    assert server.ask("GET", uri + "x").code == (404, "NoTaskLogError")
    server.pass_time(121)
    assert server.ask("GET", uri).code == (403, "ForbiddenUserError")


def test_a_log_goes_with_its_job(shared: TeamServer) -> None:
    ann = shared.token("ann")
    submit(shared, ann, hello("goes", "echo here"))
    ended = wait_for(shared, ann, "goes", "SUCCEEDED")
    log = ended["taskRoles"]["default"]["taskStatuses"][0]["containerLog"]
    uri = shared.ask("GET", log, ann).json["locations"][0]["uri"].removeprefix(shared.url)
    assert shared.ask("GET", uri).body == b"here\n"
    assert shared.ask("DELETE", "/api/v1/user/ann/jobs/goes", ann).status == 202
    assert shared.ask("GET", uri).code == (404, "NoTaskLogError")
    assert "goes" not in names(shared, ann)


def test_a_task_that_has_not_begun_has_no_log(shared: TeamServer, tmp_path: Path) -> None:
    ann, go = shared.token("ann"), tmp_path / "go"
    large = {"cpuNumber": 6}
    submit(shared, ann, version_one("ahead", a_task_role("r", LOOP.format(go=go), **large)))
    wait_for(shared, ann, "ahead", "RUNNING")
    submit(shared, ann, version_one("behind", a_task_role("r", "true", **large)))
    task = detail_of(shared, ann, "behind")["taskRoles"]["r"]["taskStatuses"][0]
    assert task["taskState"] == "WAITING"
    refused = shared.ask("GET", task["containerLog"], ann)
    assert refused.code == (404, "NoTaskLogError")
    go.touch()
    wait_for(shared, ann, "behind", "SUCCEEDED")


def test_a_log_is_only_for_those_who_see_the_job(shared: TeamServer) -> None:
    ann, bob = shared.token("ann"), shared.token("bob")
    submit(shared, ann, hello("private", "echo mine"))
    ended = wait_for(shared, ann, "private", "SUCCEEDED")
    log = ended["taskRoles"]["default"]["taskStatuses"][0]["containerLog"]
    assert shared.ask("GET", log, bob).code == (404, "NoJobError")
    assert shared.ask("GET", f"{JOBS}/ann~private", bob).code == (404, "NoJobError")
    assert "private" not in names(shared, bob)


def test_lists_filter_sort_page_and_count(server: TeamServer) -> None:
    ann = server.token("ann")
    for name in ("b_list", "a_list", "c_other"):
        submit(server, ann, version_two(name, ["true"]))
        wait_for(server, ann, name, "SUCCEEDED")
    assert names(server, ann) == ["c_other", "a_list", "b_list"]
    assert names(server, ann, "order=jobName,ASC") == ["a_list", "b_list", "c_other"]
    assert names(server, ann, "keyword=LIST&order=jobName,DESC&limit=1&offset=1") == ["a_list"]
    counted = server.ask("GET", f"{JOBS}?withTotalCount=true&limit=1&keyword=list", ann).json
    assert (counted["totalCount"], len(counted["data"])) == (2, 1)
    tagged = server.ask("PUT", f"{JOBS}/ann~a_list/tag", ann, body={"value": "keep"})
    assert tagged.json["message"] == "Add tag keep for job ann~a_list successfully."
    assert names(server, ann, "tagsContain=keep,other") == ["a_list"]
    assert names(server, ann, "tagsNotContain=keep") == ["c_other", "b_list"]
    assert names(server, ann, "state=WAITING,RUNNING") == []
    assert names(server, ann, "username=bob") == []
    over = server.ask("GET", f"{JOBS}?limit=50001", ann)
    assert over.code == (400, "InvalidParametersError")


def test_a_config_comes_back_as_v2_without_its_secrets(shared: TeamServer) -> None:
    ann = shared.token("ann")
    secret = "dont-tell-4711"
    text = version_two("hides", ["echo <% $secrets.key %> > /dev/null"], secrets={"key": secret})
    submit(shared, ann, text)
    submit(shared, ann, hello("old", "true"))
    answers = [shared.ask("GET", f"{JOBS}/ann~{name}/config", ann) for name in ("hides", "old")]
    for answer in answers:
        assert answer.headers.get_content_type() == "text/yaml"
        assert yaml.safe_load(answer.body)["protocolVersion"] == 2
        assert secret.encode() not in answer.body
    assert yaml.safe_load(answers[0].body)["secrets"] == "******"
    wait_for(shared, ann, "hides", "SUCCEEDED")
    assert secret.encode() not in shared.ask("GET", f"{JOBS}/ann~hides", ann).body


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("{", "InvalidProtocolError", "never closed"),
        ("", "InvalidProtocolError", ""),
        ("just words", "InvalidProtocolError", ""),
        (b"\xff\xfe", "InvalidProtocolError", "UTF-8"),
        ("jobName: x", "InvalidParametersError", "taskRoles"),
        ("protocolVersion: 2\nname: a b", "InvalidProtocolError", "name"),
    ],
)
def test_what_is_no_config_is_refused_with_what_is_wrong(
    shared: TeamServer, text: Any, code: str, said: str
) -> None:
    answer = shared.ask("POST", JOBS, shared.token("ann"), text=text)
    assert answer.code == (400, code)
    assert said in answer.json["message"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"value": 3}', b"{", b'{"value": "pause"}', b'{"value": "\xff"}']
)
def test_a_body_that_changes_nothing_is_refused(shared: TeamServer, body: bytes) -> None:
    ann = shared.token("ann")
    shared.ask("POST", JOBS, ann, text=hello("changed", "true"))
    answer = shared.ask("PUT", f"{JOBS}/ann~changed/executionType", ann, text=body)
    assert answer.code == (400, "InvalidParametersError")


def test_warnings_are_in_a_header_that_any_client_can_read(shared: TeamServer) -> None:
    ann = shared.token("ann")
    more = {"retryCount": -2, "extras": {"submitFrom": "ü"}, "gpuType": "Tesla-V100"}
    answer = submit(shared, ann, hello("warned", "true", **more))
    assert "retryCount" in answer.headers["X-Warning"]
    assert "gpuType" in answer.headers["X-Warning"]
    stop(shared, ann, "warned")


def test_the_audit_names_the_job(shared: TeamServer) -> None:
    ann = shared.token("ann")
    submit(shared, ann, hello("audited", "true"))
    stop(shared, ann, "audited")
    found = shared.ask("GET", "/regatta/v1/audit", shared.admin_token()).body
    assert found.count(b"ann~audited") >= 2


def test_a_link_may_be_read_slowly(server: TeamServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever shows no token is turned out soon; a link that we signed is as good as one."""
    ann = server.token("ann")
    # More than two sockets' buffers hold, so that the server cannot be done before we are.
    submit(server, ann, hello("flood", f"yes {'x' * 1000} | head -n 30000"))
    ended = wait_for(server, ann, "flood", "SUCCEEDED")
    log = ended["taskRoles"]["default"]["taskStatuses"][0]["containerLog"]
    uri = server.ask("GET", log, ann).json["locations"][0]["uri"].removeprefix(server.url)
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    netloc = urlsplit(server.url).netloc
    with closing(http.client.HTTPConnection(netloc, timeout=60)) as connection:
        connection.request("GET", uri)
        answer = connection.getresponse()
        until = time.monotonic() + 5 * connections.REQUEST_SECONDS
        while time.monotonic() < until:
            answer.read(1)
            time.sleep(0.02)
        rest = answer.read()
    assert rest.count(b"\n") == 30000


def test_an_empty_body_is_told_what_to_send(server: TeamServer) -> None:
    sent = server.ask("POST", "/api/v2/jobs", server.token("ann"), text="")
    assert sent.code == (400, "InvalidProtocolError")
    assert "the body is empty; send the job's config, YAML" in sent.json["message"]
