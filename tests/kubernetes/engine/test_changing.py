"""`stop`, `delete`, `scale`, `suspend` and `resume` on a cluster."""

from __future__ import annotations

from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.operator.running import Jobs


def test_a_stopped_job_keeps_its_pods(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=2))
    jobs.wait_for_phase(name, "Running")

    said = regatta("stop", name)

    assert (said.code, said.out) == (0, f"stopping job {name}\n")
    jobs.wait_for_phase(name, "Aborted")
    assert len(jobs.pods(name)) == 2
    again = regatta("stop", name)
    assert again.code == 4
    assert "has ended (Aborted) and nothing of it is running" in again.err


def test_stop_ends_the_servers_that_a_finished_job_left_running(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    job = jobfiles.ending(name).with_ps(1).spec(cleanPodPolicy="Never")
    jobs.create(job)
    jobs.wait_for_phase(name, "Completed")
    assert f"ps-0 still runs because the job says cleanPodPolicy: Never; `regatta stop {name}`" in (
        regatta("describe", name).out
    )

    said = regatta("stop", name)

    assert (said.code, said.out) == (0, f"stopping what job {name} left running\n")
    jobs.wait_for_pods(
        name, lambda pods: pods[f"{name}-ps-0"]["status"]["phase"] == "Failed", "its end"
    )


def test_one_job_that_is_not_there_does_not_keep_others_from_being_deleted(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.running(name, workers=1))

    said = regatta("delete", "no-such-job", name)

    assert said.code == 4
    assert said.out == f"job {name} deleted\n"
    assert "there is no job named no-such-job" in said.err
    assert regatta("get", name).code == 4


def test_delete_all_means_the_namespace(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    for each in (f"{name}-a", f"{name}-b"):
        jobs.create(jobfiles.running(each, workers=1))

    assert regatta("delete", "--all").code == 4  # both are live
    said = regatta("delete", "--all", "--yes")
    assert (said.code, said.out) == (0, "2 jobs deleted\n")

    assert jobs.api.items(jobs.path) == []


def test_scale_changes_the_workers(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=2, servers=1))
    jobs.wait_for_phase(name, "Running")

    said = regatta("scale", name, "--replicas", "3")

    assert said.out == f"job {name}: worker is scaled to 3\n"
    jobs.wait(name, lambda s: s.get("worker", {}).get("ready") == "3/3", "three workers")


def test_scaling_what_cannot_be_scaled_is_refused_with_a_sentence(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.running(name, workers=2))

    nobody = regatta("scale", name, "--role", "ps", "--replicas", "2")

    assert nobody.code == 4
    assert "has no role 'ps'; its roles are worker" in nobody.err


def test_a_role_of_named_tasks_is_scaled_too(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    document = jobfiles.running(name, workers=1).document()
    template = document["spec"].pop("worker")["template"]
    document["spec"]["tasks"] = [
        {"name": task, "replicas": 1, "template": template} for task in ("chief", "helper")
    ]
    jobs.create(document)

    assert regatta("scale", name, "--role", "helper", "--replicas", "2").code == 0

    sizes = {task["name"]: task["replicas"] for task in jobs.get(name)["spec"]["tasks"]}
    assert sizes == {"chief": 1, "helper": 2}


def test_suspend_and_resume(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_phase(name, "Running")

    assert regatta("suspend", name).out == f"job {name} suspended\n"
    jobs.wait_for_phase(name, "Suspended")
    twice = regatta("suspend", name)
    assert (twice.code, "already suspended" in twice.err) == (4, True)
    assert regatta("resume", name).out == f"job {name} resumed\n"
    jobs.wait_for_phase(name, "Running")
