"""What a task printed, by the links that its log has."""

from __future__ import annotations

import pytest

from tests.openpai_configs import hello
from tests.server.openpai.jobs_of_openpai import log_of, submit, wait_for
from tests.server.team.serving import TeamServer


@pytest.mark.parametrize("stream", ["stdout", "stderr", "all"])
def test_a_task_that_printed_nothing_has_an_empty_log(shared: TeamServer, stream: str) -> None:
    ann, name = shared.token("ann"), f"silent_{stream}"
    submit(shared, ann, hello(name, "true"))
    detail = wait_for(shared, ann, name, "SUCCEEDED")
    (task,) = detail["taskRoles"]["default"]["taskStatuses"]

    whole = log_of(shared, ann, task["containerLog"], stream)
    end = log_of(shared, ann, task["containerLog"], stream, "?tail-mode=true")

    assert (whole.status, whole.body) == (200, b"")
    assert (end.status, end.body) == (206, b"")
