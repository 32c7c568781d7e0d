"""What ties children to their job."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.controller.labels import environment_name, of_job, owned_by
from tests.controller.builders import a_job

JOB = a_job("mnist").with_workers(1).obj()


def test_children_carry_their_jobs_name_and_its_uid_as_their_owners() -> None:
    assert of_job(JOB)["batch.paddlepaddle.org/job-name"] == "mnist"
    assert of_job(JOB)["app.kubernetes.io/managed-by"] == "regatta"
    (owner,) = owned_by(JOB)
    assert (owner["kind"], owner["name"], owner["uid"]) == ("PaddleJob", "mnist", "uid-mnist")
    assert owner["controller"] is True, "the garbage collector removes them with it"


def test_an_environment_is_no_other_jobs_by_its_name() -> None:
    """A pod starts as soon as something of that name is there."""
    other = replace(JOB, metadata=replace(JOB.metadata, uid="another-uid"))
    assert environment_name(JOB, 2) == "mnist-env-2-uid-mnis"
    assert environment_name(other, 2) != environment_name(JOB, 2)
    assert environment_name(JOB, 3) != environment_name(JOB, 2)
