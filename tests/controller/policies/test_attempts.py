"""What a new attempt forgets, and what it keeps."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from regatta.api.job import (
    Intranet,
    Job,
    JobSpec,
    JobStatus,
    Phase,
    Ref,
    RestartScope,
    RoleStatus,
    TaskPort,
)
from regatta.controller.observe import observe
from regatta.controller.policies.attempts import (
    effective_scope,
    fingerprint,
    may_move,
    new_attempt_of,
    new_attempt_of_all,
)
from regatta.controller.world import Children
from tests.controller.builders import JobBuilder, a_job

PS = a_job().with_ps(1).with_workers(3)
REFS = (Ref(name="j-worker-0"), Ref(name="j-worker-1"))


def run_once(builder: JobBuilder = PS) -> Job:
    worker = RoleStatus(attempt=1, done=(2,), refs=REFS, replica_attempts={"0": 1}, replicas=2)
    status = JobStatus(
        phase=Phase.RUNNING,
        attempt=1,
        revision=4,
        shape={"ps": 1, "worker": 2},
        restarts=1,
        heartbeat_awake=9.0,
        made_from="old",
        worker=worker,
        ps=RoleStatus(attempt=1),
    )
    return replace(builder.obj(), status=status)


def test_an_attempt_of_all_begins_anew_in_the_size_that_is_asked_for() -> None:
    after = new_attempt_of_all(run_once(), restarts=2).status

    assert (after.attempt, after.revision, after.restarts) == (2, 5, 2)
    assert after.shape == {"ps": 1, "worker": 3}
    assert after.made_from == fingerprint(PS.obj().spec)
    assert after.worker == RoleStatus(attempt=2, replicas=3), "nobody is done, nobody is missed"
    assert after.heartbeat_awake is None


def test_tasks_begin_anew_as_well() -> None:
    job = replace(a_job().with_task("a", 1).obj(), status=JobStatus(attempt=3))
    assert new_attempt_of_all(job).status.tasks == {"a": RoleStatus(attempt=4, replicas=1)}


def test_an_attempt_of_one_replica_leaves_the_others_and_the_environment() -> None:
    job = run_once()
    (_, struck, *_) = observe(job, Children()).replicas
    assert struck.name == "j-worker-0"

    after = new_attempt_of(job, (struck,), whole_role=False).status

    assert (after.attempt, after.revision, after.shape) == (2, 4, job.status.shape)
    assert after.worker is not None
    assert (after.worker.attempt, after.worker.replica_attempts) == (1, {"0": 2})
    assert (after.worker.done, after.worker.refs) == ((2,), REFS[1:]), "it is not missed"
    assert after.ps == job.status.ps


def test_an_attempt_of_a_role_begins_it_anew_and_leaves_the_other() -> None:
    job = run_once()
    (_, struck, *_) = observe(job, Children()).replicas

    after = new_attempt_of(job, (struck,), whole_role=True).status

    assert after.worker is not None
    assert (after.worker.attempt, after.worker.done, after.worker.refs) == (2, (), ())
    assert (after.ps, after.revision) == (job.status.ps, 4)
    assert after.heartbeat_awake is None


def test_every_role_of_a_heter_job_begins_anew() -> None:
    after = new_attempt_of_all(a_job().with_ps(1).with_workers(1).with_heter(1).obj()).status

    assert {role: memory.attempt for role, memory in after.roles().items()} == {
        "ps": 1,
        "worker": 1,
        "heter": 1,
    }


EDITED: dict[str, tuple[dict[str, Any], bool]] = {
    "another template": ({"worker": None}, True),
    "another network": ({"intranet": Intranet.HOST}, True),
    "another gloo": ({"with_gloo": 2}, True),
    "another number": ({"worker": replace(PS.obj().spec.roles()["worker"], replicas=9)}, False),
    "other bounds": ({"elastic": 1}, False),
}


@pytest.mark.parametrize(("edit", "other"), EDITED.values(), ids=EDITED)
def test_the_fingerprint_is_of_what_pods_are_made_of_but_their_number(
    edit: dict[str, Any], other: bool
) -> None:
    spec: JobSpec = PS.obj().spec
    if "worker" in edit and edit["worker"] is None:
        template = {"spec": {"containers": [{"name": "other"}]}}
        edit = {"worker": replace(spec.roles()["worker"], template=template)}
    assert (fingerprint(replace(spec, **edit)) != fingerprint(spec)) is other


def test_the_fingerprint_knows_the_ports_of_tasks() -> None:
    without = a_job().with_task("t", 1).obj().spec
    with_ports = a_job().with_task("t", 1, ports=(TaskPort(label="rpc"),)).obj().spec

    assert fingerprint(without) != fingerprint(with_ports)


def test_the_fingerprint_knows_what_tasks_are_called_and_is_as_before_where_they_are_not() -> None:
    plain = a_job().with_task("t", 1).obj().spec
    called = a_job().with_task("t", 1, alias="T").obj().spec
    named_so = hashlib.sha256(
        msgspec.json.encode(
            ({"t": (plain.tasks[0].template, ())}, plain.intranet, plain.with_gloo), order="sorted"
        )
    ).hexdigest()

    assert fingerprint(called) != fingerprint(plain)
    assert named_so.startswith(fingerprint(plain))


def test_the_fingerprint_is_the_same_however_and_by_whichever_release_it_is_made() -> None:
    """Another one would start every job again when the operator is upgraded."""
    spec = a_job().with_workers(1, {"a": 1, "b": {"c": 2, "d": 3}}).obj().spec
    turned = a_job().with_workers(2, {"b": {"d": 3, "c": 2}, "a": 1}).obj().spec

    assert fingerprint(spec) == fingerprint(turned) == "742b731fcd19d268"


SCOPES: dict[str, tuple[Children, Intranet, RestartScope]] = {
    "a machine's addresses stay": (Children(), Intranet.POD_IP, RestartScope.REPLICA),
    "names stay": (Children(services=frozenset()), Intranet.SERVICE, RestartScope.REPLICA),
    "names stay where only they are used": (
        Children(services=frozenset(), names_only=True),
        Intranet.POD_IP,
        RestartScope.REPLICA,
    ),
    "a cluster's addresses do not": (
        Children(services=frozenset()),
        Intranet.POD_IP,
        RestartScope.JOB,
    ),
}


@pytest.mark.parametrize(("children", "intranet", "scope"), SCOPES.values(), ids=SCOPES)
def test_one_restarts_alone_only_where_the_others_find_it_again(
    children: Children, intranet: Intranet, scope: RestartScope
) -> None:
    job = PS.policy(restart_scope=RestartScope.REPLICA).obj()
    job = replace(job, spec=replace(job.spec, intranet=intranet))
    assert effective_scope(job, children) is scope


@pytest.mark.parametrize("scope", RestartScope)
def test_only_who_starts_again_as_a_whole_can_be_told_other_places(scope: RestartScope) -> None:
    job = a_job().with_ps(1).with_workers(2).policy(restart_scope=scope).obj()
    assert may_move(job) is (scope is RestartScope.JOB)
