"""A job's log through the engine: whose lines come, and when following ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from regatta.api.errors import BadRequest, NotPossible, PatternTooSlow, RegattaError
from regatta.api.job import Phase
from regatta.engines.base import LogBatch, LogQuery, Remark
from regatta.engines.blocking import Blocking
from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home
from regatta.engines.logs.selection import LARGEST_BATCH, LONGEST_LINE
from tests.engines.local.jobs import (
    a_job,
    a_role,
    eventually,
    pods_of,
    submit,
    texts,
    wait_for,
    wait_until_quiet,
)
from tests.engines.local.opening import OpenEngine
from tests.engines.local.runs import Pod, shell
from tests.engines.logs.test_matcher import FOR_EVER, ITS_VICTIM

ALL = LogQuery()


def follow(engine: Blocking, name: str, query: LogQuery = ALL) -> Iterator[LogBatch]:
    for update in engine.follow("default", name, query, status=False):
        assert isinstance(update, LogBatch)
        yield update


def said(stream: Iterator[LogBatch], count: int) -> tuple[list[str], dict[str, str]]:
    """So many lines, and where to go on."""
    got: list[str] = []
    after: dict[str, str] = {}
    while len(got) < count:
        batch = next(stream)
        got += [line.text for line in batch.lines]
        after = batch.after
    return got, after


def test_following_gives_every_line_and_ends_with_the_job(engine: Blocking) -> None:
    submit(engine, a_job("talk", "for i in 1 2 3; do echo $i; sleep 0.05; done"))
    assert texts(follow(engine, "talk")) == ["1", "2", "3"]
    wait_for(engine, "talk", Phase.COMPLETED)


def test_long_lines_come_a_few_at_a_time(engine: Blocking) -> None:
    """Each reader of a log has a server hold a batch or two."""
    submit(engine, a_job("wide", "head -c 4000000 /dev/zero | tr '\\0' x; echo"))
    wait_for(engine, "wide", Phase.COMPLETED)

    batches = list(engine.logs("default", "wide", ALL))

    assert sum(map(_length, batches)) == 4_000_000
    assert max(map(_length, batches)) <= LARGEST_BATCH + LONGEST_LINE


def _length(batch: LogBatch | Remark) -> int:
    assert isinstance(batch, LogBatch)
    return sum(len(line.text) for line in batch.lines)


def test_following_goes_on_through_restarts(engine: Blocking) -> None:
    submit(engine, a_job("tries", "echo try; exit 1", runPolicy={"backoffLimit": 1}))
    assert texts(follow(engine, "tries")) == ["try", "try"]


def test_following_ends_although_servers_run_on(engine: Blocking, tmp_path: Path) -> None:
    train = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo trained"
    job = a_job("ps", train, cleanPodPolicy="Never", withGloo=0)
    job["spec"]["ps"] = a_role("echo serving; exec sleep 600")
    submit(engine, job)
    stream = follow(engine, "ps")
    got, _ = said(stream, 1)
    (tmp_path / "go").touch()
    assert got + texts(stream) == ["serving", "trained"]
    assert pods_of(engine, "ps", "ps")[0].phase == "Running"


def test_following_waits_for_a_job_that_has_not_started(open_engine: OpenEngine) -> None:
    engine = open_engine(cpus=1)
    submit(engine, a_job("first", "exec sleep 600", cpu=1))
    submit(engine, a_job("second", "echo at last", cpu=1))
    wait_for(engine, "second", Phase.PENDING)
    got: list[str] = []
    follower = threading.Thread(target=lambda: got.extend(texts(follow(engine, "second"))))
    follower.start()
    engine.stop("default", "first")
    follower.join(60)
    assert got == ["at last"]


def test_where_to_go_on_is_told_before_the_first_line(engine: Blocking) -> None:
    submit(engine, a_job("silent", "exec sleep 600"))
    wait_for(engine, "silent", Phase.RUNNING)
    batches = follow(engine, "silent")
    (pod,) = pods_of(engine, "silent")
    first = next(batches)
    assert (first.lines, list(first.after)) == ((), [pod.uid])
    engine.stop("default", "silent")
    assert texts(batches) == []


def test_resuming_repeats_and_loses_nothing(engine: Blocking, tmp_path: Path) -> None:
    script = f"echo a; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo b"
    submit(engine, a_job("resume", script, replicas=2))
    stream = follow(engine, "resume")
    first, after = said(stream, 2)
    (tmp_path / "go").touch()
    rest = texts(follow(engine, "resume", LogQuery(after=after)))
    assert (first, rest) == (["a", "a"], ["b", "b"])


def test_logs_stay_when_pods_are_cleaned(engine: Blocking) -> None:
    submit(engine, a_job("cleaned", "echo kept", cleanPodPolicy="Always"))
    wait_for(engine, "cleaned", Phase.COMPLETED)
    eventually(lambda: not pods_of(engine, "cleaned")[0].current, "the cleaning")
    assert texts(engine.logs("default", "cleaned", LogQuery())) == ["kept"]


def test_only_the_latest_try_is_shown_unless_the_one_before_is_asked_for(
    engine: Blocking, tmp_path: Path
) -> None:
    script = f"echo x >> {tmp_path}/n; wc -l < {tmp_path}/n; exit 1"
    submit(engine, a_job("tries", script, runPolicy={"backoffLimit": 1}), tmp_path)
    wait_for(engine, "tries", Phase.FAILED)
    wait_until_quiet(engine, "tries")
    assert texts(engine.logs("default", "tries", LogQuery())) == ["2"]
    assert texts(engine.logs("default", "tries", LogQuery(previous=True))) == ["1"]


def test_where_there_was_no_run_before_that_is_told(engine: Blocking) -> None:
    submit(engine, a_job("once", "echo only"))
    wait_for(engine, "once", Phase.COMPLETED)
    (remark,) = engine.logs("default", "once", LogQuery(previous=True))
    assert isinstance(remark, Remark)
    assert "no replica has run before" in remark.text
    assert "`regatta history once`" in remark.text


def test_every_try_can_be_asked_for(engine: Blocking, tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/n; wc -l < {tmp_path}/n; exit 1"
    submit(engine, a_job("tries", script, runPolicy={"backoffLimit": 2}), tmp_path)
    wait_for(engine, "tries", Phase.FAILED)
    wait_until_quiet(engine, "tries")
    for attempt in range(3):
        query = LogQuery(attempt=attempt)
        assert texts(engine.logs("default", "tries", query)) == [str(attempt + 1)]
    with pytest.raises(NotPossible, match="tries has had 3 attempts"):
        texts(engine.logs("default", "tries", LogQuery(attempt=3)))
    with pytest.raises(BadRequest, match="give one"):
        texts(engine.logs("default", "tries", LogQuery(attempt=0, previous=True)))
    with pytest.raises(BadRequest, match="not followed"):
        texts(follow(engine, "tries", LogQuery(attempt=0)))


def test_a_replica_that_outlived_a_try_is_shown_with_the_ones_after(
    engine: Blocking, tmp_path: Path
) -> None:
    """Only what failed starts again."""
    fails = f"echo x >> {tmp_path}/n; echo worker $(wc -l < {tmp_path}/n); exit 1"
    policy = {"backoffLimit": 1, "restartScope": "Replica"}
    job = a_job("tries", fails, runPolicy=policy, intranet="Service", withGloo=0)
    job["spec"]["ps"] = a_role("echo server; exec sleep 600")
    submit(engine, job, tmp_path)
    wait_for(engine, "tries", Phase.FAILED)
    for attempt, lines in enumerate((["server", "worker 1"], ["server", "worker 2"])):
        shown = texts(engine.logs("default", "tries", LogQuery(attempt=attempt)))
        assert sorted(shown) == lines


def a_job_at_its_second_try(folder: Path) -> dict[str, object]:
    """Each try says its number; the second waits until `go` is there, the third is the
    last."""
    wait = f"until [ -e {folder}/go ]; do sleep 0.02; done"
    script = (
        f"echo x >> {folder}/n; n=$(wc -l < {folder}/n); echo begin $n; echo try $n; "
        f"[ $n != 2 ] || {wait}; exit 1"
    )
    return a_job("tries", script, runPolicy={"backoffLimit": 2})


@pytest.mark.parametrize(
    ("query", "now", "later"),
    [
        (LogQuery(tail=1), ["try 2"], ["begin 3", "try 3"]),
        (LogQuery(previous=True), ["begin 1", "try 1"], ["begin 3", "try 3"]),
        (LogQuery(previous=True, tail=1), ["try 1"], ["begin 3", "try 3"]),
        (LogQuery(tail=0), [], ["begin 3", "try 3"]),
    ],
    ids=["tail", "previous", "both", "only what comes"],
)
@pytest.mark.parametrize("resumed", [False, True])
def test_a_follower_of_the_end_sees_what_it_asked_for_and_the_tries_that_come_after(
    engine: Blocking,
    tmp_path: Path,
    query: LogQuery,
    now: list[str],
    later: list[str],
    resumed: bool,
) -> None:
    submit(engine, a_job_at_its_second_try(tmp_path))
    eventually(lambda: "try 2" in texts(engine.logs("default", "tries", LogQuery())), "the second")
    stream = follow(engine, "tries", query)
    got, after = said(stream, len(now)) if now else ([], next(stream).after)
    assert got == now
    (tmp_path / "go").touch()
    if resumed:  # as a door does whose connection broke
        wait_for(engine, "tries", Phase.FAILED)
        stream = follow(engine, "tries", replace(query, after=after, tail=None))
    assert texts(stream) == later


def test_one_replica_can_be_chosen(engine: Blocking) -> None:
    submit(engine, a_job("some", "echo $PADDLE_TRAINER_ID", replicas=3))
    wait_for(engine, "some", Phase.COMPLETED)
    wait_until_quiet(engine, "some")
    assert texts(engine.logs("default", "some", LogQuery(role="worker", index=1))) == ["1"]
    (batch,) = engine.logs("default", "some", LogQuery(index=2))
    assert isinstance(batch, LogBatch)
    assert batch.lines[0].pod == "worker-2"


def test_a_role_that_is_not_there_is_named(engine: Blocking) -> None:
    submit(engine, a_job("roles"))
    with pytest.raises(NotPossible, match="its roles are worker"):
        next(engine.logs("default", "roles", LogQuery(role="ps")))


def test_a_bad_pattern_is_told_at_once(engine: Blocking) -> None:
    submit(engine, a_job("grep"))
    with pytest.raises(RegattaError):
        next(engine.logs("default", "grep", LogQuery(grep="(")))


def test_a_replaced_jobs_log_is_found_by_its_uid(engine: Blocking) -> None:
    old = submit(engine, a_job("again", "echo old"))
    wait_for(engine, "again", Phase.COMPLETED)
    submit(engine, a_job("again", "echo new"))
    wait_for(engine, "again", Phase.COMPLETED)
    wait_until_quiet(engine, "again")
    assert texts(engine.logs("default", "again", LogQuery(uid=old.uid))) == ["old"]
    assert texts(engine.logs("default", "again", LogQuery())) == ["new"]


def test_progress_that_a_replica_reports_is_in_the_status(engine: Blocking, tmp_path: Path) -> None:
    script = "python3 -c 'import regatta; regatta.progress(3, 10, loss=0.5)'; exec sleep 600"
    submit(engine, a_job("progress", script), tmp_path)

    def reported() -> bool:
        progress = engine.get("default", "progress").status.progress
        return progress is not None and (progress.step, progress.total) == (3, 10)

    eventually(reported, "the progress")
    progress = engine.get("default", "progress").status.progress
    assert progress is not None
    assert progress.metrics == {"loss": 0.5}


def test_a_job_that_reports_no_progress_for_too_long_has_hung(engine: Blocking) -> None:
    submit(engine, a_job("hung", "exec sleep 600", runPolicy={"hangTimeoutSeconds": 1}))
    job = wait_for(engine, "hung", Phase.FAILED)
    assert job.status.reason == "Hung"


def test_a_job_that_keeps_reporting_has_not_hung(engine: Blocking, tmp_path: Path) -> None:
    beat = "import regatta, time\nfor i in range(16):\n regatta.progress(i); time.sleep(0.4)"
    (tmp_path / "beat.py").write_text(beat)
    job = a_job("beating", "exec python3 beat.py", runPolicy={"hangTimeoutSeconds": 5})
    submit(engine, job, tmp_path)
    wait_for(engine, "beating", Phase.COMPLETED)


@pytest.mark.parametrize("query", [{}, {"tail": 1}])
def test_reading_a_log_with_such_a_pattern_ends_with_a_sentence(
    pod: Pod, query: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regatta.engines.logs.matcher.SECONDS", 0.2)
    pod.play(shell(f"echo {ITS_VICTIM}"))
    with pytest.raises(PatternTooSlow):
        pod.lines(**query, grep=FOR_EVER)


def test_slow_searches_hold_nobody_up(engine: Blocking, home: Home) -> None:
    submit(engine, a_job("searched", f"echo {ITS_VICTIM}"))
    wait_for(engine, "searched", Phase.COMPLETED)
    engine.close()

    async def scene() -> None:
        local = LocalEngine(home)
        slow = [local.logs("default", "searched", LogQuery(grep=FOR_EVER)) for _ in range(45)]
        searches = [asyncio.create_task(anext(each)) for each in slow]
        try:
            for _ in range(20):  # by then every search has begun
                assert [job.name for job in await local.list()] == ["searched"]
                await asyncio.sleep(0.05)
            assert not any(each.done() for each in searches)
        finally:
            for each in searches:
                each.cancel()
            await asyncio.gather(*searches, return_exceptions=True)
            await local.close()

    asyncio.run(scene())


def test_replicas_that_a_smaller_size_did_away_with_are_told_and_shown_on_request(
    engine: Blocking,
) -> None:
    script = "echo $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM; exec sleep 600"
    submit(engine, a_job("shrink", script, replicas=3))

    def shown(query: LogQuery = ALL) -> list[str]:
        return sorted(texts(engine.logs("default", "shrink", query)))

    eventually(lambda: shown() == ["0 of 3", "1 of 3", "2 of 3"], "every worker's first line")
    engine.scale("default", "shrink", "worker", 1)
    eventually(lambda: shown() == ["0 of 1"], "the only worker's line, and nobody else's")
    remark, *_ = engine.logs("default", "shrink", ALL)
    assert isinstance(remark, Remark)
    assert "worker-1, worker-2" in remark.text
    assert shown(replace(ALL, role="worker", index=2)) == ["2 of 3"]
    told = engine.follow("default", "shrink", ALL, status=False)
    assert remark in [next(told), next(told)]
    _, after = said((batch for batch in told if isinstance(batch, LogBatch)), 2)
    told.close()
    resumed = engine.follow("default", "shrink", replace(ALL, after=after), status=False)
    engine.stop("default", "shrink")
    assert texts(resumed) == []
