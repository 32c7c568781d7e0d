"""Nobody waits while somebody's long list is made: what grows with jobs, tasks or lines is made in
a thread of its own."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import pytest

from regatta.server import responses
from regatta.server.openpai import cluster_routes, user_routes
from regatta.server.openpai.jobs import log_texts, task_routes, v1_job_routes, v2_job_routes
from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import detail_of, log_of, submit, wait_for
from tests.server.team.serving import TeamServer

JOB = "/api/v2/jobs/ann~long"
TASK = f"{JOB}/attempts/0/taskRoles/default/taskIndex/0/attempts"
MINE = "/api/v1/user/ann/jobs"

#: By path: what makes its answer.
MADE: list[tuple[str, ModuleType, str]] = [
    ("/api/v2/jobs", v2_job_routes, "summary"),
    (JOB, v2_job_routes, "detail"),
    (f"{JOB}/attempts/0", v2_job_routes, "detail"),
    (f"{JOB}/job-attempts", v2_job_routes, "job_attempts"),
    (f"{JOB}/job-attempts/0", v2_job_routes, "job_attempts"),
    (f"{JOB}/config", v2_job_routes, "in_v2s_yaml"),
    (f"{JOB}/events", task_routes, "events_shown"),
    (TASK, task_routes, "history_of"),
    (MINE, v1_job_routes, "old_summary"),
    (f"{MINE}/long", v1_job_routes, "detail"),
    (f"{MINE}/long/config", v1_job_routes, "in_yaml"),
    ("/api/v2/virtual-clusters", cluster_routes, "clusters"),
    ("/api/v2/kubernetes/pods", cluster_routes, "pod_list"),
    ("/api/v2/users", user_routes, "user_info"),
    ("/regatta/v1/jobs", responses, "document"),
]


class Threads:
    """Those that a function was called in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> None:
        self.names: set[str] = set()
        real = getattr(where, name)

        def noted(*args: Any, **more: Any) -> Any:
            self.names.add(threading.current_thread().name)
            return real(*args, **more)

        monkeypatch.setattr(where, name, noted)

    def are_not_the_servers(self) -> bool:
        return bool(self.names) and "team-server" not in self.names


@pytest.fixture(scope="module")
def boss(shared: TeamServer) -> str:
    ann = shared.token("ann")
    submit(shared, ann, hello("long", "echo hello"))
    wait_for(shared, ann, "long", "SUCCEEDED")
    return shared.admin_token()


@pytest.mark.parametrize(("path", "where", "name"), MADE, ids=[path for path, *_ in MADE])
def test_an_answer_is_made_in_a_thread(
    shared: TeamServer,
    boss: str,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    where: ModuleType,
    name: str,
) -> None:
    threads = Threads(monkeypatch, where, name)
    answer = shared.ask("GET", path, boss, headers={"Accept": "text/yaml"})
    assert answer.status == 200, answer.body
    assert threads.are_not_the_servers(), threads.names


def test_a_log_is_put_together_in_a_thread(
    shared: TeamServer, boss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = detail_of(shared, boss, "long")["taskRoles"]["default"]["taskStatuses"]
    for query in ("", "?tailMode=true"):
        threads = Threads(monkeypatch, log_texts.TaskLog, "_joined")
        assert log_of(shared, boss, task["containerLog"], query=query).body == b"hello\n"
        assert threads.are_not_the_servers(), threads.names
