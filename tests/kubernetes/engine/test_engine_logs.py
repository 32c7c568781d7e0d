"""The engine's logs on a real node: resumed anywhere, through restarts, cut and searched."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from regatta.api.errors import BadRequest, PatternTooSlow
from regatta.api.job import Job
from regatta.engines.base import JobUpdate, LogBatch, LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.kubernetes.engine.logs.log_place import Position
from regatta.engines.logs import matcher
from tests.doors import eventually
from tests.engines.kubernetes.loops import in_a_loop
from tests.engines.updates import lines_of
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.engine.engines import opened, wide
from tests.kubernetes.engine.test_logs import a_shell_job, image, jobs, let_go
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import Hold, Rule, SilenceAfterParts
from tests.kubernetes.operator.builders import Document
from tests.kubernetes.operator.running import Jobs

__all__ = ["image", "jobs"]

COUNTING = "for i in $(seq 1 40); do echo line $i; test $((i % 8)) != 0 || sleep 0.4; done"
#: Each run waits in the middle; the first one fails, the second succeeds.
TWO_RUNS = (
    "n=$(cat /state/n 2>/dev/null || echo 0); echo $((n+1)) > /state/n; echo begin $n; "
    "while ! test -e /state/go-$n; do sleep 0.1; done; echo end $n; test $n = 1"
)


@pytest.fixture
def engine(real_cluster: Access, jobs: Jobs) -> Iterator[Blocking]:
    with opened(real_cluster.admin_kubeconfig, jobs.namespace) as engine:
        yield engine


def first_batches(engine: Blocking, jobs: Jobs, name: str, query: LogQuery) -> list[LogBatch]:
    """Until a batch came, and no further."""
    with contextlib.closing(engine.follow(jobs.namespace, name, query)) as stream:
        return [next(update for update in stream if isinstance(update, LogBatch))]


def test_a_follower_who_leaves_after_every_batch_misses_and_repeats_nothing(
    engine: Blocking, jobs: Jobs, image: str, name: str
) -> None:
    jobs.create(a_shell_job(name, image, COUNTING, workers=2).spec(cleanPodPolicy="Never"))
    told: list[LogBatch] = []
    after: dict[str, str] = {}
    ended: Job | None = None
    while ended is None:
        with contextlib.closing(
            engine.follow(jobs.namespace, name, LogQuery(after=after))
        ) as stream:
            for update in stream:
                if isinstance(update, LogBatch):
                    told.append(update)
                    after = update.after
                    break
                if isinstance(update, Job) and update.finished:
                    ended = update if not list(filter(_is_batch, stream)) else None
                    break

    assert len(told) > 1
    for replica in ("worker-0", "worker-1"):
        assert lines_of(told, replica) == [f"line {i}" for i in range(1, 41)]


def _is_batch(update: JobUpdate) -> bool:
    return isinstance(update, LogBatch)


def in_two_runs(name: str, image: str) -> Document:
    job = a_shell_job(name, image, TWO_RUNS).pod(
        "worker", restartPolicy="OnFailure", volumes=[{"name": "state", "emptyDir": {}}]
    )
    document = job.spec(cleanPodPolicy="Never").document()
    container = document["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    return document


def test_a_restart_in_place_while_nobody_looked_hides_nothing(
    engine: Blocking, jobs: Jobs, image: str, name: str
) -> None:
    jobs.create(in_two_runs(name, image))
    (batch,) = first_batches(engine, jobs, name, LogQuery())
    assert lines_of([batch]) == ["begin 0"]

    let_go(jobs, name, "/state/go-0")
    rest = LogQuery(after=batch.after)
    eventually(lambda: "begin 1" in lines_of(_logs(engine, jobs, name, rest)), "the second run")

    told = _logs(engine, jobs, name, rest)
    assert lines_of(told) == ["end 0", "begin 1"]
    assert lines_of(_logs(engine, jobs, name, LogQuery(after=told[-1].after))) == []
    following = engine.follow(jobs.namespace, name, rest)
    updates = [next(filter(_is_batch, following))]
    let_go(jobs, name, "/state/go-1")
    updates += following
    assert lines_of(updates) == ["end 0", "begin 1", "end 1"]


@pytest.mark.parametrize("way", ["logs", "follow"])
@pytest.mark.parametrize("told", [0, 1])
def test_a_restart_that_no_status_tells_of_yet_hides_nothing(
    engine: Blocking,
    real_cluster: Access,
    jobs: Jobs,
    image: str,
    name: str,
    tmp_path: Path,
    told: int,
    way: str,
) -> None:
    jobs.create(in_two_runs(name, image))
    (batch,) = first_batches(engine, jobs, name, LogQuery())
    assert lines_of([batch]) == ["begin 0"]
    ((uid, _),) = batch.after.items()
    query = LogQuery(after=batch.after if told else {uid: str(Position())})
    updates: list[JobUpdate] = []
    restarted = threading.Event()
    with FaultProxy(real_cluster.admin_kubeconfig, tmp_path) as proxy:
        # It knows the pod as it is now, and asks for the log when that is no longer true.
        proxy.add(Rule(SilenceAfterParts(0), path=r"/pods\?.*watch=", times=None))
        asking = proxy.add(Rule(Hold(restarted), path=r"/pods/[^/]*/log\?", times=None))
        with opened(proxy.kubeconfig, jobs.namespace) as late:

            def read() -> None:
                updates.extend(getattr(late, way)(jobs.namespace, name, query))

            reading = threading.Thread(target=read)
            reading.start()
            eventually(lambda: asking.struck, "somebody who asks for the log")
            let_go(jobs, name, "/state/go-0")
            eventually(
                lambda: lines_of(_logs(engine, jobs, name, LogQuery())) == ["begin 1"],
                "the second run",
            )
            restarted.set()
            if way == "follow":
                let_go(jobs, name, "/state/go-1")
            reading.join(120)

    lines = ["begin 0", "end 0", "begin 1", "end 1"]
    assert lines_of(updates) == (lines if way == "follow" else lines[:3])[told:]


def test_the_last_lines_are_those_that_were_asked_for_and_then_all_that_come(
    engine: Blocking, jobs: Jobs, image: str, name: str
) -> None:
    script = (
        "for i in 1 2 3 4 5 6; do echo line $i; done; while ! test -e /tmp/go; do sleep 0.1; done; "
        "for i in 7 8 9; do echo line $i; done"
    )
    jobs.create(a_shell_job(name, image, script).spec(cleanPodPolicy="Never"))
    whole = LogQuery()
    eventually(
        lambda: len(lines_of(list(_logs(engine, jobs, name, whole)))) == 6, "the first six lines"
    )
    cases = {
        "the last two": (LogQuery(tail=2), ["line 5", "line 6"]),
        "the last two that match": (LogQuery(tail=2, grep="[1-4]|8"), ["line 3", "line 4"]),
        "only what comes": (LogQuery(tail=0), []),
    }
    told: dict[str, list[JobUpdate]] = {case: [] for case in cases}
    begun = {case: threading.Event() for case in cases}

    def follow(case: str) -> None:
        for update in engine.follow(jobs.namespace, name, cases[case][0]):
            told[case].append(update)
            begun[case].set()

    threads = [threading.Thread(target=follow, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for case, (query, lines) in cases.items():
        assert lines_of(list(_logs(engine, jobs, name, query))) == lines, case
        assert begun[case].wait(60)
        eventually(lambda c=case, ls=lines: lines_of(told[c]) == ls, case)  # type: ignore[misc]

    let_go(jobs, name, "/tmp/go")
    for thread in threads:
        thread.join(120)

    later = ["line 7", "line 8", "line 9"]
    assert lines_of(told["the last two"]) == ["line 5", "line 6", *later]
    assert lines_of(told["the last two that match"]) == ["line 3", "line 4", "line 8"]
    assert lines_of(told["only what comes"]) == later


def _logs(engine: Blocking, jobs: Jobs, name: str, query: LogQuery) -> list[LogBatch]:
    updates = engine.logs(jobs.namespace, name, query)
    return [update for update in updates if isinstance(update, LogBatch)]


def test_a_pattern_without_end_ends_the_reading_and_nothing_else(
    engine: Blocking, jobs: Jobs, image: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matcher, "SECONDS", 1.0)
    script = f"echo {'a' * 60}b; sleep 600"
    jobs.create(a_shell_job(name, image, script))
    eventually(lambda: _logs(engine, jobs, name, LogQuery()), "its line")
    slow = LogQuery(grep="(a+)+$")
    refused: list[str] = []

    def follow() -> None:
        with pytest.raises(PatternTooSlow) as refusal:
            for _ in engine.follow(jobs.namespace, name, slow, status=False):
                pass
        refused.append(refusal.value.code)

    following = threading.Thread(target=follow)
    following.start()
    answered = 0
    while following.is_alive():
        assert engine.get(jobs.namespace, name).name == name  # the loop is not held up
        answered += 1

    assert refused == ["PatternTooSlow"]
    assert answered > 3
    with pytest.raises(PatternTooSlow):
        list(engine.logs(jobs.namespace, name, slow))
    with pytest.raises(BadRequest, match="is no position in a log"):
        list(engine.follow(jobs.namespace, name, LogQuery(after={"x": "3000"})))
    engine.delete(jobs.namespace, name)


@in_a_loop
async def test_a_server_resumes_followers_of_many_jobs_from_what_it_shares(
    real_cluster: Access, jobs: Jobs, image: str, name: str
) -> None:
    names = [f"{name}-{letter}" for letter in "abc"]
    for each in names:
        jobs.create(a_shell_job(each, image, COUNTING).spec(cleanPodPolicy="Never"))
    async with wide(real_cluster.admin_kubeconfig, linger_seconds=5) as (engine, calls):
        told: dict[str, list[LogBatch]] = {each: [] for each in names}
        after: dict[str, dict[str, str]] = {each: {} for each in names}
        live = set(names)
        while live:
            for each in sorted(live):
                stream = engine.follow(jobs.namespace, each, LogQuery(after=after[each]))
                batch = await _next_batch(stream)
                if batch is None:
                    live.discard(each)
                    continue
                told[each].append(batch)
                after[each] = batch.after

    for each in names:
        assert lines_of(told[each]) == [f"line {i}" for i in range(1, 41)]
    assert (calls["watch", "paddlejobs"], calls["watch", "pods"]) == (1, 1)


async def _next_batch(stream: AsyncGenerator[JobUpdate, None]) -> LogBatch | None:
    async with contextlib.aclosing(stream) as updates:
        async for update in updates:
            if isinstance(update, LogBatch):
                return update
    return None
