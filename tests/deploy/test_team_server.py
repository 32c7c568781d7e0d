"""A team's server with exactly the rights of its manifest, on a real API server: they are enough
for all that it does, and they end at the namespaces of its accounts."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

import regatta
from regatta.api.errors import ClusterRefused, NotAllowed
from regatta.engines.base import LogQuery, Submission
from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.engine.engine import KubernetesEngine
from regatta.engines.kubernetes.engine.members.member_namespaces import ENFORCE, MARK
from regatta.server.accounts.administration import add_user
from regatta.server.accounts.passwords import Hashes
from regatta.server.accounts.user_groups import ensure_groups
from regatta.server.records.moments import now_millis
from regatta.server.records.team_database import Database
from tests.api.builders import a_job, a_pod_group
from tests.deploy.conftest import CRD, OPERATOR, ROOT, wait_until_served
from tests.deploy.test_rights import ask
from tests.kubernetes.controlplane.api import Api
from tests.kubernetes.controlplane.kwok import exits
from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions, wait_for_controllers
from tests.kubernetes.operator.running import RunningOperator
from tests.openpai_configs import hello, version_two
from tests.server.accounts.people import CHEAP, PASSWORD

MANIFEST = ROOT / "deploy/v1/team-server.yaml"
NAME = "regatta-team-server"
USER = f"system:serviceaccount:paddle-system:{NAME}"
PADDLE, VOLCANO, NATIVE = "batch.paddlepaddle.org", "scheduling.volcano.sh", "scheduling.k8s.io"

#: group, resource, verbs, in any namespace
MAY = [
    ("", "namespaces", "get create"),
    ("", "serviceaccounts", "get patch"),  # named default
    (PADDLE, "paddlejobs", "create get list watch patch delete"),
    (PADDLE, "paddlejobs/finalizers", "update"),
    ("", "persistentvolumeclaims", "create patch"),
    (VOLCANO, "podgroups", "create patch"),
    (NATIVE, "podgroups", "create patch"),
    ("", "secrets", "create patch delete"),
    ("", "pods", "get list watch patch"),
    ("", "pods/log", "get"),
    ("", "events", "list watch"),
    ("", "nodes", "list"),
    ("metrics.k8s.io", "nodes", "list"),
    ("metrics.k8s.io", "pods", "list"),
]
MAY_NOT = [
    ("", "secrets", "get list watch update deletecollection"),
    ("", "namespaces", "list watch update patch delete"),
    ("", "serviceaccounts", "create list watch update delete"),
    ("", "serviceaccounts/token", "create"),
    ("", "pods", "create update delete"),
    ("", "pods/exec", "create get"),
    ("", "pods/attach", "create get"),
    ("", "pods/portforward", "create get"),
    ("", "pods/ephemeralcontainers", "patch update"),
    ("", "configmaps", "get list create patch"),
    ("", "persistentvolumes", "get list create patch"),
    ("", "nodes", "get patch update"),
    ("", "nodes/proxy", "get create"),
    (PADDLE, "paddlejobs/status", "patch update"),
    ("apps", "deployments", "get create patch"),
    ("rbac.authorization.k8s.io", "rolebindings", "create bind"),
    ("rbac.authorization.k8s.io", "clusterroles", "create bind escalate"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "get patch delete"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get create patch delete"),
    ("*", "*", "*"),
]


def manifest(kind: str) -> dict[str, Any]:
    (found,) = (d for d in yaml.safe_load_all(MANIFEST.read_text()) if d["kind"] == kind)
    return dict(found)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """With everything that the documentation has one install. As on OpenShift, who owns a thing
    may be said only by those who may change the owner."""
    enforced = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    options = PlaneOptions(apiserver_args=(enforced,))
    with ControlPlane(options, tmp_path_factory.mktemp("team-plane")) as plane:
        wait_for_controllers(plane)
        plane.nodes.create(2)
        plane.kubectl("create", "-f", str(CRD), "-f", str(OPERATOR))
        wait_until_served(plane)
        plane.kubectl("apply", "-f", str(MANIFEST))
        with RunningOperator(plane.admin_kubeconfig):
            _wait_for_the_policy(plane)
            yield plane


def _wait_for_the_policy(plane: ControlPlane) -> None:
    """A new one takes effect a moment after its write."""
    deadline = time.monotonic() + 60
    path = "/api/v1/namespaces/default/secrets?dryRun=All"
    while as_server(plane, "POST", path, {"metadata": {"name": "probe"}})[0] != 422:
        assert time.monotonic() < deadline, "the policy never took effect"
        time.sleep(0.1)


def as_server(plane: ControlPlane, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """A request with the server's own token."""
    token = plane.service_account_token("paddle-system", NAME)
    api = Api(plane.url, plane.ca_file, token)
    try:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        return api.raw(method, path, body, f"application/{kind}")
    finally:
        api.close()


