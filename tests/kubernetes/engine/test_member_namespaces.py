"""Namespaces of a team's accounts on a real API server: made closed, kept so, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import (
    BadRequest,
    ClusterRefused,
    InvalidJob,
    NotAllowed,
    NotPossible,
)
from regatta.engines.base import Submission
from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.engine.engine import KubernetesEngine
from regatta.engines.kubernetes.engine.members import member_namespaces
from tests.engines.kubernetes.engine.members.hostile_pods import (
    BEYOND_BASELINE,
    WITHIN_BASELINE,
    a_hostile_job,
)
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.engine.engines import Calls
from tests.kubernetes.operator.running import Jobs, RunningOperator

Story = Callable[[KubernetesEngine, Calls], Coroutine[Any, Any, None]]
_numbers = count(1)


@pytest.fixture
def account() -> str:
    return f"user-ann-{next(_numbers)}"


@pytest.fixture
def play(plane: ControlPlane) -> Callable[[Story], None]:
    """A story with an engine of a team's server, that counts its requests."""
    return lambda story: played(plane.admin_kubeconfig, story)


def played(kubeconfig: Path, story: Story) -> None:
    async def whole() -> None:
        calls: Calls = Calls()

        def observe(verb: str, resource: str, _code: int, _seconds: float) -> None:
            calls[verb, resource] += 1

        engine = KubernetesEngine(
            load_access(kubeconfig), wide=True, members_only=True, observer=observe
        )
        try:
            await story(engine, calls)
        finally:
            await engine.close()

    asyncio.run(whole())


