"""The life of a job, pass by pass."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import CleanPodPolicy, Phase, RestartScope
from regatta.controller.world import Gangs, Pod, PodGroup, PodPhase
from tests.controller.builders import Scene, a_job, a_scene


def test_all_pods_are_asked_for_in_one_pass_servers_first() -> None:
    plan = a_scene(a_job().with_ps(2).with_workers(2)).tick()

    assert [pod.name for pod in plan.pods] == ["j-ps-0", "j-ps-1", "j-worker-0", "j-worker-1"]


def test_the_environment_is_written_only_when_every_replica_has_an_address() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(2))
    scene.tick()
    scene.change("j-ps-0", scheduled=True, host="127.64.0.1")
    scene.change("j-worker-0", scheduled=True, host="127.64.0.2")
    assert scene.tick().environments == ()

    scene.change("j-worker-1", scheduled=True, host="127.64.0.3")
    (environment,) = scene.tick().environments

    assert environment.name == "j-env-1"
    assert environment.data["PADDLE_TRAINERS"] == "127.64.0.2,127.64.0.3"


def test_pods_that_wait_for_the_environment_are_touched_when_it_is_written() -> None:
    scene = a_scene(a_job().with_workers(2))
    scene.tick()
    scene.place()
    scene.change("j-worker-0", waits_for_environment=True)

    assert scene.tick().touch == ("j-worker-0",)


def test_a_job_is_running_when_every_replica_runs_or_has_succeeded() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    assert scene.job.status.phase is Phase.RUNNING

    scene.succeed("j-worker-0").tick()

    assert scene.job.status.phase is Phase.RUNNING
    assert scene.job.status.worker is not None
    assert scene.job.status.worker.ready == "1/2"


def test_a_settled_job_plans_nothing() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2)).run()

    plan = scene.tick(60)

    assert (plan.status, plan.pods, plan.delete, plan.stop, plan.events) == (None, (), (), (), ())


def test_a_ps_job_completes_when_its_workers_do() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2).clean(CleanPodPolicy.NEVER)).run()

    plan = scene.succeed("j-worker-0", "j-worker-1").tick()

    status = scene.job.status
    assert status.phase is Phase.COMPLETED
    assert (status.ps and status.ps.ready, status.worker and status.worker.ready) == ("2/2", "0/2")
    assert (plan.stop, plan.delete) == ((), ())


def test_a_server_that_dies_while_the_job_ends_does_no_harm() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1)).run()
    scene.succeed("j-worker-0").fail("j-ps-0", 134)

    scene.tick()

    assert scene.job.status.phase is Phase.COMPLETED


CLEANING = {
    "completed, Always": (CleanPodPolicy.ALWAYS, 0, [], []),
    "completed, OnCompletion": (CleanPodPolicy.ON_COMPLETION, 0, [], []),
    "completed, OnFailure: servers run on": (
        CleanPodPolicy.ON_FAILURE,
        0,
        ["j-ps-0", "j-worker-0"],
        ["j-ps-0"],
    ),
    "completed, Never: servers run on": (
        CleanPodPolicy.NEVER,
        0,
        ["j-ps-0", "j-worker-0"],
        ["j-ps-0"],
    ),
    "failed, Always": (CleanPodPolicy.ALWAYS, 1, [], []),
    "failed, OnFailure": (CleanPodPolicy.ON_FAILURE, 1, [], []),
    "failed, OnCompletion: stopped, kept": (
        CleanPodPolicy.ON_COMPLETION,
        1,
        ["j-ps-0", "j-worker-0"],
        [],
    ),
    "failed, Never: stopped, kept": (CleanPodPolicy.NEVER, 1, ["j-ps-0", "j-worker-0"], []),
}


@pytest.mark.parametrize(("policy", "code", "kept", "alive"), CLEANING.values(), ids=CLEANING)
def test_the_clean_pod_policy_decides_what_stays(
    policy: CleanPodPolicy, code: int, kept: list[str], alive: list[str]
) -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(policy)).run()
    if code:
        scene.fail("j-worker-0", code)
    else:
        scene.succeed("j-worker-0")

    scene.tick()
    scene.tick()

    assert scene.names == kept
    assert [pod.name for pod in scene.children.pods if not pod.phase.over] == alive


def test_counters_freeze_at_the_final_phase() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(2)).run()
    scene.succeed("j-worker-0", "j-worker-1").tick()
    frozen = scene.job.status

    scene.tick(1)

    assert scene.names == []
    assert scene.job.status == frozen


def test_a_pod_deleted_after_the_job_finished_is_not_made_again() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(CleanPodPolicy.NEVER)).run()
    scene.succeed("j-worker-0").tick()

    scene.lose("j-ps-0").tick()

    assert scene.names == ["j-worker-0"]


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

    assert environment.name == "j-env-2"


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


def test_a_deadline_counts_from_when_the_gang_was_placed() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=60))
    scene.tick()
    scene.tick(1000)  # waiting in a queue
    scene.run()
    assert scene.job.status.phase is Phase.RUNNING
    assert scene.tick(59).look_again == 1

    plan = scene.tick(1)

    assert scene.job.status.reason == "DeadlineExceeded"
    assert [ref.name for ref in plan.stop] == ["j-worker-0"]


def test_time_asleep_does_not_count_towards_the_deadline() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=60)).run()
    status = scene.job.status
    assert status.started_awake is not None

    scene.job = replace(scene.job, status=replace(status, started_awake=status.started_awake + 500))
    scene.tick(520)

    assert scene.job.status.phase is Phase.RUNNING


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    scene = a_scene(a_job().with_workers(1).policy(ttl_seconds_after_finished=30)).run()
    assert scene.succeed("j-worker-0").tick().look_again == 30

    assert not scene.tick(29).delete_job
    assert scene.tick(1).delete_job


def test_suspend_removes_the_pods_and_resume_starts_another_attempt() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.edit(suspend=True).tick()
    assert (scene.names, scene.job.status.phase) == ([], Phase.SUSPENDED)
    assert scene.job.status.start_time is None
    assert scene.tick(60).pods == ()

    plan = scene.edit(suspend=False).tick()
    assert [(pod.name, pod.attempt) for pod in plan.pods] == [("j-worker-0", 1), ("j-worker-1", 1)]
    assert "Resumed" in scene.events
    assert scene.job.status.restarts == 0


def test_abort_stops_everything_and_then_the_job_is_aborted() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1)).run()

    plan = scene.edit(abort=True).tick()
    assert {ref.name for ref in plan.stop} == {"j-ps-0", "j-worker-0"}
    assert scene.job.status.phase is Phase.ABORTING

    scene.tick()
    assert scene.job.status.phase is Phase.ABORTED
    assert scene.names == ["j-ps-0", "j-worker-0"]


def test_abort_of_a_waiting_job_removes_pods_that_were_never_placed() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()

    scene.edit(abort=True).tick()
    scene.tick()

    assert (scene.names, scene.job.status.phase) == ([], Phase.ABORTED)


def test_a_silent_job_is_hung_after_its_timeout() -> None:
    scene = a_scene(a_job().with_workers(1).policy(hang_timeout_seconds=30)).run()
    assert scene.tick(10).look_again == 20

    scene.tick(20)

    assert (scene.job.status.phase, scene.job.status.reason) == (Phase.FAILED, "Hung")


def test_a_heartbeat_puts_the_hang_timeout_off() -> None:
    scene = a_scene(a_job().with_workers(1).policy(hang_timeout_seconds=30)).run()
    scene.children = replace(scene.children, heartbeat_awake=25.0)

    scene.tick(50)

    assert scene.job.status.phase is Phase.RUNNING


def test_scaling_up_stops_nothing_until_the_new_size_is_placed() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    plan = scene.scale(worker=3).tick()
    assert ([pod.name for pod in plan.pods], plan.delete) == (["j-worker-2"], ())
    assert scene.tick(60).delete == ()

    scene.place()
    plan = scene.tick()
    assert [ref.name for ref in plan.delete] == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.phase is Phase.SCALING

    scene.run()
    assert scene.job.status.phase is Phase.RUNNING
    assert {pod.revision for pod in scene.children.pods} == {2}
    assert scene.children.environments == {1, 2}
    assert scene.job.status.restarts == 0


def test_scaling_down_restarts_the_rest_with_the_new_count() -> None:
    scene = a_scene(a_job().with_workers(3)).run()

    scene.scale(worker=2).tick()
    scene.run()

    assert scene.names == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.worker is not None
    assert scene.job.status.worker.ready == "2/2"


def test_taking_a_scaling_back_removes_what_was_asked_for() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.scale(worker=3).tick()

    scene.scale(worker=2).tick()
    scene.tick()

    assert scene.names == ["j-worker-0", "j-worker-1"]
    assert scene.job.status.phase is Phase.RUNNING
    assert {pod.attempt for pod in scene.children.pods} == {0}


def test_nothing_is_scaled_once_a_worker_has_succeeded() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.succeed("j-worker-0").tick()

    scene.scale(worker=3).tick()

    assert scene.names == ["j-worker-0", "j-worker-1"]
    scene.succeed("j-worker-1").tick()
    assert scene.job.status.phase is Phase.COMPLETED


def test_somebody_elses_pod_under_our_name_is_told_and_left_alone() -> None:
    scene = a_scene(a_job().with_workers(2))
    foreign = Pod(name="j-worker-1", uid="theirs", foreign=True, phase=PodPhase.RUNNING)
    scene.children = replace(scene.children, pods=(foreign,))

    plan = scene.tick()

    assert (plan.pods, plan.delete, plan.stop) == ((), (), ())
    assert scene.job.status.reason == "ForeignObject"
    assert "j-worker-1" in scene.job.status.message
    assert plan.look_again is not None


def test_a_job_being_deleted_creates_nothing() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.lose("j-worker-0")
    metadata = replace(scene.job.metadata, deletion_timestamp=scene.job.status.start_time)
    scene.job = replace(scene.job, metadata=metadata)

    plan = scene.tick()

    assert plan.pods == ()
    assert [ref.name for ref in plan.delete] == ["j-worker-1"]
    assert scene.job.status.phase is Phase.TERMINATING


def test_a_job_waits_for_its_gang_to_be_admitted() -> None:
    scene = a_scene(a_job().with_workers(2))
    gangs = Gangs(available=frozenset({"volcano"}), default="volcano")
    scene.children = replace(scene.children, gangs=gangs)
    plan = scene.tick()
    assert (plan.pods, [group.name for group in plan.pod_groups]) == ((), ["j"])

    group = PodGroup(name="j", ours=True, phase="Inqueue", min_member=2)
    scene.children = replace(scene.children, gangs=replace(gangs, groups=(group,)))
    assert len(scene.tick().pods) == 2


def test_why_a_job_waits_is_the_schedulers_own_words() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    scene.change("j-worker-0", waiting="needs 4 CPUs, 1 of 2 is free")

    scene.tick()

    assert scene.job.status.phase is Phase.PENDING
    assert scene.job.status.message == "needs 4 CPUs, 1 of 2 is free"


@pytest.mark.parametrize("services", [False, True])
def test_services_are_made_only_where_names_are_needed(services: bool) -> None:
    from regatta.api.job import Intranet

    scene = a_scene(a_job().with_workers(2).intranet(Intranet.SERVICE), services=services)

    plan = scene.tick()

    assert [s.name for s in plan.services] == (["j-worker-0", "j-worker-1"] if services else [])


def test_events_name_every_transition_once() -> None:
    scene: Scene = a_scene(a_job().with_workers(1)).run()
    scene.tick(5)
    scene.succeed("j-worker-0").tick()

    assert scene.events == ["Created", "Starting", "Running", "Completed"]
