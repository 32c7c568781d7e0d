"""A server as an engine: what is asked once, what is said twice, what streams carry."""

from __future__ import annotations

import pytest

from regatta.api.errors import PatternTooSlow, Unanswered
from regatta.api.job import Job
from regatta.engines.base import Gone, LogBatch, LogQuery, Lost, Remark, Shell, Submission, Synced
from regatta.engines.blocking import Blocking
from regatta.engines.inventory import EventView
from tests.client.scripted import (
    END,
    SYNCED,
    Answer,
    Scripted,
    a_job,
    a_line,
    event,
    hang_up,
    lines,
    reply,
    streams,
)

SUBMISSION = Submission(text="kind: PaddleJob", source="job.yaml", key="k1")
ACCEPTED = reply(201, {"job": a_job(), "warnings": [], "replaced": ""})
INFO = {"version": "9.9", "pid": 1, "engine": "kubernetes", "namespace": "team"}


def test_traits_are_asked_for_once(engine: Blocking, server: Scripted) -> None:
    server.answers(reply(200, {**INFO, "takesShell": False}))

    first, second = engine.traits(), engine.traits()

    assert (first.engine, first.namespace, first.takes_shell) == ("kubernetes", "team", False)
    assert first == second
    assert [asked.path for asked in server.asked] == ["/regatta/v1/server"]


