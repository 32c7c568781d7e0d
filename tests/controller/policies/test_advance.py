"""What a job that may go on asks for: pods, Services, and the environment once all is known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import Intranet, Phase, RestartScope
from regatta.controller import labels
from regatta.controller.plan import ChildRef, Event
from regatta.controller.world import Pod, PodPhase, Ports
from tests.controller.builders import a_job, a_scene


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

    assert environment.name == "j-env-1-uid-j"
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


@pytest.mark.parametrize("services", [False, True])
def test_services_are_made_only_where_names_are_needed(services: bool) -> None:
    scene = a_scene(a_job().with_workers(2).intranet(Intranet.SERVICE), services=services)

    plan = scene.tick()

    assert [s.name for s in plan.services] == (["j-worker-0", "j-worker-1"] if services else [])


def test_environments_that_nobody_reads_any_more_go() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.edit(suspend=True).tick()
    plan = scene.edit(suspend=False).tick()
    assert [ref.name for ref in plan.delete] == ["j-env-1-uid-j"]

    scene.run()

    assert scene.children.environments == {2}


def test_services_of_a_larger_size_go_with_its_pods() -> None:
    builder = a_job().with_workers(3).intranet(Intranet.SERVICE)
    scene = a_scene(builder, services=True).run()
    assert scene.children.services == {"j-worker-0", "j-worker-1", "j-worker-2"}

    plan = scene.scale(worker=1).tick()
    assert [ref for ref in plan.delete if ref.kind == "Service"] == []
    scene.run()

    assert scene.children.services == {"j-worker-0"}


def test_the_environment_is_an_immutable_config_map_of_the_jobs_own() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()

    (environment,) = scene.place().tick().environments

    job = scene.job
    assert environment.revision == 1
    assert environment.data["PADDLE_TRAINERS_NUM"] == "1"
    assert environment.manifest == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "j-env-1-uid-j",
            "namespace": "default",
            "labels": {
                **labels.of_job(job),
                "batch.paddlepaddle.org/environment-revision": "1",
            },
            "ownerReferences": labels.owned_by(job),
        },
        "immutable": True,
        "data": environment.data,
    }


def test_an_environment_is_written_once() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    assert len(scene.place().tick().environments) == 1

    assert scene.tick().environments == ()


def test_addresses_of_pods_that_wait_for_another_environment_are_not_told() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()

    scene.change("j-worker-0", revision=7)

    assert scene.place().tick().environments == ()


def test_a_service_finds_its_replica_before_that_listens() -> None:
    job = a_job().with_ps(1).with_workers(1).intranet(Intranet.SERVICE)
    scene = a_scene(job, services=True)
    ports = Ports(base=30000, stride=20)
    scene.children = replace(scene.children, ports=ports)

    service = scene.tick().services[1]

    assert service.name == "j-worker-0"
    assert service.manifest == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "j-worker-0",
            "namespace": "default",
            "labels": labels.of_job(scene.job),
            "ownerReferences": labels.owned_by(scene.job),
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {
                "paddle-res-name": "j-worker-0",
                "batch.paddlepaddle.org/job-name": "j",
            },
            "ports": [{"name": f"p-{n}", "port": 30020 + n} for n in range(20)],
        },
    }


def test_a_cluster_job_that_meets_by_address_has_no_services() -> None:
    assert a_scene(a_job().with_workers(2), services=True).tick().services == ()


def test_only_services_that_are_missing_are_made() -> None:
    scene = a_scene(a_job().with_workers(2).intranet(Intranet.SERVICE), services=True)
    scene.children = replace(scene.children, services=frozenset({"j-worker-0"}))

    assert [service.name for service in scene.tick().services] == ["j-worker-1"]


def test_replicas_that_a_job_grows_by_have_services_too() -> None:
    scene = a_scene(a_job().with_workers(1).intranet(Intranet.SERVICE), services=True).run()

    plan = scene.scale(worker=2).tick()

    assert [service.name for service in plan.services] == ["j-worker-1"]
    assert [ref for ref in scene.tick().delete if ref.kind == "Service"] == []


def test_services_that_no_replica_is_reached_by_go_in_the_order_of_their_names() -> None:
    scene = a_scene(a_job().with_workers(1), services=True).run()
    left_over = frozenset(f"j-worker-{n}" for n in range(1, 9))
    scene.children = replace(scene.children, services=left_over)

    plan = scene.tick()

    assert plan.delete == tuple(ChildRef(kind="Service", name=f"j-worker-{n}") for n in range(1, 9))


def test_environments_go_in_the_order_of_their_revisions() -> None:
    scene = a_scene(a_job().with_workers(1), services=True).run()
    scene.children = replace(scene.children, environments=frozenset({1, 33, 9, 17}))

    plan = scene.tick()

    assert plan.delete == tuple(
        ChildRef(kind="ConfigMap", name=f"j-env-{n}-uid-j") for n in (9, 17, 33)
    )


def test_an_environment_that_an_old_pod_still_reads_stays() -> None:
    scene = a_scene(a_job().with_workers(2).policy(backoff_limit=1)).run()
    scene.fail("j-worker-0", 1).tick()
    lingering = Pod(name="j-worker-1", uid="old", role="worker", index=1, revision=1, deleting=True)
    scene.children = replace(scene.children, pods=(lingering,))

    assert [ref for ref in scene.tick(5).delete if ref.kind == "ConfigMap"] == []

    scene.lose("j-worker-1")
    assert [ref.name for ref in scene.tick().delete] == ["j-env-1-uid-j"]


def test_nothing_of_a_new_attempt_is_made_before_its_pause_is_over() -> None:
    builder = a_job().with_workers(1).intranet(Intranet.SERVICE).policy(backoff_limit=1)
    scene = a_scene(builder, services=True).run()
    scene.fail("j-worker-0", 1).tick()
    scene.children = replace(scene.children, services=frozenset())

    plan = scene.tick()
    assert (plan.pods, plan.services, plan.look_again) == ((), (), 1)

    plan = scene.tick(1)
    assert ([p.name for p in plan.pods], [s.name for s in plan.services]) == (
        ["j-worker-0"],
        ["j-worker-0"],
    )


def test_only_pods_whose_environment_exists_are_touched() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.change("j-worker-0", waits_for_environment=True)
    scene.change("j-worker-1", waits_for_environment=True, revision=7)

    assert scene.tick().touch == ("j-worker-0",)


MADE = {
    1: "created 1 pod: j-worker-0",
    2: "created 2 pods: j-worker-0, j-worker-1",
    4: "created 4 pods: j-worker-0, j-worker-1, j-worker-2, j-worker-3",
    5: "created 5 pods: j-worker-0, j-worker-1, j-worker-2, j-worker-3, ...",
}


@pytest.mark.parametrize(("count", "message"), MADE.items())
def test_what_was_made_is_told_in_one_event(count: int, message: str) -> None:
    plan = a_scene(a_job().with_workers(count)).tick()

    assert plan.events == (Event(type="Normal", reason="Created", message=message),)


def test_every_step_on_the_way_is_an_event_in_words() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.edit(suspend=True).tick()
    told = [scene.edit(suspend=False).tick().events[-1]]
    told += scene.place().tick().events
    told += scene.change("j-worker-0", phase=PodPhase.RUNNING).tick().events

    assert told == [
        Event(type="Normal", reason="Resumed", message="resumed"),
        Event(type="Normal", reason="Starting", message="every replica has its place; starting"),
        Event(type="Normal", reason="Running", message="all replicas run"),
    ]


def test_why_a_replica_that_ran_starts_again_is_in_the_event() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    loops = "CrashLoopBackOff: exit code 137, OOMKilled"
    scene.change("j-worker-0", phase=PodPhase.STARTING, waiting=loops)

    assert scene.tick().events == (Event(type="Normal", reason="Starting", message=loops),)


def test_a_place_that_is_filled_under_another_name_is_filled() -> None:
    scene = a_scene(a_job().with_workers(1), services=True)
    odd = Pod(name="odd", uid="odd", role="worker", index=0, revision=1)
    scene.children = replace(scene.children, pods=(odd,))

    assert scene.tick().pods == ()


def test_an_environment_waits_for_the_pods_that_will_read_it_again() -> None:
    policy = {"backoff_limit": 1, "restart_scope": RestartScope.ROLE}
    scene = a_scene(a_job().with_workers(1).policy(**policy)).run()
    scene.fail("j-worker-0", 1).tick()
    assert (scene.names, scene.job.status.revision) == ([], 1)

    assert scene.tick().delete == ()


def test_a_service_waits_for_the_pod_that_will_be_reached_by_it_again() -> None:
    builder = a_job().with_workers(1).intranet(Intranet.SERVICE).policy(backoff_limit=1)
    scene = a_scene(builder, services=True).run()
    scene.fail("j-worker-0", 1).tick()
    assert [ref.kind for ref in scene.tick().delete] == ["ConfigMap"]

    scene.run()
    scene.tick(1)
    scene.run()
    scene.scale(worker=2).tick()
    scene.lose("j-worker-1")
    plan = scene.tick()
    assert ([pod.name for pod in plan.pods], plan.delete) == (["j-worker-1"], ())


def test_services_of_a_job_that_meets_by_address_by_now_go() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1), services=True).run()
    scene.fail("j-worker-0", 1).tick()
    scene.children = replace(scene.children, services=frozenset({"j-worker-0"}))

    assert ChildRef(kind="Service", name="j-worker-0") in scene.tick().delete
