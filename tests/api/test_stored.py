"""A stored spec is read without judgement, and means what the same file does."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from regatta.api.errors import InvalidJob
from regatta.api.job import (
    CleanPodPolicy,
    Intranet,
    Job,
    JobSpec,
    Mode,
    RunPolicy,
    decode_job,
    document,
    encode,
)
from regatta.api.load import validate_document
from regatta.api.stored import read_run_policy, read_spec, read_what_fits

POD: dict[str, Any] = {"spec": {"containers": [{"name": "main", "image": "x"}], "volumes": None}}


def role(replicas: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"replicas": replicas, "template": copy.deepcopy(POD), **more}


def perhaps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Said, unsaid by a key without a value, or (see `some_of`) not a word of it."""
    return st.none() | values


def some_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {}, optional={name: perhaps(values) for name, values in fields.items()}
    )


COUNTS = st.integers(1, 5)
QUANTITIES = st.sampled_from(["500m", "1Gi", 2, 0.5, 1e-7, None])
ROLE = st.builds(role, perhaps(COUNTS))
TASK = st.fixed_dictionaries(
    {"replicas": COUNTS, "template": st.just(POD)},
    optional={
        "completion": perhaps(some_of(minFailed=COUNTS | st.none(), minSucceeded=COUNTS)),
        "ports": perhaps(st.lists(st.just({"label": "http", "count": 2}), max_size=1)),
        "alias": perhaps(st.sampled_from(["A", "B_c"])),
    },
)
ROLES = st.one_of(
    some_of(ps=ROLE, worker=ROLE, heter=ROLE),
    st.lists(TASK, min_size=1, max_size=3).map(
        lambda tasks: {"tasks": [{"name": f"t{n}", **task} for n, task in enumerate(tasks)]}
    ),
)
REST = some_of(
    cleanPodPolicy=st.sampled_from(list(CleanPodPolicy)).map(str),
    cleanPolicy=st.sampled_from(list(CleanPodPolicy)).map(str),
    withGloo=st.integers(0, 2),
    intranet=st.sampled_from(["PodIP", "Service", "Host", "HostNetwork"]),
    elastic=st.integers(0, 3),
    schedulingPolicy=some_of(
        minAvailable=COUNTS,
        queue=st.sampled_from(["", "q"]),
        priorityClass=st.just("high"),
        minResources=st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES),
    ),
    runPolicy=some_of(
        backoffLimit=st.integers(0, 3),
        activeDeadlineSeconds=COUNTS,
        ttlSecondsAfterFinished=COUNTS,
        suspend=st.booleans(),
        abort=st.booleans(),
        restartScope=st.sampled_from(["Job", "Role"]),
        hangTimeoutSeconds=COUNTS,
    ),
)


def a_document(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "demo"},
        "spec": spec,
    }


def loaded(spec: dict[str, Any]) -> Job:
    """As from a file; documents that are refused prove nothing here."""
    try:
        return validate_document(a_document(spec)).job
    except InvalidJob:
        reject()


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(ROLES, REST)
def test_whatever_a_right_document_says_or_leaves_out_it_reads_as_it_loads(
    roles: dict[str, Any], rest: dict[str, Any]
) -> None:
    spec = {**rest, **roles}
    before = copy.deepcopy(spec)

    shown = read_what_fits(spec)

    assert spec == before, "the document is left as it was"
    job = loaded(spec)
    assert read_spec(spec) == shown == job.spec
    assert read_run_policy(spec) == job.spec.run_policy
    assert job.spec.mode in Mode, "a mode is always known"
    stored = document(job)["spec"]
    assert read_spec(stored) == job.spec, "and what is complete stays as it is"
    assert decode_job(encode(job)) == job, "in the store of a machine as well"


MEANINGS: dict[str, tuple[dict[str, Any], JobSpec]] = {
    "one worker is Single": ({"worker": role()}, JobSpec(mode=Mode.SINGLE)),
    "more are Collective": ({"worker": role(2)}, JobSpec(mode=Mode.COLLECTIVE)),
    "servers make it PS": ({"worker": role(2), "ps": role()}, JobSpec(mode=Mode.PS)),
    "heter beside servers is Heter": (
        {"worker": role(), "ps": role(), "heter": role()},
        JobSpec(mode=Mode.HETER),
    ),
    "tasks are Custom": ({"tasks": [role(name="a")]}, JobSpec(mode=Mode.CUSTOM)),
    "cleanPolicy is cleanPodPolicy": (
        {"worker": role(), "cleanPolicy": "Never"},
        JobSpec(mode=Mode.SINGLE, clean_pod_policy=CleanPodPolicy.NEVER),
    ),
    "cleanPodPolicy goes before its alias": (
        {"worker": role(), "cleanPolicy": "Never", "cleanPodPolicy": "Always"},
        JobSpec(mode=Mode.SINGLE, clean_pod_policy=CleanPodPolicy.ALWAYS),
    ),
    "HostNetwork is Host": (
        {"worker": role(), "intranet": "HostNetwork"},
        JobSpec(mode=Mode.SINGLE, intranet=Intranet.HOST),
    ),
}


@pytest.mark.parametrize(("written", "meant"), MEANINGS.values(), ids=MEANINGS)
def test_what_is_not_said_follows_from_what_is(written: dict[str, Any], meant: JobSpec) -> None:
    spec = read_spec(written)

    bare = msgspec.structs.replace(spec, ps=None, worker=None, heter=None, tasks=())
    assert bare == meant


def test_a_role_that_does_not_say_how_many_is_one() -> None:
    spec = read_spec({"worker": {"template": POD}, "ps": {}})
    assert (spec.replicas, spec.ps and spec.ps.template) == (2, {})


def test_a_template_is_stored_without_keys_that_have_no_value() -> None:
    spec = read_spec({"worker": role()})
    assert spec.worker is not None
    assert spec.worker.template == {"spec": {"containers": [{"name": "main", "image": "x"}]}}


ODD: dict[str, dict[str, Any]] = {
    "a word that is none": {"cleanPodPolicy": "Nerver"},
    "a mode that is none": {"mode": "Fancy"},
    "text for a number": {"withGloo": "yes"},
    "a role that is no map": {"ps": "two"},
    "tasks that are no list": {"tasks": {"name": "a"}},
    "a policy that is no map": {"runPolicy": 3, "schedulingPolicy": "fast"},
    "quantities that are none": {"schedulingPolicy": {"minResources": {"cpu": ["lots"]}}},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_has_no_meaning_is_as_if_unsaid_where_a_job_is_only_shown(odd: dict[str, Any]) -> None:
    shown = read_what_fits({"worker": role(3), "intranet": "Service", **odd})

    assert shown.roles()["worker"].replicas == 3
    assert shown.intranet is Intranet.SERVICE, "what does have one is kept"


def test_a_run_policy_is_read_whatever_stands_beside_it() -> None:
    asked = {"cleanPodPolicy": "Nerver", "runPolicy": {"abort": True, "backoffLimit": None}}
    assert read_run_policy(asked) == RunPolicy(abort=True)
    assert read_run_policy({"runPolicy": {"abort": "maybe"}}) is None
    assert read_run_policy({}) == RunPolicy()
