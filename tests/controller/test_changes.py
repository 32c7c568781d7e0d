"""What a person may change about a job, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from regatta.api.errors import JobIsLive, NotPossible, RegattaError
from regatta.api.job import Job, JobStatus, Mode, Phase, RoleStatus
from regatta.controller.changes import (
    deleted,
    no_job_but_runs,
    no_such_job,
    no_such_run,
    replaced,
    scaled,
    stopped,
    suspended,
)
from regatta.controller.labels import REPLACED_BY
from tests.controller.builders import EPOCH, JobBuilder, a_job

Change = Callable[[Job], Job]

STOP: Change = stopped
SUSPEND: Change = lambda job: suspended(job, True)  # noqa: E731
RESUME: Change = lambda job: suspended(job, False)  # noqa: E731
SCALE: Change = lambda job: scaled(job, "worker", 3)  # noqa: E731
REPLACE: Change = lambda job: replaced(job, even_live=False)  # noqa: E731


def job_in(phase: Phase | None = Phase.RUNNING, builder: JobBuilder | None = None) -> Job:
    job = (builder or a_job().with_ps(1).with_workers(2)).obj()
    return replace(job, status=JobStatus(phase=phase))


def going() -> Job:
    return deleted(job_in(), EPOCH)


def asked(**policy: Any) -> Job:
    return job_in(builder=a_job().with_workers(2).policy(**policy))


def with_done(role: str, job: Job | None = None) -> Job:
    job = job or job_in()
    return replace(job, status=replace(job.status, **{role: RoleStatus(done=(0,))}))


def elastic(requests: int | None = 2, limits: int | None = 4, elastic: int | None = 1) -> Job:
    job = job_in()
    worker = replace(job.spec.roles()["worker"], requests=requests, limits=limits)
    return replace(job, spec=replace(job.spec, elastic=elastic, worker=worker))


FORBIDDEN: dict[str, tuple[Change, Job, type[RegattaError], str]] = {
    "stop what is over": (STOP, job_in(Phase.COMPLETED), NotPossible, "has ended (Completed) and"),
    "stop what failed": (STOP, job_in(Phase.FAILED), NotPossible, "nothing of it is running"),
    "stop what is being deleted": (STOP, going(), NotPossible, "j is being deleted"),
    "suspend what is over": (
        SUSPEND,
        job_in(Phase.FAILED),
        NotPossible,
        "j cannot be suspended: it is Failed",
    ),
    "suspend what is being stopped": (
        SUSPEND,
        asked(abort=True),
        NotPossible,
        "cannot be suspended: it is Running",
    ),
    "suspend what is suspended": (SUSPEND, asked(suspend=True), NotPossible, "already suspended"),
    "suspend what is being deleted": (SUSPEND, going(), NotPossible, "j is being deleted"),
    "resume what is over": (
        RESUME,
        job_in(Phase.ABORTED),
        NotPossible,
        "cannot be resumed: it is Aborted",
    ),
    "resume what runs": (RESUME, job_in(), NotPossible, "j is not suspended"),
    "resume what is being deleted": (RESUME, going(), NotPossible, "j is being deleted"),
    "scale what is over": (
        SCALE,
        job_in(Phase.COMPLETED),
        NotPossible,
        "cannot be scaled: it is Completed",
    ),
    "scale what is being stopped": (SCALE, asked(abort=True), NotPossible, "cannot be scaled"),
    "scale what is being deleted": (SCALE, going(), NotPossible, "j is being deleted"),
    "scale once a worker is done": (SCALE, with_done("worker"), NotPossible, "done twice"),
    "scale once a heter trainer is done": (SCALE, with_done("heter"), NotPossible, "done twice"),
    "scale a role that is not there": (
        lambda job: scaled(job, "wroker", 2),
        job_in(),
        NotPossible,
        "no role 'wroker'; its roles are ps, worker",
    ),
    "scale to nothing": (
        lambda job: scaled(job, "worker", 0),
        job_in(),
        NotPossible,
        "worker may have at least 1 replicas, not 0",
    ),
    "scale below the elastic minimum": (
        lambda job: scaled(job, "worker", 1),
        elastic(),
        NotPossible,
        "from 2 to 4 replicas, not 1",
    ),
    "scale above the elastic maximum": (
        lambda job: scaled(job, "worker", 5),
        elastic(),
        NotPossible,
        "from 2 to 4 replicas, not 5",
    ),
    "scale to nothing without an elastic minimum": (
        lambda job: scaled(job, "worker", 0),
        elastic(requests=None),
        NotPossible,
        "from 1 to 4 replicas, not 0",
    ),
    "take the name of what runs": (REPLACE, job_in(), JobIsLive, "named j is Running. Use `--rep"),
    "take the name of what waits": (REPLACE, job_in(None), JobIsLive, "named j is Pending. Use"),
    "take the name of what goes": (REPLACE, going(), JobIsLive, "named j is being deleted"),
}


@pytest.mark.parametrize(("change", "job", "kind", "words"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_at_a_wrong_moment_a_change_is_refused_with_a_sentence(
    change: Change, job: Job, kind: type[RegattaError], words: str
) -> None:
    before = replace(job)

    with pytest.raises(kind) as refused:
        change(job)

    assert words in str(refused.value)
    assert job == before


def test_stopping_aborts_a_live_job_once() -> None:
    job = stopped(job_in())

    assert (job.spec.run_policy.abort, job.metadata.generation) == (True, 2)
    assert stopped(job) is job, "it is being stopped already"


def test_stopping_a_finished_job_changes_nothing_about_it_and_ends_what_runs_on() -> None:
    job = job_in(Phase.COMPLETED)
    assert stopped(job, runs_on=True) is job


def test_suspending_and_resuming_are_each_a_generation() -> None:
    waiting = suspended(job_in(), True)
    assert (waiting.spec.run_policy.suspend, waiting.metadata.generation) == (True, 2)

    again = suspended(waiting, False)
    assert (again.spec.run_policy.suspend, again.metadata.generation) == (False, 3)


ALLOWED: dict[str, tuple[Job, str, int]] = {
    "more workers": (job_in(), "worker", 5),
    "fewer workers": (job_in(), "worker", 1),
    "more servers": (job_in(), "ps", 2),
    "while it waits": (job_in(None), "worker", 3),
    "while it is suspended": (asked(suspend=True), "worker", 3),
    "once a server has ended well": (with_done("ps"), "worker", 3),
    "within the elastic bounds": (elastic(), "worker", 4),
    "to one where there is no elastic minimum": (elastic(requests=None), "worker", 1),
    "to any number where there is no elastic maximum": (elastic(limits=None), "worker", 9),
    "beyond bounds that are for elastic jobs": (elastic(elastic=None), "worker", 5),
    "while none is done": (replace(job_in(), status=JobStatus(worker=RoleStatus())), "worker", 3),
    "a task": (job_in(builder=a_job().with_task("a", 1).with_task("b", 1)), "b", 2),
}


@pytest.mark.parametrize(("job", "role", "replicas"), ALLOWED.values(), ids=ALLOWED)
def test_a_role_is_scaled_and_the_others_stay(job: Job, role: str, replicas: int) -> None:
    after = scaled(job, role, replicas)

    assert after.spec.roles()[role].replicas == replicas
    assert after.metadata.generation == job.metadata.generation + 1
    others = {name: spec for name, spec in after.spec.roles().items() if name != role}
    assert others == {name: spec for name, spec in job.spec.roles().items() if name != role}


def test_one_worker_that_becomes_two_is_a_collective_job() -> None:
    job = job_in(builder=a_job().with_workers(1))
    assert (job.spec.mode, scaled(job, "worker", 2).spec.mode) == (Mode.SINGLE, Mode.COLLECTIVE)
    assert scaled(job, "worker", 1).spec.mode is Mode.SINGLE
    assert scaled(job_in(), "worker", 3).spec.mode is Mode.PS


def test_a_job_is_deleted_once_whatever_it_does() -> None:
    for phase in (None, Phase.RUNNING, Phase.COMPLETED, Phase.ABORTING):
        doomed = deleted(job_in(phase), EPOCH)
        assert doomed.metadata.deletion_timestamp == EPOCH
        assert deleted(doomed, EPOCH.replace(year=2030)) is doomed


def test_a_name_is_given_up_by_a_finished_job_and_by_a_live_one_only_if_asked() -> None:
    over = job_in(Phase.FAILED)
    assert replaced(over, even_live=False) is over

    live = replaced(job_in(), even_live=True)
    assert (live.spec.run_policy.abort, live.metadata.generation) == (True, 2)


def test_a_live_job_that_is_replaced_knows_by_whom_but_not_one_that_its_user_ended() -> None:
    assert replaced(job_in(), even_live=True, by="u2").metadata.annotations == {REPLACED_BY: "u2"}
    assert replaced(job_in(), even_live=True).metadata.annotations == {}
    noted = replace(job_in().metadata, annotations={"mine": "yes"})
    told = replaced(replace(job_in(), metadata=noted), even_live=True, by="u2").metadata.annotations
    assert told == {"mine": "yes", REPLACED_BY: "u2"}
    ending = stopped(job_in())
    assert replaced(ending, even_live=True, by="u2") is ending


def test_a_job_that_is_not_there_is_named_with_what_lists_all() -> None:
    assert "no job named mnist in namespace team. `regatta get -A`" in str(
        no_such_job("team", "mnist")
    )


@pytest.mark.parametrize("name", ["48af2309", "48af2309-3001", "deadbeef"])
def test_a_uid_in_a_names_place_is_told_where_it_belongs(name: str) -> None:
    assert f"`--uid {name}`" in str(no_such_job("team", name))


def test_a_run_that_is_not_there_is_told_with_where_it_was_looked_for() -> None:
    assert "UID u1 in any namespace. `regatta history -A`" in str(no_such_run("u1", None))
    assert "UID u1 in namespace team." in str(no_such_run("u1", "team"))


def test_a_job_that_is_no_more_is_named_with_what_lists_its_runs() -> None:
    told = "there is no job named mnist in namespace {} any more. `regatta history mnist{}` lists"
    assert told.format("team", " -n team") in str(no_job_but_runs("team", "mnist"))
    assert told.format("default", "") in str(no_job_but_runs("default", "mnist"))
