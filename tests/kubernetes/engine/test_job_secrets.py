"""A job's secrets in a cluster: there before the job, the job's own, and gone with it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import ClusterRefused, ClusterUnreachable, JobIsLive
from regatta.api.job import Job
from regatta.engines.base import Submission
from regatta.engines.blocking import Blocking
from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.engine.engine import KubernetesEngine
from tests.doors import eventually
from tests.kubernetes.controlplane.api import Refused
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.engine.engines import opened
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import Drop, Rule
from tests.kubernetes.operator.running import Jobs
from tests.openpai_configs import version_two

PLANTED = "planted-&-secret"


@pytest.fixture
def engine(jobs: Jobs, plane: ControlPlane) -> Iterator[Blocking]:
    with opened(plane.admin_kubeconfig, jobs.namespace) as engine:
        yield engine


def submission(name: str, *, value: str = PLANTED, **more: Any) -> Submission:
    auth = {"username": "me", "password": "<% $secrets.x %>", "registryuri": "https://r"}
    image = {"type": "dockerimage", "name": "image", "uri": "x", "auth": auth}
    text = version_two(name, ["echo <% $secrets.x %>"], secrets={"x": value}, prerequisites=[image])
    return Submission(text=text, **more)


def secrets(jobs: Jobs) -> dict[str, Any]:
    found = jobs.plane.api.get(f"/api/v1/namespaces/{jobs.namespace}/secrets")["items"]
    return {secret["metadata"]["name"]: secret for secret in found}


def is_owned(secret: dict[str, Any], job: Job) -> bool:
    owners = secret["metadata"].get("ownerReferences") or []
    return [owner["uid"] for owner in owners] == [job.uid]


def test_they_are_secrets_that_the_job_owns(engine: Blocking, jobs: Jobs, name: str) -> None:
    job = engine.submit(submission(name)).job

    found = secrets(jobs)
    assert base64.b64decode(found[f"{name}-secrets"]["data"]["x"]).decode() == PLANTED
    assert found[f"{name}-registry"]["type"] == "kubernetes.io/dockerconfigjson"
    assert all(is_owned(secret, job) for secret in found.values())
    assert PLANTED not in str(jobs.get(name))


def test_its_pods_refer_to_them(engine: Blocking, jobs: Jobs, name: str) -> None:
    engine.submit(submission(name))
    pod = eventually(lambda: next(iter(jobs.pods(name).values()), None), "its pod")

    (container,) = pod["spec"]["containers"]
    (variable,) = [v for v in container["env"] if v["name"] == "REGATTA_SECRET_0"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": f"{name}-secrets", "key": "x"}
    assert pod["spec"]["imagePullSecrets"] == [{"name": f"{name}-registry"}]
    assert PLANTED not in str(pod)


def test_the_cluster_removes_them_with_the_job(engine: Blocking, jobs: Jobs, name: str) -> None:
    engine.submit(submission(name))
    engine.delete(jobs.namespace, name)

    eventually(lambda: not secrets(jobs), "no Secret to be left")


def test_a_new_job_of_the_name_has_its_own(engine: Blocking, jobs: Jobs, name: str) -> None:
    engine.submit(submission(name, value="first"))
    job = engine.submit(submission(name, value="second", replace=True)).job

    found = secrets(jobs)[f"{name}-secrets"]
    assert base64.b64decode(found["data"]["x"]) == b"second"
    assert is_owned(found, job)


@pytest.mark.parametrize("which", ["secrets", "registry"])
def test_somebody_elses_secret_is_left_alone_and_none_of_ours_is_left(
    which: str, engine: Blocking, jobs: Jobs, name: str
) -> None:
    path = f"/api/v1/namespaces/{jobs.namespace}/secrets"
    theirs = {"metadata": {"name": f"{name}-{which}"}, "stringData": {"theirs": "kept"}}
    jobs.plane.api.create(path, {"apiVersion": "v1", "kind": "Secret", **theirs})

    with pytest.raises(ClusterRefused, match="somebody else's"):
        engine.submit(submission(name))

    (left,) = secrets(jobs).values()
    assert base64.b64decode(left["data"]["theirs"]) == b"kept"
    with pytest.raises(Refused):
        jobs.get(name)


def test_a_refused_job_leaves_none(engine: Blocking, jobs: Jobs, name: str) -> None:
    live = engine.submit(submission(name)).job
    with pytest.raises(JobIsLive):
        engine.submit(submission(name))

    assert all(is_owned(secret, live) for secret in secrets(jobs).values())


def test_a_submit_that_was_cut_off_is_whole_when_it_is_sent_again(
    plane: ControlPlane, jobs: Jobs, name: str, tmp_path: Path
) -> None:
    """Its Secrets were made, and its job was not."""
    with (
        FaultProxy(plane.admin_kubeconfig, tmp_path / "proxy") as proxy,
        opened(proxy.kubeconfig, jobs.namespace) as engine,
    ):
        proxy.add(Rule(Drop(), "POST", r"/paddlejobs\?", times=None))
        with pytest.raises(ClusterUnreachable):
            engine.submit(submission(name, key="k"))
        assert len(secrets(jobs)) == 2
        proxy.clear()
        job = engine.submit(submission(name, key="k")).job

    assert all(is_owned(secret, job) for secret in secrets(jobs).values())
    assert len(secrets(jobs)) == 2


@pytest.mark.parametrize("handed_over", [True, False])
def test_they_go_when_the_job_is_over_and_the_job_stays(
    engine: Blocking, jobs: Jobs, name: str, handed_over: bool
) -> None:
    """Also those that a submit made and did not come to hand over."""
    job = engine.submit(submission(name, key="k")).job
    if not handed_over:
        nobody = {"metadata": {"ownerReferences": None}}
        for secret in secrets(jobs):
            jobs.api.patch(f"/api/v1/namespaces/{jobs.namespace}/secrets/{secret}", nobody)
    ended = over(engine, jobs, name)
    assert len(secrets(jobs)) == 2

    drop(jobs, lambda cluster: cluster.drop_secrets(ended))

    assert secrets(jobs) == {}
    drop(jobs, lambda cluster: cluster.drop_secrets(ended))  # once is enough
    # The same submission, sent again, is that job and nothing else.
    assert engine.submit(submission(name, key="k")).job.uid == job.uid
    assert secrets(jobs) == {}


def test_those_of_another_job_or_of_somebody_else_stay(
    engine: Blocking, jobs: Jobs, name: str
) -> None:
    first = engine.submit(submission(name)).job
    engine.submit(submission(name, value="second", replace=True))
    drop(jobs, lambda cluster: cluster.drop_secrets(first))
    drop(jobs, lambda cluster: cluster.drop_secrets_of_submit(jobs.namespace, name, "k"))
    assert len(secrets(jobs)) == 2

    path = f"/api/v1/namespaces/{jobs.namespace}/secrets"
    theirs = {"metadata": {"name": "job-secrets"}, "stringData": {"theirs": "kept"}}
    jobs.api.create(path, theirs)
    drop(jobs, lambda cluster: cluster.drop_secrets_of_submit(jobs.namespace, "job", "k"))
    assert "job-secrets" in secrets(jobs)


def test_those_of_a_submit_that_made_no_job_go_by_its_key(
    plane: ControlPlane, jobs: Jobs, name: str, tmp_path: Path
) -> None:
    with (
        FaultProxy(plane.admin_kubeconfig, tmp_path / "proxy") as proxy,
        opened(proxy.kubeconfig, jobs.namespace) as engine,
    ):
        proxy.add(Rule(Drop(), "POST", r"/paddlejobs\?", times=None))
        with pytest.raises(ClusterUnreachable):
            engine.submit(submission(name, key="k"))
    assert len(secrets(jobs)) == 2
    drop(jobs, lambda cluster: cluster.drop_secrets_of_submit(jobs.namespace, name, "other"))
    assert len(secrets(jobs)) == 2

    drop(jobs, lambda cluster: cluster.drop_secrets_of_submit(jobs.namespace, name, "k"))

    assert secrets(jobs) == {}


def over(engine: Blocking, jobs: Jobs, name: str) -> Job:
    jobs.wait_for_phase(name, "Running")
    for pod in jobs.pods(name):
        jobs.ends(pod)
    jobs.wait_for_phase(name, "Completed")
    return engine.get(jobs.namespace, name)


def drop(jobs: Jobs, wish: Callable[[KubernetesEngine], Awaitable[None]]) -> None:
    """By an engine as a team's server has it."""

    async def whole() -> None:
        engine = KubernetesEngine(load_access(jobs.plane.admin_kubeconfig), wide=True)
        try:
            await wish(engine)
        finally:
            await engine.close()

    asyncio.run(whole())


def test_a_preview_shows_that_they_are_there_and_not_what_they_are(
    engine: Blocking, jobs: Jobs, name: str
) -> None:
    for stored in (False, True):
        preview = engine.preview(submission(name), stored=stored)
        assert f"{name}-secrets" in str(preview.objects)
        assert PLANTED not in str(preview)
    assert secrets(jobs) == {}
