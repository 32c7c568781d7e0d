"""Which spec a job goes on with while the one that stands is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.job import (
    Condition,
    Intranet,
    Job,
    JobSpec,
    JobStatus,
    Mode,
    Phase,
    RoleSpec,
    RunPolicy,
)
from regatta.api.problems import Problem
from regatta.controller.policies.attempts import fingerprint
from regatta.controller.policies.wrong_spec import (
    NO_SPEC,
    WrongSpec,
    spec_in_force,
    was_found_right,
)
from tests.controller.builders import TEMPLATE, a_job, a_scene

MISSPELT = "spec.cleanPodPolicy: found Nerver"

RUNS = JobSpec(
    mode=Mode.COLLECTIVE,
    worker=RoleSpec(replicas=2, template=TEMPLATE),
    run_policy=RunPolicy(backoff_limit=3),
)
STATUS = JobStatus(
    phase=Phase.RUNNING, mode="Collective", made_from=fingerprint(RUNS), shape={"worker": 2}
)
OTHER_TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "main", "command": ["no"]}]}}


def wrong(spec: JobSpec | None, place: str = "spec.cleanPodPolicy") -> WrongSpec:
    policy = spec.run_policy if spec else None
    return WrongSpec(problems=(Problem(place, "no"),), spec=spec, run_policy=policy)


def test_a_job_goes_on_with_its_last_right_spec() -> None:
    edited = replace(RUNS, worker=RoleSpec(replicas=5, template=OTHER_TEMPLATE))
    assert spec_in_force(STATUS, wrong(edited), RUNS) == RUNS
    assert spec_in_force(STATUS, wrong(None), RUNS) == RUNS


FORGOTTEN: dict[str, tuple[JobSpec | None, JobStatus, JobSpec]] = {
    "what is written, if its pods are made of it": (
        replace(RUNS, elastic=1),
        STATUS,
        replace(RUNS, elastic=1),
    ),
    "in the size that it has": (
        replace(RUNS, mode=Mode.SINGLE, worker=RoleSpec(replicas=1, template=TEMPLATE)),
        STATUS,
        RUNS,
    ),
    "nothing, if its pods are made of something else": (
        replace(RUNS, worker=RoleSpec(replicas=2, template=OTHER_TEMPLATE)),
        STATUS,
        NO_SPEC,
    ),
    "nothing, if its pods reach each other otherwise": (
        replace(RUNS, intranet=Intranet.HOST),
        STATUS,
        NO_SPEC,
    ),
    "nothing, if a role of it is not written": (
        replace(RUNS, worker=None, ps=RUNS.worker),
        STATUS,
        NO_SPEC,
    ),
    "nothing, if it cannot be read": (None, STATUS, NO_SPEC),
    "nothing, if it is the former operator's": (RUNS, replace(STATUS, made_from=""), NO_SPEC),
}


@pytest.mark.parametrize(("written", "status", "held"), FORGOTTEN.values(), ids=FORGOTTEN)
def test_where_nobody_remembers_that_spec_it_goes_on_with(
    written: JobSpec | None, status: JobStatus, held: JobSpec
) -> None:
    assert spec_in_force(status, wrong(written), None) == held


def test_tasks_keep_their_sizes_too() -> None:
    job = a_job().with_task("a", 2).with_task("b", 1).obj()
    status = JobStatus(
        mode="Custom", made_from=fingerprint(job.spec), shape={"a": 2, "b": 1}, phase=Phase.RUNNING
    )
    tasks = tuple(replace(task, replicas=4) for task in job.spec.tasks)

    held = spec_in_force(status, wrong(replace(job.spec, tasks=tasks)), None)

    assert held == job.spec


POLICIES: dict[str, tuple[RunPolicy | None, str, RunPolicy]] = {
    "a run policy counts though the rest is wrong": (
        RunPolicy(backoff_limit=1, active_deadline_seconds=60),
        "spec.worker.template",
        RunPolicy(backoff_limit=1, active_deadline_seconds=60),
    ),
    "one that is wrong itself does not": (
        RunPolicy(active_deadline_seconds=-1),
        "spec.runPolicy.activeDeadlineSeconds",
        RunPolicy(backoff_limit=3),
    ),
    "but a job can be stopped all the same": (
        RunPolicy(active_deadline_seconds=-1, abort=True),
        "spec.runPolicy.activeDeadlineSeconds",
        RunPolicy(backoff_limit=3, abort=True),
    ),
    "and suspended": (
        RunPolicy(backoff_limit=-1, suspend=True),
        "spec.runPolicy.backoffLimit",
        RunPolicy(backoff_limit=3, suspend=True),
    ),
    "one that cannot be read is as it was": (None, "spec.runPolicy", RunPolicy(backoff_limit=3)),
}


@pytest.mark.parametrize(("asked", "place", "held"), POLICIES.values(), ids=POLICIES)
def test_what_people_ask_of_a_job(asked: RunPolicy | None, place: str, held: RunPolicy) -> None:
    edit = WrongSpec(problems=(Problem(place, "no"),), run_policy=asked)
    assert spec_in_force(STATUS, edit, RUNS).run_policy == held


def test_a_run_policy_is_wrong_whatever_else_is() -> None:
    places = ("spec.worker.template", "spec.runPolicy.activeDeadlineSeconds")
    problems = tuple(Problem(place, "no") for place in places)
    edit = WrongSpec(problems=problems, run_policy=RunPolicy(active_deadline_seconds=-1))

    assert spec_in_force(STATUS, edit, RUNS).run_policy == RunPolicy(backoff_limit=3)


def test_a_wrong_run_policy_is_not_followed_where_the_last_right_one_is_forgotten() -> None:
    edited = replace(RUNS, run_policy=RunPolicy(active_deadline_seconds=-1, suspend=True))
    held = spec_in_force(STATUS, wrong(edited, "spec.runPolicy.activeDeadlineSeconds"), None)
    assert held == replace(RUNS, run_policy=RunPolicy(suspend=True))


# Which spec need not be judged

JUDGED = JobStatus(
    phase=Phase.RUNNING,
    observed_generation=2,
    conditions=(Condition(type="Admitted", status="True"),),
)
FOUND: dict[str, tuple[JobStatus, bool]] = {
    "one that was run is right": (JUDGED, True),
    "another generation": (replace(JUDGED, observed_generation=1), False),
    "the former operator's": (replace(JUDGED, conditions=()), False),
    "one that was refused": (replace(JUDGED, phase=Phase.FAILED, reason="InvalidSpec"), False),
    "one that is not followed": (replace(JUDGED, spec_problem=MISSPELT), False),
    "one that is not followed, behind another reason": (
        replace(JUDGED, spec_problem=MISSPELT, reason="ReplicaFailed"),
        False,
    ),
}


@pytest.mark.parametrize(("status", "right"), FOUND.values(), ids=FOUND)
def test_a_spec_is_judged_once(status: JobStatus, right: bool) -> None:
    assert was_found_right(status, 2) is right


def test_a_job_that_goes_on_is_judged_again_by_whoever_comes_next() -> None:
    scene = a_scene(a_job().with_workers(2)).run()
    scene.write(scene.job.spec, MISSPELT).tick()
    job: Job = scene.job
    assert not was_found_right(job.status, job.metadata.generation)