Story = Callable[[KubernetesEngine], Coroutine[Any, Any, None]]


def played(plane: ControlPlane, story: Story) -> dict[int, int]:
    """With the engine as the server has it. Returns how many answers had which code."""
    codes: dict[int, int] = {}

    def observe(_verb: str, _resource: str, code: int, _seconds: float) -> None:
        codes[code] = codes.get(code, 0) + 1

    async def whole() -> None:
        kubeconfig = plane.service_account_kubeconfig("paddle-system", NAME)
        engine = KubernetesEngine(
            load_access(kubeconfig),
            wide=True,
            members_only=True,
            observer=observe,
        )
        try:
            await story(engine)
        finally:
            await engine.close()

    asyncio.run(whole())
    return codes


def may(plane: ControlPlane, question: dict[str, Any]) -> bool:
    groups = ["system:serviceaccounts", "system:serviceaccounts:paddle-system"]
    spec = {"user": USER, "groups": groups, "resourceAttributes": question}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": spec,
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(plane.api.create(path, review)["status"]["allowed"])


@pytest.mark.parametrize(("group", "resource", "verbs"), MAY)
def test_the_server_may(cluster: ControlPlane, group: str, resource: str, verbs: str) -> None:
    named = {"name": "default"} if resource == "serviceaccounts" else {}
    refused = [v for v in verbs.split() if not may(cluster, ask(group, resource, v, **named))]
    assert refused == []


@pytest.mark.parametrize(("group", "resource", "verbs"), MAY_NOT)
def test_the_server_may_not(cluster: ControlPlane, group: str, resource: str, verbs: str) -> None:
    granted = [v for v in verbs.split() if may(cluster, ask(group, resource, v))]
    assert granted == []


def test_of_serviceaccounts_it_has_the_default_one(cluster: ControlPlane) -> None:
    assert not may(cluster, ask("", "serviceaccounts", "patch", name="builder"))
    assert not may(cluster, ask("", "serviceaccounts", "get"))


