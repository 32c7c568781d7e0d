"""Replicas that fail or vanish, and who starts again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import WITHOUT_END, NoRetry, Phase, RestartScope
from regatta.controller.plan import Event
from regatta.controller.world import Pod
from tests.controller.builders import a_job, a_scene, at


def test_one_failed_replica_fails_the_job_unless_backoff_limit_is_set() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    plan = scene.fail("j-worker-1", 7).tick()

    status = scene.job.status
    assert status.phase is Phase.FAILED
    assert status.message == "j-worker-1 exited with code 7"
    assert status.failure is not None
    assert (status.failure.exit_code, status.failure.message) == (7, "boom")
    assert [ref.name for ref in plan.stop] == ["j-worker-0"]


def test_a_worker_that_always_fails_is_tried_once_more_than_backoff_limit() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=2)).run()
    attempts = 1
    while scene.job.status.phase is not Phase.FAILED:
        scene.fail("j-worker-0", 1).tick()
        if scene.job.status.phase is Phase.RESTARTING:
            attempts += 1
            scene.tick(300)
            scene.run()

    assert attempts == 3
    assert scene.job.status.restarts == 2
    assert scene.job.status.message == "j-worker-0 exited with code 1 (attempt 3 of 3)"


def test_without_a_limit_it_is_tried_again_and_again() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=WITHOUT_END)).run()
    for failures in range(1, 13):
        scene.fail("j-worker-0", 1).tick()
        assert scene.job.status.phase is Phase.RESTARTING
        assert scene.job.status.restarts == failures
        assert scene.job.status.message.endswith(f"starting again (failure {failures})")
        scene.tick(300)
        scene.run()


HOPELESS: dict[str, tuple[int, str, str]] = {
    "an exit code": (132, "Error", "j-worker-0 exited with code 132 (signal 4)"),
    "a reason": (137, "OOMKilled", "j-worker-0 exited with code 137 (signal 9), OOMKilled"),
}


@pytest.mark.parametrize("limit", [3, WITHOUT_END])
@pytest.mark.parametrize(("code", "reason", "words"), HOPELESS.values(), ids=HOPELESS)
def test_what_would_only_fail_again_is_not_tried_again(
    limit: int, code: int, reason: str, words: str
) -> None:
    never = NoRetry(exit_codes=(132,), reasons=("OOMKilled",))
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=limit, no_retry=never)).run()

    scene.fail("j-worker-0", code, reason=reason).tick()

    assert scene.job.status.phase is Phase.FAILED
    assert scene.job.status.message == f"{words}; runPolicy.noRetry says not to try this again"


def test_other_failures_are_tried_again_and_disruptions_in_any_case() -> None:
    never = NoRetry(exit_codes=(132,), reasons=("PodDeleted",))
    scene = a_scene(a_job().with_workers(2).policy(backoff_limit=1, no_retry=never)).run()

    assert scene.fail("j-worker-0", 1).tick().status.phase is Phase.RESTARTING
    scene.tick(300)
    assert scene.run().lose("j-worker-1").tick().status.phase is Phase.RESTARTING


def test_a_job_that_is_never_tried_again_does_not_say_why_not() -> None:
    never = NoRetry(exit_codes=(7,))
    scene = a_scene(a_job().with_workers(1).policy(no_retry=never)).run()

    assert scene.fail("j-worker-0", 7).tick().status.message == "j-worker-0 exited with code 7"


def test_restarts_pause_longer_each_time() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=9)).run()
    pauses = []
    for _ in range(4):
        pauses.append(scene.fail("j-worker-0", 1).tick().look_again)
        assert scene.tick().pods == ()
        scene.tick(400)
        scene.run()

    assert pauses == [1, 2, 4, 8]


def test_many_replicas_that_die_of_one_fault_count_once() -> None:
    scene = a_scene(a_job().with_workers(3).policy(backoff_limit=1)).run()
    for index in range(3):
        scene.fail(f"j-worker-{index}", 134)

    scene.tick()

    assert scene.job.status.restarts == 1
    assert scene.job.status.phase is Phase.RESTARTING


def test_a_restart_waits_until_old_pods_have_let_go_of_their_names() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 1).tick()
    old = Pod(name="j-worker-0", uid="old", role="worker", index=0, attempt=0, deleting=True)
    scene.children = replace(scene.children, pods=(old,))

    assert scene.tick(10).pods == ()

    scene.lose("j-worker-0")
    assert [pod.attempt for pod in scene.tick(10).pods] == [1]


def test_a_restarted_attempt_waits_for_an_environment_of_its_own() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 1).tick()
    scene.tick(10)
    scene.place()

    (environment,) = scene.tick().environments

    assert environment.name == "j-env-2-uid-j"


def test_a_vanished_pod_restarts_the_job_without_counting() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.lose("j-worker-1").tick()

    assert scene.job.status.phase is Phase.RESTARTING
    assert scene.job.status.restarts == 0
    assert "not counted" in scene.job.status.message


def test_free_restarts_end_after_ten_in_an_hour() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    for _ in range(10):
        scene.fail("j-worker-0", None, disruption="node lost").tick()
        scene.tick(1)
        scene.run()
    scene.fail("j-worker-0", None, disruption="node lost").tick()

    assert scene.job.status.phase is Phase.FAILED


def test_a_succeeded_replica_whose_pod_is_collected_does_not_run_again() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2)).run()
    scene.succeed("j-worker-0").tick()

    plan = scene.lose("j-worker-0").tick()

    assert plan.pods == ()
    scene.succeed("j-worker-1").tick()
    assert scene.job.status.phase is Phase.COMPLETED


def test_only_the_struck_replica_restarts_where_its_scope_allows_it() -> None:
    builder = a_job().with_ps(1).with_workers(2)
    scene = a_scene(builder.policy(backoff_limit=1, restart_scope=RestartScope.REPLICA)).run()

    plan = scene.fail("j-worker-1", 1).tick()

    assert [ref.name for ref in plan.delete] == ["j-worker-1"]
    (pod,) = scene.tick(5).pods
    assert (pod.name, pod.attempt, pod.revision) == ("j-worker-1", 1, 1)


def test_the_struck_role_restarts_as_a_whole_in_scope_role() -> None:
    builder = a_job().with_ps(1).with_workers(2)
    scene = a_scene(builder.policy(backoff_limit=1, restart_scope=RestartScope.ROLE)).run()

    plan = scene.fail("j-worker-1", 1).tick()

    assert [ref.name for ref in plan.delete] == ["j-worker-0", "j-worker-1"]


def test_a_part_cannot_restart_alone_where_its_address_would_change() -> None:
    builder = a_job().with_ps(1).with_workers(2)
    scene = a_scene(
        builder.policy(backoff_limit=1, restart_scope=RestartScope.ROLE), services=True
    ).run()

    plan = scene.fail("j-worker-1", 1).tick()

    assert len(plan.delete) == 3


SCOPES = {
    RestartScope.JOB: "all replicas",
    RestartScope.ROLE: "its role",
    RestartScope.REPLICA: "it alone",
}


@pytest.mark.parametrize(("scope", "who"), SCOPES.items())
def test_a_restart_says_why_how_often_and_who(scope: RestartScope, who: str) -> None:
    policy = {"backoff_limit": 3, "restart_scope": scope}
    scene = a_scene(a_job().with_ps(1).with_workers(1).policy(**policy)).run()
    scene.fail("j-worker-0", 7).tick()
    scene.tick(1)
    scene.run()

    plan = scene.fail("j-worker-0", 7).tick()

    words = "j-worker-0 exited with code 7; starting again (failure 2 of 3 allowed)"
    status = scene.job.status
    assert (status.phase, status.reason, status.message) == (
        Phase.RESTARTING,
        "ReplicaFailed",
        words,
    )
    assert (status.restarts, status.attempt, status.restart_at) == (2, 2, at(scene.now + 2).wall)
    assert status.failure is not None
    assert status.failure.exit_code == 7
    assert plan.events == (Event(type="Warning", reason="Restarting", message=f"{words}: {who}"),)
    assert plan.look_again == 2


def test_a_free_restart_begins_at_once_and_is_remembered() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.now = 5.0

    scene.lose("j-worker-0").tick()

    status = scene.job.status
    assert (status.restarts, status.restart_at, status.disruptions) == (0, None, (at(5).wall,))
    assert [pod.name for pod in scene.tick().pods] == ["j-worker-0"]


def test_a_counted_restart_is_no_disruption() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()

    scene.fail("j-worker-0", 1).tick()

    assert scene.job.status.disruptions == ()