def namespace_of(plane: ControlPlane, name: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.api.get(f"/api/v1/namespaces/{name}")
    return found


def account_of(plane: ControlPlane, name: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
    return found


def submission(
    namespace: str,
    pod: dict[str, Any] | None = None,
    container: dict[str, Any] | None = None,
    name: str = "demo",
) -> Submission:
    job = a_hostile_job(pod or {}, container or {}, name)
    return Submission(text=job.text(), namespace=namespace)


def test_it_is_made_with_pod_security_and_an_account_without_a_token(
    plane: ControlPlane, play: Callable[[Story], None], account: str
) -> None:
    play(lambda engine, _: engine.make_namespace(account))

    labels = namespace_of(plane, account)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert labels["pod-security.kubernetes.io/enforce-version"] == "latest"
    assert labels["app.kubernetes.io/managed-by"] == "regatta"
    assert account_of(plane, account)["automountServiceAccountToken"] is False


def test_again_it_costs_nothing_and_after_a_while_two_looks(
    play: Callable[[Story], None], account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(engine: KubernetesEngine, calls: Calls) -> None:
        await engine.make_namespace(account)
        calls.clear()
        await engine.make_namespace(account)
        assert not calls

    play(story)
    monkeypatch.setattr(member_namespaces, "TRUSTED_SECONDS", 0.0)

    async def later(engine: KubernetesEngine, calls: Calls) -> None:
        await engine.make_namespace(account)
        calls.clear()
        await engine.make_namespace(account)
        assert dict(calls) == {("get", "namespaces"): 1, ("get", "serviceaccounts"): 1}

    play(later)


def test_many_at_once_make_one(play: Callable[[Story], None], account: str) -> None:
    async def story(engine: KubernetesEngine, calls: Calls) -> None:
        await asyncio.gather(*(engine.make_namespace(account) for _ in range(8)))
        assert calls["create", "namespaces"] == 1

    play(story)


def test_two_servers_at_once_make_one(plane: ControlPlane, account: str) -> None:
    async def whole() -> None:
        engines = [KubernetesEngine(load_access(plane.admin_kubeconfig)) for _ in range(4)]
        try:
            await asyncio.gather(*(engine.make_namespace(account) for engine in engines))
        finally:
            for engine in engines:
                await engine.close()

    asyncio.run(whole())
    assert account_of(plane, account)["automountServiceAccountToken"] is False


def test_somebody_elses_namespace_is_not_taken_over_until_an_administrator_says_so(
    plane: ControlPlane, play: Callable[[Story], None], account: str
) -> None:
    plane.create_namespace(account)

    async def refused(engine: KubernetesEngine, _: Calls) -> None:
        with pytest.raises(ClusterRefused, match="not taken over") as told:
            await engine.make_namespace(account)
        # What it says to do is what helps.
        command = str(told.value).partition("`kubectl ")[2].partition("`")[0]
        plane.kubectl(*command.split())
        await engine.make_namespace(account)

    play(refused)
    assert account_of(plane, account)["automountServiceAccountToken"] is False


@pytest.mark.parametrize("level", ["privileged", ""])
def test_one_whose_level_was_lowered_is_refused(
    plane: ControlPlane, play: Callable[[Story], None], account: str, level: str
) -> None:
    async def story(engine: KubernetesEngine, _: Calls) -> None:
        await engine.make_namespace(account)

    play(story)
    change = {"pod-security.kubernetes.io/enforce": level or None}
    plane.api.patch(f"/api/v1/namespaces/{account}", {"metadata": {"labels": change}})

    async def later(engine: KubernetesEngine, _: Calls) -> None:
        with pytest.raises(ClusterRefused, match="--overwrite") as told:
            await engine.make_namespace(account)
        command = str(told.value).partition("`kubectl ")[2].partition("`")[0]
        plane.kubectl(*command.split())
        await engine.make_namespace(account)

    play(later)


def test_an_account_that_was_opened_again_is_closed(
    plane: ControlPlane, play: Callable[[Story], None], account: str
) -> None:
    play(lambda engine, _: engine.make_namespace(account))
    path = f"/api/v1/namespaces/{account}/serviceaccounts/default"
    plane.api.patch(path, {"automountServiceAccountToken": True})
    play(lambda engine, _: engine.make_namespace(account))
    assert account_of(plane, account)["automountServiceAccountToken"] is False


def test_one_that_is_on_its_way_out_is_waited_for_by_its_owner(
    plane: ControlPlane, play: Callable[[Story], None], account: str
) -> None:
    play(lambda engine, _: engine.make_namespace(account))
    path = f"/api/v1/namespaces/{account}"
    held = {"metadata": {"name": "held", "finalizers": ["regatta.test/held"]}}
    plane.api.create(f"{path}/configmaps", held)
    plane.api.delete(path)

    async def story(engine: KubernetesEngine, _: Calls) -> None:
        with pytest.raises(NotPossible, match="being deleted"):
            await engine.make_namespace(account)

    play(story)
    plane.api.patch(f"{path}/configmaps/held", {"metadata": {"finalizers": None}})


def test_one_that_was_deleted_is_found_missing_at_the_first_refusal_and_made_again(
    plane: ControlPlane, play: Callable[[Story], None], account: str
) -> None:
    async def story(engine: KubernetesEngine, _: Calls) -> None:
        await engine.make_namespace(account)
        path = f"/api/v1/namespaces/{account}"
        plane.api.delete(path)
        plane.api.wait_for(path, lambda seen: seen is None, what="its end")
        with pytest.raises(ClusterRefused, match="has no namespace"):
            await engine.submit(submission(account))
        await engine.make_namespace(account)
        assert (await engine.submit(submission(account))).job.namespace == account

    play(story)


def test_names_that_are_no_namespaces_are_refused(play: Callable[[Story], None]) -> None:
    async def story(engine: KubernetesEngine, calls: Calls) -> None:
        for name in ("..", "Ann", "a/b"):
            with pytest.raises(BadRequest, match="namespace"):
                await engine.make_namespace(name)
        assert not calls

    play(story)


def test_a_missing_right_is_named(plane: ControlPlane, account: str) -> None:
    async def story(engine: KubernetesEngine, _: Calls) -> None:
        with pytest.raises(NotAllowed, match=r"may not get namespaces .*team-server\.yaml"):
            await engine.make_namespace(account)

    played(plane.kubeconfig("alice"), story)


@pytest.mark.parametrize("namespace", ["kube-system", "user-nobody"])
def test_no_job_of_a_member_goes_where_no_account_lives(
    play: Callable[[Story], None], namespace: str
) -> None:
    async def story(engine: KubernetesEngine, calls: Calls) -> None:
        with pytest.raises((ClusterRefused, NotAllowed)):
            await engine.submit(submission(namespace))
        with pytest.raises((ClusterRefused, NotAllowed)):
            await engine.preview(submission(namespace), stored=True)
        assert calls["create", "paddlejobs"] == 0

    play(story)


def test_what_pod_security_would_refuse_is_refused_at_submit_and_in_a_preview(
    play: Callable[[Story], None], account: str
) -> None:
    pod, container, place = BEYOND_BASELINE["a folder of the node"]

    async def story(engine: KubernetesEngine, calls: Calls) -> None:
        await engine.make_namespace(account)
        wanted = submission(account, pod, container)
        with pytest.raises(InvalidJob, match="hostPath") as invalid:
            await engine.submit(wanted)
        assert f"spec.worker.template.spec.{place}" in {p.path for p in invalid.value.problems}
        for stored in (False, True):
            with pytest.raises(InvalidJob, match="hostPath"):
                await engine.preview(wanted, stored=stored)
        assert calls["create", "paddlejobs"] == 0

    play(story)


@pytest.fixture(scope="module")
def guarded(plane: ControlPlane) -> str:
    """The pods' path of an account's namespace."""
    played(plane.admin_kubeconfig, lambda engine, _: engine.make_namespace("user-guarded"))
    return "/api/v1/namespaces/user-guarded/pods?dryRun=All"


def as_pod(pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    template = a_hostile_job(pod, container).doc()["spec"]["worker"]["template"]
    return {"metadata": {"name": "demo"}, "spec": template["spec"]}


@pytest.mark.parametrize("wish", BEYOND_BASELINE)
def test_the_api_server_refuses_what_our_rules_do(
    plane: ControlPlane, guarded: str, wish: str
) -> None:
    pod, container, _ = BEYOND_BASELINE[wish]
    status, said = plane.api.raw("POST", guarded, as_pod(pod, container))
    assert (status, "PodSecurity" in said) == (403, True), said


@pytest.mark.parametrize("wish", WITHIN_BASELINE)
def test_and_takes_what_they_take(plane: ControlPlane, guarded: str, wish: str) -> None:
    status, said = plane.api.raw("POST", guarded, as_pod(*WITHIN_BASELINE[wish]))
    assert status == 201, said


def test_what_is_put_past_our_rules_does_not_get_past_the_cluster(
    plane: ControlPlane, operator: RunningOperator, account: str
) -> None:
    played(plane.admin_kubeconfig, lambda engine, _: engine.make_namespace(account))
    pod, container, _ = BEYOND_BASELINE["a folder of the node"]
    jobs = Jobs(plane, account)
    text = a_hostile_job(pod, container).text()
    plane.kubectl("create", "-n", account, "-f", "-", input=text)

    status = jobs.wait("demo", lambda s: "hostPath" in s.get("message", ""), "the refusal")

    assert "PodSecurity" in status["message"]
    assert jobs.pods("demo") == {}