def test_a_submission_travels_flat_with_its_shell_inside(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(ACCEPTED, ACCEPTED)

    engine.submit(SUBMISSION, Shell(directory="/work", no_gpu=True))
    engine.submit(SUBMISSION)

    with_shell, without = (asked.body for asked in server.asked)
    assert (with_shell["text"], with_shell["key"]) == ("kind: PaddleJob", "k1")
    assert (with_shell["shell"]["directory"], with_shell["shell"]["noGpu"]) == ("/work", True)
    assert without["shell"] is None


def test_a_submit_whose_answer_is_lost_is_said_again_with_its_key(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(hang_up, ACCEPTED)

    assert engine.submit(SUBMISSION).job.name == "one"

    assert [asked.body["key"] for asked in server.asked] == ["k1", "k1"]


def test_a_submit_without_a_key_is_never_said_twice(engine: Blocking, server: Scripted) -> None:
    server.answers(hang_up, ACCEPTED)

    with pytest.raises(Unanswered):
        engine.submit(Submission(text="x"))

    assert len(server.asked) == 1


AWAY = reply(503, {"code": "ServerUnreachable", "message": "moving house"})


@pytest.mark.parametrize("second", [hang_up, AWAY], ids=["no answer again", "nobody there"])
def test_a_submit_that_is_lost_twice_may_have_arrived(
    engine: Blocking, server: Scripted, second: Answer
) -> None:
    server.answers(hang_up, second)

    with pytest.raises(Unanswered):
        engine.submit(SUBMISSION)

    assert len(server.asked) == 2


@pytest.mark.parametrize(("stored", "word"), [(False, "true"), (True, "stored")])
def test_a_preview_says_which_one(
    engine: Blocking, server: Scripted, stored: bool, word: str
) -> None:
    server.answers(reply(200, {"job": a_job(), "objects": [{"kind": "Pod"}], "notes": ["n"]}))

    preview = engine.preview(SUBMISSION, stored=stored)

    assert server.asked[0].path == f"/regatta/v1/jobs?dryRun={word}"
    assert preview.objects == ({"kind": "Pod"},)
    assert preview.notes == ("n",)


def test_capacity_has_nodes_replicas_and_notes(engine: Blocking, server: Scripted) -> None:
    node = {
        "name": "",
        "cpus": 2,
        "cpusHeld": 1,
        "memoryBytes": 10,
        "memoryHeld": 5,
        "gpus": 0,
        "gpusHeld": 0,
        "pods": 10,
        "podsHeld": 1,
        "cpusUsed": 0.5,
    }
    server.answers(reply(200, {"nodes": [node], "replicas": [], "notes": ["blind"]}))

    capacity = engine.capacity("team")

    assert server.asked[0].path == "/regatta/v1/capacity?namespace=team"
    assert capacity.nodes[0].cpus_used == 0.5
    assert capacity.notes == ("blind",)


# Logs


def test_a_batch_says_where_to_go_on_from(engine: Blocking, server: Scripted) -> None:
    server.answers(
        streams(lines("a", id="u1=0:0:2"), lines("b", id="u1=0:0:4;u2=7"), END),
        streams(END),
    )

    first, second = engine.logs("default", "one", LogQuery(role="worker", tail=5))
    list(engine.logs("default", "one", LogQuery(after=second.after)))

    assert first == LogBatch((a_line("a"),), {"u1": "0:0:2"})
    assert second == LogBatch((a_line("b"),), {"u1": "0:0:4", "u2": "7"})
    assert server.asked[0].path.endswith("/logs?role=worker&tail=5")
    assert server.asked[1].headers["Last-Event-ID"] == "u1=0:0:4;u2=7"


def test_following_goes_on_after_the_last_line_that_came(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(
        streams(event("job", a_job()), lines("a", id="u=1"), in_order=False),
        streams(lines("b", id="u=2")),
        streams(event("remark", {"text": "gone"}), event("job", a_job(phase="Completed")), END),
    )

    updates = list(engine.follow("default", "one", LogQuery(after={"u": "0"})))

    told = [u.status.phase if isinstance(u, Job) else u for u in updates]
    assert told == [
        "Running",
        LogBatch((a_line("a"),), {"u": "1"}),
        told[2],
        LogBatch((a_line("b"),), {"u": "2"}),
        Lost("the server closed the connection"),
        Remark("gone"),
        "Completed",
    ]
    assert isinstance(told[2], Lost)
    assert [asked.headers["Last-Event-ID"] for asked in server.asked] == ["u=0", "u=1", "u=2"]
    assert server.asked[0].path.endswith("/logs?follow=true&status=true")


def test_following_ends_where_the_job_is_gone(engine: Blocking, server: Scripted) -> None:
    server.answers(streams(event("gone", ["default", "one"]), silent=True))

    assert list(engine.follow("default", "one", LogQuery())) == [Gone("default", "one")]


def test_an_engine_that_is_away_behind_the_server_is_told(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(streams(event("lost", {"why": "the cluster is away"}), END))

    assert list(engine.follow("default", "one", LogQuery())) == [Lost("the cluster is away")]


def test_an_error_ends_a_stream_that_had_begun(engine: Blocking, server: Scripted) -> None:
    server.answers(streams(event("error", {"code": "PatternTooSlow", "message": "simplify it"})))

    with pytest.raises(PatternTooSlow, match="simplify it") as caught:
        list(engine.logs("default", "one", LogQuery(grep="(a+)+$")))

    assert caught.value.status == PatternTooSlow.status
    assert len(server.asked) == 1


# Jobs and events


def test_a_watch_tells_after_a_reconnect_only_what_is_different(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(
        streams(
            *(event("job", a_job(name)) for name in ("same", "changes", "vanishes", "deleted")),
            SYNCED,
            event("gone", ["default", "deleted"]),
            in_order=False,
        ),
        streams(
            event("job", a_job("same")),
            event("job", a_job("changes", "Completed")),
            event("job", a_job("new")),
            SYNCED,
            event("gone", ["default", "never-told"]),
            event("job", a_job("same", "Failed")),
            silent=True,
        ),
    )
    watch = engine.watch("default")

    before = [_told(next(watch)) for _ in range(6)]
    lost = next(watch)
    after = [_told(next(watch)) for _ in range(4)]

    assert before == [
        *("same Running", "changes Running", "vanishes Running", "deleted Running"),
        Synced(),
        Gone("default", "deleted"),
    ]
    assert isinstance(lost, Lost)
    assert after == [
        "changes Completed",
        "new Running",
        Gone("default", "vanishes"),
        "same Failed",
    ]
    watch.close()


def test_a_watch_that_broke_before_it_was_in_step_says_synced_when_it_is(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(
        streams(event("job", a_job("a")), in_order=False),
        streams(event("job", a_job("a")), event("job", a_job("b")), SYNCED, silent=True),
    )
    watch = engine.watch()

    told = [_told(next(watch)) for _ in range(4)]

    assert [told[0], *told[2:]] == ["a Running", "b Running", Synced()]
    watch.close()


def _told(update: object) -> object:
    return f"{update.name} {update.status.phase}" if isinstance(update, Job) else update


def test_events_go_on_after_their_id(engine: Blocking, server: Scripted) -> None:
    def happened(id: int) -> str:
        view = {
            "id": id,
            "at": "2026-01-01T00:00:00Z",
            "type": "Normal",
            "reason": "Created",
            "message": "m",
            "job": "one",
            "namespace": "default",
        }
        return event("event", view, str(id))

    server.answers(
        streams(happened(8), happened(9), in_order=False), streams(happened(10), silent=True)
    )
    stream = engine.follow_events("default", "one", after=7)

    told = [next(stream) for _ in range(4)]

    assert [view.id for view in told if isinstance(view, EventView)] == [8, 9, 10]
    assert [asked.headers["Last-Event-ID"] for asked in server.asked] == ["7", "9"]
    stream.close()
