"""Whom to blame, and how tasks tolerate failures."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import Completion, Failure, Phase, RestartScope
from regatta.controller.policies.failure import in_words
from regatta.controller.world import Exit, PodPhase
from tests.controller.builders import a_job, a_scene, at

BLAME = {
    "the earliest of two": ({"j-worker-0": (1, 5.0), "j-worker-1": (1, 3.0)}, "j-worker-1"),
    "a code of its own beats an earlier abort": (
        {"j-worker-0": (134, 3.0), "j-worker-1": (1, 5.0)},
        "j-worker-1",
    ),
    "however much earlier that was": (
        {"j-worker-0": (134, 1.0), "j-worker-1": (1, 9.0)},
        "j-worker-1",
    ),
    "a launcher's 250 is a consequence": (
        {"j-worker-0": (250, 1.0), "j-worker-1": (3, 2.0)},
        "j-worker-1",
    ),
    "out of memory is a cause": (
        {"j-worker-0": (143, 1.0), "j-worker-1": (137, 2.0)},
        "j-worker-1",
    ),
    "only consequences: the earliest": (
        {"j-worker-0": (134, 9.0), "j-worker-1": (139, 8.0)},
        "j-worker-1",
    ),
    "a segmentation fault is a consequence": (
        {"j-worker-0": (139, 1.0), "j-worker-1": (1, 2.0)},
        "j-worker-1",
    ),
    "at the same moment, the first in order": (
        {"j-worker-0": (1, 5.0), "j-worker-1": (1, 5.0)},
        "j-worker-0",
    ),
}


@pytest.mark.parametrize(("exits", "blamed"), BLAME.values(), ids=BLAME)
def test_the_replica_to_blame_is(exits: dict[str, tuple[int, float]], blamed: str) -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    for name, (code, finished) in exits.items():
        scene.now = finished
        scene.fail(name, code)

    scene.tick(20)

    assert scene.job.status.failure is not None
    assert scene.job.status.failure.pod == blamed


GLOO = (
    "RuntimeError: [/paddle/third_party/gloo/gloo/transport/tcp/pair.cc:598] "
    "TIMEOUT self_rank = 0 pair_rank = 1"
)
NCCL = "ncclRemoteError: A call failed possibly due to a network error or a remote process exited"
RESET = "OSError: [Errno 104] Connection reset by peer"
CLOSED = "RuntimeError: Connection closed by peer [127.0.0.1]:23"

#: Code, time and last words of each.
SURVIVORS: dict[str, tuple[tuple[int, float, str], tuple[int, float, str], str]] = {
    "not gloo's survivor": ((1, 5.0, GLOO), (137, 5.0, ""), "j-worker-1"),
    "not even when its time is earlier": ((1, 5.0, GLOO), (137, 7.0, ""), "j-worker-1"),
    "nor NCCL's": ((1, 5.0, NCCL), (1, 6.0, "ValueError: nan"), "j-worker-1"),
    "nor one that was cut off": ((1, 5.0, RESET), (3, 6.0, ""), "j-worker-1"),
    "nor one whose peer closed": ((1, 5.0, CLOSED), (3, 6.0, ""), "j-worker-1"),
    "the one that was told to end": ((1, 5.0, GLOO), (143, 5.0, ""), "j-worker-1"),
    "what came much earlier is no survivor": ((1, 5.0, GLOO), (137, 7.1, ""), "j-worker-0"),
    "of two survivors the earlier": ((1, 5.0, GLOO), (1, 4.5, GLOO), "j-worker-1"),
    "a lost connection alone is no abort": ((134, 5.0, ""), (1, 5.0, RESET), "j-worker-1"),
    "a survivor in words beside one by its code": ((1, 4.0, GLOO), (134, 5.0, ""), "j-worker-1"),
}


@pytest.mark.parametrize(("first", "second", "blamed"), SURVIVORS.values(), ids=SURVIVORS)
def test_of_two_that_ended_close_together_the_one_to_blame_is(
    first: tuple[int, float, str], second: tuple[int, float, str], blamed: str
) -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    for number, (code, finished, words) in enumerate((first, second)):
        exit = Exit(code=code, reason="Error", message=words, finished_at=at(finished).wall)
        scene.change(f"j-worker-{number}", phase=PodPhase.FAILED, exit=exit)

    scene.tick(20)

    assert scene.job.status.failure is not None
    assert scene.job.status.failure.pod == blamed


def test_a_survivor_waits_a_moment_for_the_one_that_was_killed() -> None:
    """On a cluster the end of the one may be seen before that of the other."""
    scene = a_scene(a_job().with_workers(2)).run()
    exit = Exit(code=1, message=GLOO, finished_at=at(0).wall)

    scene.change("j-worker-0", phase=PodPhase.FAILED, exit=exit)
    assert scene.tick().look_again == 2

    scene.now += 1
    scene.fail("j-worker-1", 137).tick()
    assert scene.job.status.message == "j-worker-1 exited with code 137 (signal 9)"


def test_one_whose_end_has_no_time_is_blamed_last() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.fail("j-worker-1", 1).change("j-worker-0", phase=PodPhase.FAILED, exit=Exit(code=1))

    scene.tick()

    assert scene.job.status.failure is not None
    assert scene.job.status.failure.pod == "j-worker-1"


def test_a_failure_keeps_all_that_is_known_of_the_end() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2)).run()
    scene.now = 7.0

    scene.fail("j-worker-1", 3).tick()

    assert scene.job.status.failure == Failure(
        pod="j-worker-1",
        role="worker",
        index=1,
        exit_code=3,
        reason="Error",
        message="boom",
        finished_at=at(7).wall,
    )


def test_a_pod_that_ended_without_a_word_is_a_failure_all_the_same() -> None:
    scene = a_scene(a_job().with_workers(1)).run()

    scene.change("j-worker-0", phase=PodPhase.FAILED, exit=None).tick()

    assert scene.job.status.failure == Failure(pod="j-worker-0", role="worker", index=0)


def test_an_abort_whose_time_is_unknown_waits_for_nothing() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.change("j-worker-0", phase=PodPhase.FAILED, exit=Exit(code=134)).tick()

    assert scene.job.status.phase is Phase.FAILED


@pytest.mark.parametrize("back", [2.1, 3600.0])
def test_a_clock_that_was_set_back_does_not_prolong_the_moment(back: float) -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.now = 5000.0
    scene.fail("j-worker-0", 134)
    scene.now -= back

    scene.tick()

    assert scene.job.status.phase is Phase.FAILED


def test_a_node_whose_clock_is_a_little_ahead_has_its_moment() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.now = 100.0
    scene.fail("j-worker-0", 134)
    scene.now -= 2

    assert scene.tick().look_again == 2


def test_the_moment_shrinks_as_it_passes() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.fail("j-worker-0", 134)

    assert scene.tick(1.5).look_again == 0.5


DISRUPTED = Failure(pod="j-worker-1", role="worker", index=1)


def test_the_engines_evidence_is_told_where_the_program_said_nothing() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    lost = {"phase": PodPhase.FAILED, "disruption": "node lost", "exit": None}

    plan = scene.change("j-worker-1", **lost).tick()

    assert scene.job.status.failure == replace(DISRUPTED, message="node lost")
    assert plan.events[0].message.startswith("j-worker-1 was lost: node lost; starting again")


def test_a_programs_last_words_beat_the_engines_evidence() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.fail("j-worker-1", None, disruption="node lost").tick()

    failure = replace(DISRUPTED, reason="Error", message="boom", finished_at=at(0).wall)
    assert scene.job.status.failure == failure


def test_a_deleted_pod_is_told_as_that() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.lose("j-worker-1").tick()

    words = "the pod was deleted while the job needed it"
    assert scene.job.status.failure == replace(DISRUPTED, reason="PodDeleted", message=words)
    assert scene.job.status.message.startswith(f"j-worker-1 was lost (PodDeleted): {words}; ")


def test_a_disrupted_pod_that_still_runs_starts_the_job_again() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.change("j-worker-1", disruption="its node is being drained").tick()

    assert (scene.job.status.phase, scene.job.status.restarts) == (Phase.RESTARTING, 0)


def test_what_failed_beside_a_disruption_starts_again_with_it_once() -> None:
    policy = {"restart_scope": RestartScope.REPLICA}
    scene = a_scene(a_job().with_ps(1).with_workers(3).policy(**policy)).run()
    scene.fail("j-worker-0", None, disruption="node lost")
    scene.fail("j-worker-1", 1)

    plan = scene.tick()

    assert [ref.name for ref in plan.delete] == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.worker is not None
    assert scene.job.status.worker.replica_attempts == {"0": 1, "1": 1}


def test_a_replica_whose_pod_is_gone_starts_again_alone_where_it_may() -> None:
    policy = {"restart_scope": RestartScope.REPLICA}
    scene = a_scene(a_job().with_ps(1).with_workers(2).policy(**policy)).run()

    scene.lose("j-worker-1").tick()

    assert scene.job.status.worker is not None
    assert scene.job.status.worker.replica_attempts == {"1": 1}
    assert [(pod.name, pod.attempt) for pod in scene.tick().pods] == [("j-worker-1", 1)]


def test_free_restarts_of_an_hour_ago_do_not_count_any_more() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    disruptions = tuple(at(float(n)).wall for n in range(10))
    scene.job = replace(scene.job, status=replace(scene.job.status, disruptions=disruptions))
    scene.now = 3_600.0

    scene.lose("j-worker-0").tick()

    assert scene.job.status.phase is Phase.RESTARTING
    assert scene.job.status.disruptions == (*disruptions[1:], at(3_600).wall)


def said(**fields: Any) -> Failure:
    return Failure(pod="p", role="worker", index=0, **fields)


WORDS: dict[str, tuple[Failure, str]] = {
    "a code": (said(exit_code=1, reason="Error"), "p exited with code 1"),
    "no reason": (said(exit_code=1), "p exited with code 1"),
    "a reason of its own": (
        said(exit_code=137, reason="OOMKilled"),
        "p exited with code 137 (signal 9), OOMKilled",
    ),
    "memory, where its engine knows the limit": (
        said(
            exit_code=137,
            reason="OOMKilled",
            message="step 3\nkilled for memory: it used its limit of 64Mi",
        ),
        "p exited with code 137 (signal 9), OOMKilled: it used its limit of 64Mi",
    ),
    "memory, and the program's own last line": (
        said(exit_code=137, reason="OOMKilled", message="step 3"),
        "p exited with code 137 (signal 9), OOMKilled",
    ),
    "memory, told behind many lines": (
        said(
            exit_code=137,
            reason="OOMKilled",
            message="step 3\nkilled for memory: not this\nkilled for memory: but this",
        ),
        "p exited with code 137 (signal 9), OOMKilled: but this",
    ),
    "another reason of a program that says so": (
        said(exit_code=137, reason="Evicted", message="killed for memory: said the program"),
        "p exited with code 137 (signal 9), Evicted",
    ),
    "a program that only says so": (
        said(exit_code=1, reason="Error", message="killed for memory: said the program"),
        "p exited with code 1",
    ),
    "an init container": (
        said(exit_code=137, reason="Init:Error", message="init container fetch failed: no: data"),
        "p exited with code 137 (signal 9): init container fetch failed",
    ),
    "128 is no signal": (said(exit_code=128), "p exited with code 128"),
    "129 is one": (said(exit_code=129), "p exited with code 129 (signal 1)"),
    "no code, the last line tells": (
        said(reason="Evicted", message="one\ntwo\nthree\n"),
        "p was lost (Evicted): three",
    ),
    "no code, one line": (
        said(reason="Evicted", message="only"),
        "p was lost (Evicted): only",
    ),
    "a hang is nobody's": (said(reason="Hung", message="no replica spoke"), "no replica spoke"),
    "no code, no words": (said(reason="NodeLost"), "p was lost (NodeLost): NodeLost"),
}


@pytest.mark.parametrize(("failure", "words"), WORDS.values(), ids=WORDS)
def test_a_failure_in_one_line(failure: Failure, words: str) -> None:
    assert in_words(failure) == words


def test_an_abort_waits_a_moment_for_its_cause() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.fail("j-worker-0", 134)

    assert scene.tick().look_again == 2
    assert scene.job.status.phase is Phase.RUNNING

    scene.now += 1
    scene.fail("j-worker-1", 9)
    scene.tick()
    assert scene.job.status.message == "j-worker-1 exited with code 9"


def test_an_abort_without_a_cause_is_blamed_after_the_moment() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.fail("j-worker-0", 134).tick()

    scene.tick(2)

    assert scene.job.status.message == "j-worker-0 exited with code 134 (signal 6)"


def test_a_replica_we_stopped_is_never_judged() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.fail("j-worker-0", 143, stopping=True).tick(10)

    assert scene.job.status.phase is Phase.RUNNING


TASKS = {
    "one failed task fails the job by default": (None, 1, 0, Phase.FAILED),
    "a failed task fails the job when all are over too": (None, 1, 2, Phase.FAILED),
    "all over, all failed": (None, 3, 0, Phase.FAILED),
    "fewer than minFailed are let pass": (Completion(min_failed=2), 1, 0, Phase.RUNNING),
    "minFailed reached": (Completion(min_failed=2), 2, 0, Phase.FAILED),
    "minSucceeded reached ends it at once": (Completion(min_succeeded=1), 0, 1, Phase.COMPLETED),
    "all over, failures tolerated": (Completion(min_failed=None), 2, 1, Phase.COMPLETED),
    "all succeeded": (None, 0, 3, Phase.COMPLETED),
}


@pytest.mark.parametrize(("completion", "failed", "succeeded", "phase"), TASKS.values(), ids=TASKS)
def test_a_job_of_tasks_follows_their_completion_policy(
    completion: Completion | None, failed: int, succeeded: int, phase: Phase
) -> None:
    scene = a_scene(a_job().with_task("t", 3, completion)).run()
    for index in range(failed):
        scene.fail(f"j-t-{index}", 1)
    for index in range(failed, failed + succeeded):
        scene.succeed(f"j-t-{index}")

    scene.tick()

    assert scene.job.status.phase is phase


def test_tasks_that_still_run_are_stopped_when_the_job_completes() -> None:
    scene = a_scene(a_job().with_task("t", 2, Completion(min_succeeded=1))).run()

    scene.succeed("j-t-0").tick()

    assert [pod.name for pod in scene.children.pods if not pod.phase.over] == []
