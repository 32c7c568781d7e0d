"""How a job ends: completion, what stays afterwards, abort, deletion."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import CleanPodPolicy, Completion, Intranet, JobStatus, Phase, RoleStatus
from regatta.controller.changes import replaced
from regatta.controller.plan import ChildRef, Event
from regatta.controller.world import Pod, PodPhase
from tests.controller.builders import Scene, a_job, a_scene, at


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


def counts(scene: Scene) -> dict[str, tuple[str, int, int, int]]:
    roles = scene.job.status.roles().items()
    return {name: (r.ready, r.running, r.succeeded, r.failed) for name, r in roles}


def test_nothing_runs_of_a_job_that_failed() -> None:
    """Neither what failed nor what was stopped because of it."""
    scene = a_scene(a_job().with_ps(1).with_workers(3)).run()
    scene.change("j-worker-1", phase=PodPhase.STARTING).succeed("j-worker-2")

    scene.fail("j-worker-0", 1).tick()

    assert counts(scene) == {"ps": ("0/1", 0, 0, 0), "worker": ("0/3", 0, 1, 1)}
    status = scene.job.status.worker
    assert status is not None
    assert (status.pending, status.starting, status.unknown) == (0, 0, 0)
    assert scene.tick(1).status is None


def test_nothing_runs_or_failed_of_a_job_that_was_stopped() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.edit(abort=True).tick()
    scene.tick()

    assert scene.job.status.phase is Phase.ABORTED
    assert scene.job.status.message == "stopped on request"
    assert counts(scene) == {"worker": ("0/2", 0, 0, 0)}


def test_a_job_whose_place_another_took_says_whose() -> None:
    scene = a_scene(a_job().with_workers(2)).run()

    scene.job = replaced(scene.job, even_live=True, by="u2")
    scene.tick()
    scene.tick()

    assert scene.job.status.message == "replaced by the run with the UID u2"


def test_servers_that_go_with_a_completed_job_do_not_count_as_running() -> None:
    scene = a_scene(a_job().with_ps(2).with_workers(1)).run()

    scene.succeed("j-worker-0").tick()

    assert counts(scene) == {"ps": ("0/2", 0, 0, 0), "worker": ("0/1", 0, 1, 0)}


def test_servers_that_run_on_are_counted_until_they_end() -> None:
    scene = a_scene(a_job().with_ps(3).with_workers(1).clean(CleanPodPolicy.NEVER)).run()
    scene.change("j-ps-2", phase=PodPhase.UNKNOWN)
    scene.succeed("j-worker-0").tick()
    assert counts(scene) == {"ps": ("3/3", 3, 0, 0), "worker": ("0/1", 0, 1, 0)}
    before = scene.job.status

    scene.fail("j-ps-0", 1).tick()
    assert counts(scene)["ps"] == ("2/3", 2, 0, 0)

    scene.change("j-ps-1", stopping=True).change("j-ps-2", deleting=True).tick()
    assert counts(scene)["ps"] == ("0/3", 0, 0, 0)

    assert before.ps is not None
    frozen = replace(before.ps, running=0, ready="0/3")
    assert scene.job.status == replace(before, ps=frozen), "nothing else changes"
    assert scene.tick(1).status is None


def test_a_job_that_the_former_operator_finished_is_left_as_it_is() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(CleanPodPolicy.NEVER))
    status = JobStatus(phase=Phase.COMPLETED, ps=RoleStatus(), worker=RoleStatus(succeeded=1))
    scene.job = replace(scene.job, status=status)

    assert scene.tick().status is None


def test_tasks_that_still_run_when_their_job_completes_do_not_count() -> None:
    completion = Completion(min_succeeded=1)
    scene = a_scene(a_job().with_task("t", 2, completion).clean(CleanPodPolicy.NEVER)).run()

    scene.succeed("j-t-0").tick()

    assert counts(scene) == {"t": ("0/2", 0, 1, 0)}


def test_a_pod_deleted_after_the_job_finished_is_not_made_again() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(CleanPodPolicy.NEVER)).run()
    scene.succeed("j-worker-0").tick()

    scene.lose("j-ps-0").tick()

    assert scene.names == ["j-worker-0"]


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    scene = a_scene(a_job().with_workers(1).policy(ttl_seconds_after_finished=30)).run()
    assert scene.succeed("j-worker-0").tick().look_again == 30

    assert not scene.tick(29).delete_job
    assert scene.tick(1).delete_job


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


def test_a_job_being_deleted_creates_nothing() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.lose("j-worker-0")
    metadata = replace(scene.job.metadata, deletion_timestamp=scene.job.status.start_time)
    scene.job = replace(scene.job, metadata=metadata)

    plan = scene.tick()

    assert plan.pods == ()
    assert [ref.name for ref in plan.delete] == ["j-worker-1"]
    assert scene.job.status.phase is Phase.TERMINATING


def test_a_job_without_time_to_live_is_there_until_its_end_can_be_seen() -> None:
    scene = a_scene(a_job().with_workers(1).policy(ttl_seconds_after_finished=0)).run()
    plan = scene.succeed("j-worker-0").tick()
    assert (plan.delete_job, plan.look_again) == (False, 3)
    assert scene.tick(3).delete_job


def test_an_abort_that_was_seen_cannot_be_taken_back() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.edit(abort=True).tick()
    assert scene.job.status.phase is Phase.ABORTING

    scene.edit(abort=False).tick()

    assert scene.job.status.phase is Phase.ABORTED


def test_a_job_that_is_deleted_without_its_pods_leaves_them_running() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    going = {"deletion_timestamp": at(1).wall, "finalizers": ("orphan",)}
    scene.job = replace(scene.job, metadata=replace(scene.job.metadata, **going))

    plan = scene.tick()

    assert (plan.delete, plan.stop, scene.names) == ((), (), ["j-worker-0", "j-worker-1"])


def test_an_end_is_one_event_that_says_how() -> None:
    def last(scene: Scene) -> tuple[Event, ...]:
        return scene.tick().events

    completed = a_scene(a_job().with_workers(1)).run().succeed("j-worker-0")
    message = "all trainers succeeded"
    assert last(completed) == (Event(type="Normal", reason="Completed", message=message),)

    failed = a_scene(a_job().with_workers(1)).run().fail("j-worker-0", 3)
    message = "j-worker-0 exited with code 3"
    assert last(failed) == (Event(type="Warning", reason="ReplicaFailed", message=message),)

    aborted = a_scene(a_job().with_workers(1)).run().edit(abort=True)
    message = "stopping all replicas"
    assert last(aborted) == (Event(type="Normal", reason="Aborting", message=message),)
    message = "stopped on request"
    assert last(aborted) == (Event(type="Normal", reason="Aborted", message=message),)


def test_an_abort_that_takes_its_time_is_told_once() -> None:
    scene = a_scene(a_job().with_workers(1)).run().edit(abort=True)
    scene.tick()
    scene.change("j-worker-0", phase=PodPhase.RUNNING)

    assert scene.tick().events == ()


def test_what_a_cleaned_job_leaves_on_a_cluster_goes_with_its_pods() -> None:
    scene = a_scene(a_job().with_workers(2).intranet(Intranet.SERVICE), services=True).run()
    left = frozenset(f"j-worker-{n}" for n in range(9))
    scene.children = replace(scene.children, services=left)

    plan = scene.succeed("j-worker-0", "j-worker-1").tick()

    services = [ref for ref in plan.delete if ref.kind == "Service"]
    assert services == [ChildRef(kind="Service", name=f"j-worker-{n}") for n in range(9)]


def test_tasks_of_a_completed_job_are_stopped_though_servers_would_run_on() -> None:
    builder = a_job().with_task("t", 2, Completion(min_succeeded=1)).clean(CleanPodPolicy.NEVER)
    scene = a_scene(builder).run()

    plan = scene.succeed("j-t-0").tick()

    assert [ref.name for ref in plan.stop] == ["j-t-1"]


def test_a_former_pod_of_a_completed_job_goes_though_its_servers_run_on() -> None:
    scene = a_scene(a_job().with_ps(1).with_workers(1).clean(CleanPodPolicy.NEVER)).run()
    former = Pod(name="j-worker-1", uid="old", role="worker", index=1, phase=PodPhase.RUNNING)
    scene.children = replace(scene.children, pods=(*scene.children.pods, former))

    plan = scene.succeed("j-worker-0").tick()

    assert (plan.delete, plan.stop) == ((ChildRef(kind="Pod", name="j-worker-1", uid="old"),), ())


@pytest.mark.parametrize("policy", CleanPodPolicy)
@pytest.mark.parametrize("code", [0, 1])
def test_the_time_to_live_runs_whatever_is_cleaned(policy: CleanPodPolicy, code: int) -> None:
    builder = a_job().with_workers(1).clean(policy).policy(ttl_seconds_after_finished=30)
    scene = a_scene(builder).run()
    scene.fail("j-worker-0", code) if code else scene.succeed("j-worker-0")

    assert scene.tick().look_again == 30
    assert scene.tick(10).look_again == 20


def test_a_failed_job_forgets_pods_that_were_never_placed() -> None:
    builder = a_job().with_task("t", 2).clean(CleanPodPolicy.NEVER)
    scene = a_scene(builder)
    scene.tick()
    scene.fail("j-t-0", 1)

    plan = scene.tick()

    assert ([ref.name for ref in plan.delete], plan.stop) == (["j-t-1"], ())


def deleted(scene: Scene) -> Scene:
    metadata = replace(scene.job.metadata, deletion_timestamp=at(1).wall)
    scene.job = replace(scene.job, metadata=metadata)
    return scene


def test_a_job_that_goes_says_so_and_nothing_else() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    scene.change("j-worker-0", waiting="no room").tick()
    assert scene.job.status.message == "no room"

    deleted(scene).tick()

    status = scene.job.status
    assert (status.phase, status.reason, status.message) == (Phase.TERMINATING, "Deleted", "")
    assert scene.tick().status is None


def test_a_finished_job_that_goes_still_says_how_it_ended() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.fail("j-worker-0", 1).tick()

    assert deleted(scene).tick().status is None
    assert scene.job.status.phase is Phase.FAILED