def test_every_right_in_the_manifest_is_in_the_table_above() -> None:
    granted = {
        (group, resource, verb)
        for rule in manifest("ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    told = {(group, resource, verb) for group, resource, verbs in MAY for verb in verbs.split()}
    assert granted == told


def test_manifest_and_policy_name_this_version_and_this_account() -> None:
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"{NAME.replace('-', '/', 1)}:{regatta.__version__}"
    policy = manifest("ValidatingAdmissionPolicy")["spec"]
    assert policy["matchConditions"][0]["expression"] == f"request.userInfo.username == '{USER}'"
    said = " ".join(rule["expression"] for rule in policy["validations"])
    assert f"'{MARK}'" in said
    assert f"'{ENFORCE}'" in said


def a_submission(name: str, namespace: str, **more: Any) -> Submission:
    job = a_job(name).workers(1).with_container(image="registry.local/train:1")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{name}-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    return Submission(text=job.text(claim), namespace=namespace, **more)


async def _until(look: Callable[[], Coroutine[Any, Any, bool]], what: str) -> None:
    deadline = time.monotonic() + 60
    while not await look():
        assert time.monotonic() < deadline, f"{what} did not happen"
        await asyncio.sleep(0.05)


def test_its_rights_are_enough_for_all_that_it_does(cluster: ControlPlane) -> None:
    ann = "user-ann"
    secret = version_two("kept", ["echo <% $secrets.x %>"], secrets={"x": "planted"})

    async def story(engine: KubernetesEngine) -> None:
        await engine.make_namespace(ann)
        await engine.version()
        await engine.preview(a_submission("plain", ann), stored=True)
        await engine.submit(a_submission("plain", ann, key="k"))
        await engine.submit(a_submission("plain", ann, key="k"))
        await engine.submit(a_submission("plain", ann, replace=True))
        for _ in range(2):
            await engine.submit(Submission(text=secret, namespace=ann, replace=True))

        async def runs() -> bool:
            return str((await engine.get(ann, "plain")).status.phase) == "Running"

        await _until(runs, "its run")
        assert {job.name for job in await engine.list()} == {"plain", "kept"}
        assert {job.name for job in await engine.list(ann)} == {"plain", "kept"}
        assert len(await engine.pods(ann, "plain")) == 1
        assert await engine.history(ann)
        assert await engine.events(None, None)
        assert await engine.events(ann, "plain")
        assert len((await engine.capacity()).nodes) == 2
        async for _ in engine.logs(ann, "plain", LogQuery()):
            pass
        async for update in engine.watch():
            assert update
            break
        async for event in engine.follow_events():
            assert event
            break
        await engine.suspend(ann, "plain")
        await engine.resume(ann, "plain")
        await engine.stop(ann, "plain")

        async def ends() -> bool:
            return (await engine.get(ann, "plain")).finished

        await _until(ends, "its end")
        await engine.drop_secrets(await engine.get(ann, "kept"))
        assert not cluster.api.items(f"/api/v1/namespaces/{ann}/secrets")
        await engine.drop_secrets_of_submit(ann, "kept", "k")
        await engine.delete(ann, "plain")
        await engine.delete_many(ann, live=True)

    codes = played(cluster, story)
    assert codes.get(403, 0) == 0, codes


def test_servers_that_a_finished_job_left_running_can_be_ended(cluster: ControlPlane) -> None:
    bob = "user-bob"
    job = a_job("left").workers(1).with_container(image="i").with_ps(1, image="i")
    job.spec(cleanPodPolicy="Never")
    job.document["spec"]["worker"]["template"]["metadata"] = {"annotations": exits(0)}

    async def story(engine: KubernetesEngine) -> None:
        await engine.make_namespace(bob)
        await engine.submit(Submission(text=job.text(), namespace=bob))

        async def ends() -> bool:
            return (await engine.get(bob, "left")).finished

        await _until(ends, "its end")
        await engine.stop(bob, "left")

    assert 403 not in played(cluster, story)


def test_a_gang_may_come_along(cluster: ControlPlane) -> None:
    """Where no Volcano is installed, that is what is told, and no missing right."""
    job = a_job("gang").workers(1).with_container(image="i")

    async def story(engine: KubernetesEngine) -> None:
        await engine.make_namespace("user-gang")
        text = job.text(a_pod_group(1, "gang"))
        with pytest.raises(ClusterRefused, match="has no PodGroup"):
            await engine.submit(Submission(text=text, namespace="user-gang"))

    assert 403 not in played(cluster, story)


@pytest.fixture(scope="module")
def planted(cluster: ControlPlane) -> str:
    """The path of somebody else's Secret, in a namespace of no account."""
    path = "/api/v1/namespaces/kube-system/secrets"
    cluster.api.create(path, {"metadata": {"name": "planted"}, "stringData": {"x": "planted"}})
    return f"{path}/planted"


PLANTED = base64.b64encode(b"planted").decode()


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("PATCH", "?dryRun=All"),
        ("DELETE", ""),
        ("DELETE", "?dryRun=All"),
    ],
)
def test_a_secret_that_is_not_its_accounts_is_out_of_its_reach(
    cluster: ControlPlane, planted: str, method: str, suffix: str
) -> None:
    body = {} if method == "PATCH" else None
    status, said = as_server(cluster, method, planted + suffix, body)
    assert status in (403, 422), said
    assert PLANTED not in said
    assert PLANTED in str(cluster.api.get(planted))


def test_no_secrets_can_be_listed_not_even_its_accounts(cluster: ControlPlane) -> None:
    for path in ("/api/v1/secrets", "/api/v1/namespaces/user-ann/secrets"):
        assert as_server(cluster, "GET", path)[0] == 403


def test_it_writes_nothing_where_no_account_lives(cluster: ControlPlane) -> None:
    document = a_job("stray").workers(1).with_container(image="i").doc()
    jobs = "/apis/batch.paddlepaddle.org/v1/namespaces/default/paddlejobs"
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    opened = {"automountServiceAccountToken": True}
    for method, path, body in (("POST", jobs, document), ("PATCH", account, opened)):
        status, said = as_server(cluster, method, path, body)
        assert status == 422, said
        assert MARK in said


@pytest.mark.parametrize(
    "labels", [{}, {MARK: "true"}, {MARK: "true", ENFORCE: "privileged"}, {ENFORCE: "baseline"}]
)
def test_it_makes_no_namespace_that_is_open(cluster: ControlPlane, labels: dict[str, str]) -> None:
    document = {"metadata": {"name": "user-open", "labels": labels}}
    status, said = as_server(cluster, "POST", "/api/v1/namespaces", document)
    assert (status, "team's server" in said) == (422, True), said


def test_others_are_not_held_by_that(cluster: ControlPlane) -> None:
    cluster.create_namespace("somebody-else")


