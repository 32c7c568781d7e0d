"""What a job that may go on asks for: pods, Services, and the environment once all is known."""

from __future__ import annotations

import pytest

from regatta.api.job import Intranet, Phase
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
    from regatta.api.job import Intranet

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
