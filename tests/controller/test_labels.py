"""Labels, owners and names of a job's children, as others read them."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.controller import labels
from tests.controller.builders import a_job

JOB = a_job().with_workers(1).obj()


def test_the_labels_are_those_that_selectors_and_the_former_operator_use() -> None:
    assert [labels.JOB, labels.ROLE, labels.INDEX, labels.ATTEMPT, labels.REVISION] == [
        "batch.paddlepaddle.org/job-name",
        "batch.paddlepaddle.org/role",
        "batch.paddlepaddle.org/replica-index",
        "batch.paddlepaddle.org/attempt",
        "batch.paddlepaddle.org/environment-revision",
    ]
    assert [labels.UPSTREAM_NAME, labels.UPSTREAM_ROLE, labels.UPSTREAM_ANNOTATION] == [
        "paddle-res-name",
        "paddle-res-type",
        "paddle-resource",
    ]


def test_every_child_says_whose_it_is() -> None:
    assert labels.of_job(JOB) == {
        "app.kubernetes.io/name": "paddlejob",
        "app.kubernetes.io/instance": "j",
        "app.kubernetes.io/managed-by": "regatta",
        "batch.paddlepaddle.org/job-name": "j",
    }


def test_children_go_with_their_job_and_have_no_other_controller() -> None:
    assert labels.owned_by(JOB) == [
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "name": "j",
            "uid": "uid-j",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_an_environment_is_named_after_the_very_job_and_its_revision() -> None:
    long = replace(JOB, metadata=replace(JOB.metadata, uid="0123456789"))
    assert labels.environment_name(long, 3) == "j-env-3-01234567"

    rehearsed = replace(JOB, metadata=replace(JOB.metadata, uid=""))
    assert labels.environment_name(rehearsed, 3) == "j-env-3"
