"""What a job is when its file does not say."""

from __future__ import annotations

import pytest

from regatta.api.job import CleanPodPolicy, Intranet, Mode, RestartScope, RunPolicy
from regatta.api.load import validate_document
from tests.api.builders import a_job, errors_of

MODES = {
    "one worker is Single": (a_job().workers(1), Mode.SINGLE),
    "more workers are Collective": (a_job().workers(2), Mode.COLLECTIVE),
    "servers make it PS": (a_job().with_ps(1), Mode.PS),
    "servers and one worker are PS": (a_job().workers(1).with_ps(1), Mode.PS),
    "heter beside servers makes it Heter": (a_job().with_ps().with_heter(), Mode.HETER),
    "tasks make it Custom": (a_job().with_tasks({"name": "a", "replicas": 1}), Mode.CUSTOM),
    "one worker may be Collective if it says so": (
        a_job().workers(1).spec(mode="Collective"),
        Mode.COLLECTIVE,
    ),
}


@pytest.mark.parametrize(("job", "mode"), MODES.values(), ids=MODES)
def test_the_mode_follows_from_the_roles(job: a_job, mode: Mode) -> None:
    assert job.load().job.spec.mode is mode


def test_everything_unsaid_has_its_documented_default() -> None:
    job = a_job().load().job
    assert job.namespace == "default"
    assert job.spec.clean_pod_policy is CleanPodPolicy.ON_COMPLETION
    assert job.spec.with_gloo == 1
    assert job.spec.intranet is Intranet.POD_IP
    assert job.spec.elastic is None
    assert job.spec.run_policy == RunPolicy(backoff_limit=0, restart_scope=RestartScope.JOB)


def test_a_key_without_a_value_is_as_good_as_absent() -> None:
    job = a_job().spec(ps=None, mode=None, runPolicy=None).pod(volumes=None)
    loaded = validate_document(job.doc()).job
    assert loaded.spec.mode is Mode.COLLECTIVE
    assert "volumes" not in loaded.spec.roles()["worker"].template["spec"]


def test_the_pod_template_passes_through_untouched() -> None:
    job = a_job().pod(nodeSelector={"a": "b"}, someday={"new": [1, "x"]})
    template = job.load().job.spec.roles()["worker"].template
    assert template == job.doc()["spec"]["worker"]["template"]


def test_validating_changes_nothing_in_the_document_given() -> None:
    job = a_job().spec(cleanPodPolicy=None)
    given = job.doc()
    validate_document(given)
    assert given == job.doc()


def test_clean_policy_is_the_same_field_as_clean_pod_policy() -> None:
    assert (
        a_job().spec(cleanPolicy="Never").load().job.spec.clean_pod_policy is CleanPodPolicy.NEVER
    )
    same = a_job().spec(cleanPolicy="Never", cleanPodPolicy="Never")
    assert errors_of(same) == []
