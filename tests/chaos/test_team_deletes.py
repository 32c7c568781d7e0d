"""A team's server is killed while it deletes jobs: each is there or gone, in the engine and on
record alike."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random, SystemRandom

import pytest

from tests.chaos.team_servers import Member, TeamProcess, eventually, job_text
from tests.chaos.test_team_submits import UNANSWERED

#: How many deletes are cut off; `REGATTA_TURNS=20` is the long version.
KILLS = 5 * int(os.environ.get("REGATTA_TURNS") or 1)
#: Jobs that one request deletes.
MANY = 12
EVERY = "/regatta/v1/namespaces/user-ann/jobs?live=true"
WAYS = ("/regatta/v1/namespaces/user-ann/jobs/{name}", "/api/v1/jobs/ann~{name}")


@pytest.mark.timeout(60 * KILLS)
def test_a_job_and_its_record_go_together_whenever_the_server_is_killed(
    server: TeamProcess, record_property: Callable[[str, object], None]
) -> None:
    seed = int(os.environ.get("REGATTA_SEED") or SystemRandom().randrange(2**32))
    record_property("seed of the kills of a team's server while it deletes", str(seed))
    dice = Random(seed)
    ann = server.account("ann")
    server.start()
    for number in range(KILLS):
        for name in (f"goes-{number}", f"stays-{number}"):
            assert ann.submit(job_text(name, suspend=True), name).status == 201
        way = WAYS[number % len(WAYS)].format(name=f"goes-{number}")
        deleting = threading.Thread(target=_delete, args=(ann, way))
        deleting.start()
        time.sleep(dice.uniform(0, 0.04))  # a moment like any other
        server.kill()
        deleting.join()
        server.start()

        eventually(lambda: _in_engine(ann) == _on_record(ann), "engine and records to agree")
        assert f"stays-{number}" in _on_record(ann)


@pytest.mark.timeout(60 * KILLS)
def test_many_go_with_their_records_whenever_the_server_is_killed(
    server: TeamProcess, record_property: Callable[[str, object], None]
) -> None:
    seed = int(os.environ.get("REGATTA_SEED") or SystemRandom().randrange(2**32))
    record_property("seed of the kills of a team's server while it deletes many", str(seed))
    dice = Random(seed)
    ann = server.account("ann")
    server.start()
    for turn in range(KILLS):
        for number in range(MANY):  # the names are free again, each time
            text = job_text(f"job-{number}", suspend=number % 2 == 0)
            assert ann.submit(text, f"{turn} {number}").status == 201
        deleting = threading.Thread(target=_delete, args=(ann, EVERY))
        deleting.start()
        time.sleep(dice.uniform(0, 0.2))
        server.kill()
        deleting.join()
        server.start()

        eventually(lambda: _in_engine(ann) == _on_record(ann), "engine and records to agree")
        eventually(lambda: ann.ask("DELETE", EVERY).body["left"] == 0, "all to be gone")
        eventually(lambda: not _in_engine(ann) | _on_record(ann), "nothing to be left")


def _delete(ann: Member, way: str) -> None:
    with suppress(*UNANSWERED):
        ann.ask("DELETE", way)


def _in_engine(ann: Member) -> set[str]:
    return {job["metadata"]["name"] for job in ann.ask("GET", "/regatta/v1/jobs").body["items"]}


def _on_record(ann: Member) -> set[str]:
    return {job["name"] for job in ann.ask("GET", "/api/v2/jobs").body}
