"""Server-sent events: batches, resuming, heartbeats, and many followers at once."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlsplit

import pytest

from regatta.api.errors import RegattaError
from regatta.client.channel import API, Query
from regatta.client.event_stream import ServerEvent
from regatta.engines.base import Submission
from regatta.engines.blocking import Blocking
from tests.doors import Regatta, Wire, delete_everything, eventually, shell_job

FOLLOW: Query = {"follow": True}
WITH_STATUS: Query = {"follow": True, "status": True}


@pytest.fixture
def client(regatta: Regatta) -> Iterator[Blocking]:
    client = regatta.client
    yield client
    delete_everything(client)


def finished(client: Blocking, name: str, script: str, **more: int) -> None:
    client.submit(Submission(text=shell_job(name, script, **more)))
    eventually(lambda: client.get("default", name).finished, "the job's end")


@pytest.fixture
def wire(regatta: Regatta) -> Wire:
    return regatta.wire


def logs(
    wire: Wire, name: str, query: Query | None = None, last_id: str = ""
) -> Iterator[ServerEvent]:
    return wire.events(f"/namespaces/default/jobs/{name}/logs", query, last_id)


def texts(events: list[ServerEvent]) -> list[str]:
    return [line[3] for e in events if e.event == "lines" for line in json.loads(e.data)]


def test_lines_travel_in_batches_and_the_stream_says_its_end(client: Blocking, wire: Wire) -> None:
    finished(client, "many", "seq 1 3000")

    events = list(logs(wire, "many"))

    assert texts(events) == [str(i) for i in range(1, 3001)]
    assert events[-1].event == "end"
    assert len(events) < 50


def test_a_stream_resumes_after_the_last_id_without_loss_or_repetition(
    client: Blocking, wire: Wire
) -> None:
    finished(client, "resumed", "seq 1 3000", replicas=2)
    whole = list(logs(wire, "resumed"))
    assert len(whole) > 3

    for cut in range(1, len(whole) - 1):
        before = whole[:cut]
        after = logs(wire, "resumed", last_id=before[-1].id)
        joined = texts(before) + texts(list(after))
        assert sorted(joined) == sorted(texts(whole)), f"cut after event {cut}"


def test_a_bad_position_is_refused(client: Blocking, wire: Wire) -> None:
    finished(client, "positioned", "true")

    with pytest.raises(RegattaError, match="no log position"):
        next(logs(wire, "positioned", last_id="nonsense"))


def test_a_bad_pattern_is_refused_with_the_reason(client: Blocking, wire: Wire) -> None:
    finished(client, "searched", "true")

    with pytest.raises(RegattaError, match="not a regular expression") as caught:
        next(logs(wire, "searched", {"grep": "("}))

    assert caught.value.status == 400


def test_a_pattern_that_takes_for_ever_is_told_and_stops_nobody(
    client: Blocking, wire: Wire
) -> None:
    finished(client, "endless", f"echo {'a' * 40}!")

    *_, last = logs(wire, "endless", {"grep": "(a+)+$"})

    assert last.event == "error"
    assert "takes too long on a line; simplify it" in last.data
    assert client.get("default", "endless").finished


def test_following_with_status_ends_with_the_final_job(client: Blocking, wire: Wire) -> None:
    client.submit(Submission(text=shell_job("told", "echo one; sleep 0.3; echo two")))

    events = list(logs(wire, "told", WITH_STATUS))

    assert texts(events) == ["one", "two"]
    phases = [json.loads(e.data)["status"].get("phase") for e in events if e.event == "job"]
    assert phases[-1] == "Completed"
    assert events[-1].event == "end"


def test_a_watch_tells_what_is_then_what_changes(client: Blocking, wire: Wire) -> None:
    finished(client, "old", "true")
    stream = wire.events("/watch", {"namespace": "default"})
    first = list(islice(stream, 2))
    assert [event.event for event in first] == ["job", "synced"]

    client.submit(Submission(text=shell_job("new")))
    client.delete("default", "old")
    told: set[tuple[str, str]] = set()
    for event in stream:
        data = json.loads(event.data)
        told.add((event.event, data["metadata"]["name"] if event.event == "job" else data[1]))
        if {("job", "new"), ("gone", "old")} <= told:
            break


def test_events_resume_after_their_id(client: Blocking, wire: Wire) -> None:
    finished(client, "eventful", "true")
    known = client.events("default", "eventful")

    stream = wire.events(
        "/events", {"namespace": "default", "job": "eventful", **FOLLOW}, str(known[1].id)
    )

    assert next(stream).id == str(known[2].id)


def test_a_silent_stream_carries_heartbeats(client: Blocking, regatta: Regatta) -> None:
    """Else a client could not tell a quiet job from a dead server."""
    client.submit(Submission(text=shell_job("silent", "sleep 1000")))
    connection = http.client.HTTPConnection(urlsplit(regatta.address.url).netloc, timeout=30)
    path = f"{API}/namespaces/default/jobs/silent/logs?follow=true"
    connection.request("GET", path, headers={"Authorization": f"Bearer {regatta.files.token()}"})
    response = connection.getresponse()

    # One comes at once, with the headers; a second one only where they go on.
    beats = 0
    while beats < 2:
        line = response.readline()
        assert line, "the stream ended"
        beats += line.startswith(b":")
    connection.close()


def test_sixty_followers_leave_the_server_free_to_answer(client: Blocking, wire: Wire) -> None:
    """More than the thread pool that answers requests has threads."""
    client.submit(Submission(text=shell_job("popular", "echo up; sleep 1000")))
    seen = threading.Semaphore(0)
    streams = [logs(wire, "popular", WITH_STATUS) for _ in range(60)]

    def read(stream: Iterator[ServerEvent]) -> None:
        for event in stream:
            if event.event == "lines":
                seen.release()
            if event.event == "end":
                return

    readers = [threading.Thread(target=read, args=(stream,)) for stream in streams]
    for reader in readers:
        reader.start()
    for _ in readers:
        assert seen.acquire(timeout=60)

    assert client.get("default", "popular").status.phase is not None
    client.stop("default", "popular")
    for reader in readers:
        reader.join(60)
    assert not any(reader.is_alive() for reader in readers)