def test_a_right_that_is_taken_away_is_named(cluster: ControlPlane) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/regatta-team-server-role"
    whole = manifest("ClusterRole")["rules"]
    less = [rule for rule in whole if "namespaces" not in rule["resources"]]

    async def story(engine: KubernetesEngine) -> None:
        deadline = time.monotonic() + 30
        while may(cluster, ask("", "namespaces", "get")):
            assert time.monotonic() < deadline
        with pytest.raises(NotAllowed, match=r"may not get namespaces"):
            await engine.make_namespace("user-late")

    cluster.api.patch(path, {"rules": less})
    try:
        played(cluster, story)
    finally:
        cluster.api.patch(path, {"rules": whole})


def test_every_argument_is_a_flag_of_the_server() -> None:
    from regatta.cli.verbs.serve import command

    known = {option for parameter in command.params for option in parameter.opts}
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["regatta", "serve"]
    assert {argument.partition("=")[0] for argument in container["args"]} <= known


@contextmanager
def serving(plane: ControlPlane, folder: Path, url: str) -> Iterator[str]:
    """`regatta serve` as its Deployment has it, on a port of this machine. Yields its address."""
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    elsewhere = ("--host", "--port")
    arguments = [argument for argument in container["args"] if not argument.startswith(elsewhere)]
    kubeconfig = plane.service_account_kubeconfig("paddle-system", NAME)
    with subprocess.Popen(
        [sys.executable, "-m", "regatta.cli.main", "serve", *arguments, "--database", url],
        env={**os.environ, "REGATTA_HOME": str(folder), "KUBECONFIG": str(kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.match(r"serving (\S+) for a team", line)
            assert found, line
            yield found[1]
        finally:
            process.terminate()
            process.wait(60)


def asked(url: str, method: str, path: str, token: str = "", body: Any = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")


def test_with_its_rights_and_flags_a_member_signs_in_submits_and_reads_the_record(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/records.sqlite"
    database = Database(url)
    try:
        database.run_here(ensure_groups, now_millis())
        database.run_here(add_user, Hashes(CHEAP), "carol", PASSWORD, now_millis())
    finally:
        database.close()
    config = json.loads(hello("first", image="registry.local/train:1"))

    def get(path: str) -> Any:
        status, said = asked(server, "GET", path, token)
        assert status == 200, said
        return said

    def until(path: str, good: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + 60
        while not good(said := get(path)):
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
        return said

    with serving(cluster, tmp_path / "home", url) as server:
        signed = {"username": "carol", "password": PASSWORD, "expiration": 3600}
        status, said = asked(server, "POST", "/api/v1/token", body=signed)
        assert status == 200, said
        token = said["token"]
        status, said = asked(server, "POST", "/api/v1/user/carol/jobs", token, config)
        assert status in (201, 202), said
        path = "/api/v1/user/carol/jobs/first"
        until(path, lambda job: job["jobStatus"]["state"] == "RUNNING")
        (pod,) = cluster.api.items("/api/v1/namespaces/user-carol/pods")
        end = {"metadata": {"annotations": exits(3, message="no data")}}
        cluster.api.patch(f"/api/v1/namespaces/user-carol/pods/{pod['metadata']['name']}", end)
        until(path, lambda job: job["jobStatus"]["state"] == "FAILED")
        cluster.kubectl("delete", "pdj", "--all", "-n", "user-carol")
        job = until(path, lambda job: job["jobStatus"]["state"] == "FAILED")
    (status_of_it,) = job["taskRoles"].values()
    assert [task["containerExitCode"] for task in status_of_it["taskStatuses"]] == [3]


def test_its_pod_passes_the_restricted_level(cluster: ControlPlane) -> None:
    cluster.create_namespace("restricted", {ENFORCE: "restricted"})
    template = manifest("Deployment")["spec"]["template"]["spec"]
    template["serviceAccountName"] = "default"
    pod = {"metadata": {"name": "server"}, "spec": template}
    status, said = cluster.api.raw("POST", "/api/v1/namespaces/restricted/pods?dryRun=All", pod)
    assert status == 201, said


def test_the_service_finds_its_pod() -> None:
    labels = manifest("Deployment")["spec"]["template"]["metadata"]["labels"]
    service = manifest("Service")["spec"]
    assert service["selector"].items() <= labels.items()
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert service["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}


def test_its_image_installs_exactly_what_is_locked() -> None:
    lines = (ROOT / "requirements/team-server.in").read_text().splitlines()
    wanted = {re.sub(r"\[.*", "", line) for line in lines if re.match(r"[a-z]", line)}
    text = (ROOT / "requirements/team-server.txt").read_text()
    locked = dict(re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", text, re.M))
    assert wanted <= set(locked)
    assert {"click", "msgspec"} <= set(locked), "what every command needs is missing"
    dev = (ROOT / "requirements/dev.txt").read_text()
    known = dict(re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", dev, re.M))
    assert {name: known.get(name) for name in locked} == locked, "tested with other versions"
