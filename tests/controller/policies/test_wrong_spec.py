"""A spec that is wrong: what the job does meanwhile, and what it says."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from regatta.api.job import (
    Condition,
    JobStatus,
    Phase,
)
from regatta.api.problems import Problem
from regatta.controller.observe import observe
from regatta.controller.plan import Event, Plan
from regatta.controller.policies.wrong_spec import (
    NO_SPEC,
    WrongSpec,
    refuse,
    revived,
)
from tests.controller.builders import Scene, a_job, a_scene, at

MISSPELT = "spec.cleanPodPolicy: found Nerver"
EMPTY = "spec.worker.template: it is missing"


def never_right() -> Scene:
    """A job that came with a wrong spec and has no other."""
    scene = a_scene(a_job().with_workers(2))
    scene.job = replace(scene.job, spec=NO_SPEC)
    scene.problem = MISSPELT
    return scene


def a_running() -> Scene:
    return a_scene(a_job().with_ps(1).with_workers(2)).run()


def told(scene: Scene) -> list[str]:
    return [event.message for event in scene.plan.events if event.reason == "InvalidSpec"]


# One that never ran


def test_a_job_that_comes_with_a_wrong_spec_is_failed_and_says_why() -> None:
    scene = never_right()
    scene.tick()

    status = scene.job.status
    assert (status.phase, status.reason, status.message) == (Phase.FAILED, "InvalidSpec", MISSPELT)
    assert (status.observed_generation, status.completion_time) == (1, None)
    (condition,) = status.conditions
    assert (condition.type, condition.message, condition.observed_generation) == (
        "Failed",
        MISSPELT,
        1,
    )
    assert told(scene) == [MISSPELT]
    assert scene.names == []


def test_what_is_wrong_is_told_once() -> None:
    scene = never_right()
    scene.tick()

    plan = scene.tick(60)

    assert (plan.status, plan.events) == (None, ())


def test_one_wrong_spec_after_another_is_told_as_it_stands() -> None:
    scene = never_right()
    scene.tick()

    scene.write(NO_SPEC, EMPTY).tick(5)

    status = scene.job.status
    assert (status.phase, status.message, status.observed_generation) == (Phase.FAILED, EMPTY, 2)
    (condition,) = status.conditions
    assert (condition.message, condition.observed_generation) == (EMPTY, 2)
    assert condition.last_transition_time == at(0).wall, "it has been failed all the time"
    assert told(scene) == [EMPTY]


def test_the_same_mistake_in_another_spec_is_seen_without_being_told_again() -> None:
    scene = never_right()
    scene.tick()

    scene.write(NO_SPEC, MISSPELT).tick()

    assert scene.job.status.observed_generation == 2
    assert told(scene) == []


def test_a_job_that_never_ran_begins_when_its_spec_is_right() -> None:
    scene = never_right()
    scene.tick()

    scene.write(a_job().with_workers(2).obj().spec)
    scene.run()

    status = scene.job.status
    assert (status.phase, status.reason, status.message) == (Phase.RUNNING, "", "")
    assert {c.type: c.status for c in status.conditions}.get("Failed") is None
    assert (status.attempt, status.restarts, status.observed_generation) == (0, 0, 2)


def test_a_right_spec_that_nobody_had_looked_at_yet_does_not_begin_once_it_is_wrong() -> None:
    """It is known, but nothing was made of it."""
    scene = a_scene(a_job().with_workers(2))
    scene.write(scene.job.spec, MISSPELT).tick()

    assert (scene.job.status.phase, scene.names) == (Phase.FAILED, [])


def test_a_refused_job_that_is_deleted_goes() -> None:
    scene = never_right()
    scene.tick()
    metadata = replace(scene.job.metadata, deletion_timestamp=at(1).wall)
    scene.job = replace(scene.job, metadata=metadata)

    plan = scene.tick()

    assert (plan.events, plan.pods) == ((), ())
    assert scene.job.status.phase is Phase.TERMINATING


def test_a_long_list_of_problems_is_cut() -> None:
    problems = tuple(Problem(f"spec.tasks[{n}].name", "it is missing") for n in range(500))
    assert len(WrongSpec(problems=problems).problem) == 1024, "no event may be longer"


def test_problems_are_told_a_line_each() -> None:
    problems = (Problem("spec.ps", "no"), Problem("spec.worker", "no"))
    assert WrongSpec(problems=problems).problem == "spec.ps: no\nspec.worker: no"


def refused(*conditions: Condition, **stored: Any) -> Plan:
    """A look, ten seconds later, at a job that said this and has not begun."""
    said = JobStatus(conditions=conditions, **stored)
    scene = never_right()
    return refuse(scene.job, observe(scene.job, scene.children), said, MISSPELT, at(10))


def test_a_refusal_is_a_condition_since_the_job_is_refused() -> None:
    admitted = Condition(type="Admitted", status="True", last_transition_time=at(1).wall)
    failed = Condition(type="Failed", status="True", last_transition_time=at(2).wall)
    since = {
        failed: at(2).wall,
        replace(failed, status="False"): at(10).wall,
        admitted: at(10).wall,
    }
    for before, then in since.items():
        status = refused(admitted, before).status
        assert status is not None
        assert status.conditions == (
            Condition(
                type="Failed",
                status="True",
                reason="InvalidSpec",
                message=MISSPELT,
                last_transition_time=then,
                observed_generation=1,
            ),
        )


def test_a_refusal_is_told_unless_it_was() -> None:
    told = (Event(type="Warning", reason="InvalidSpec", message=MISSPELT),)
    assert refused().events == told
    assert refused(reason="InvalidSpec", message=MISSPELT).events == ()
    assert refused(spec_problem=MISSPELT).events == ()
    assert refused(reason="InvalidSpec", message=EMPTY).events == told
    assert refused(reason="CreateRefused", message=MISSPELT).events == told


def test_what_was_refused_is_as_if_nobody_had_looked() -> None:
    admitted = Condition(type="Admitted", status="True")
    status = JobStatus(
        phase=Phase.FAILED,
        reason="InvalidSpec",
        message=MISSPELT,
        completion_time=at(1).wall,
        conditions=(admitted, Condition(type="Failed", status="True")),
    )
    job = replace(never_right().job, status=status)
    assert revived(job).status == JobStatus(conditions=(admitted,))

    goes_on = replace(status, phase=Phase.RUNNING)
    after = revived(replace(job, status=goes_on)).status
    assert after == replace(goes_on, reason="", message="")


# One that has begun


def test_a_job_that_runs_goes_on_as_it_was_and_says_so() -> None:
    scene = a_running()
    before = scene.children

    plan = scene.write(scene.job.spec, MISSPELT).tick()

    status = scene.job.status
    assert (status.phase, status.reason, status.message) == (Phase.RUNNING, "InvalidSpec", MISSPELT)
    assert (status.observed_generation, status.spec_problem) == (2, MISSPELT)
    assert told(scene) == [MISSPELT]
    assert scene.children == before
    assert (plan.pods, plan.stop, plan.delete) == ((), (), ())
    assert scene.tick(60).status is None


def test_a_wrong_edit_is_told_beside_what_else_happens() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()

    plan = scene.place().write(scene.job.spec, MISSPELT).tick()

    assert [event.reason for event in plan.events] == ["Starting", "InvalidSpec"]


def test_a_job_that_runs_tells_of_each_wrong_edit() -> None:
    scene = a_running()
    scene.write(scene.job.spec, MISSPELT).tick()

    scene.write(scene.job.spec, EMPTY).tick()
    assert (scene.job.status.message, scene.job.status.observed_generation) == (EMPTY, 3)
    assert told(scene) == [EMPTY]

    scene.write(scene.job.spec).tick()
    status = scene.job.status
    assert (status.reason, status.message, status.spec_problem) == ("", "", "")
    assert (status.observed_generation, told(scene)) == (4, [])


def test_a_wrong_spec_comes_after_what_is_more_important_and_is_not_forgotten() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=1)).run()
    scene.write(scene.job.spec, MISSPELT).tick()

    scene.fail("j-worker-0", 1).tick()
    status = scene.job.status
    assert (status.reason, status.spec_problem) == ("ReplicaFailed", MISSPELT)
    assert MISSPELT not in status.message
    assert told(scene) == []

    scene.tick(60)
    scene.run()
    assert (scene.job.status.phase, scene.job.status.message) == (Phase.RUNNING, MISSPELT)
    assert scene.events.count("InvalidSpec") == 1


def test_a_job_that_goes_on_still_ends_as_any_other() -> None:
    scene = a_scene(a_job().with_workers(1)).run()
    scene.write(scene.job.spec, MISSPELT).tick()

    scene.succeed("j-worker-0").tick()
    assert (scene.job.status.phase, scene.job.status.reason) == (Phase.COMPLETED, "Completed")

    scene.write(scene.job.spec, EMPTY)
    plan = scene.tick()
    assert (plan.status, plan.events) == (None, ()), "what is over says nothing any more"


def test_pods_show_that_a_job_has_begun_before_its_status_does() -> None:
    scene = a_scene(a_job().with_workers(1))
    scene.tick()
    scene.job = replace(scene.job, status=JobStatus())  # the first status may have to wait

    scene.write(scene.job.spec, MISSPELT).tick()

    assert (scene.job.status.phase, scene.names) == (Phase.PENDING, ["j-worker-0"])


def test_a_job_with_nothing_to_go_on_with_is_left_as_it_is() -> None:
    scene = a_running()
    before, phase = scene.children, scene.job.status.phase

    scene.write(NO_SPEC, MISSPELT).tick()

    status = scene.job.status
    assert (status.phase, status.reason, status.message) == (phase, "InvalidSpec", MISSPELT)
    assert (status.spec_problem, status.observed_generation) == (MISSPELT, 2)
    assert scene.children == before
    assert told(scene) == [MISSPELT]
    assert scene.tick(60).status is None


def test_a_finished_job_with_nothing_to_go_on_with_keeps_what_it_left() -> None:
    scene = a_running()
    scene.fail("j-worker-0", 1).tick()
    left = scene.names

    plan = scene.write(NO_SPEC, MISSPELT).tick()

    assert (plan.status, plan.events, scene.names) == (None, (), left)
