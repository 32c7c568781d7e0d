"""A cluster that is not there, or says no: each time a sentence that says what to do next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regatta.api.errors import BadRequest, JobNotFound
from tests.doors import Regatta, eventually
from tests.kubernetes.conftest import StartPlane
from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions
from tests.kubernetes.controlplane.processes import free_port
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import Jobs

WITHOUT_A_CLUSTER = {
    "no kubeconfig": ({}, 2, "there is no kubeconfig"),
    "a kubeconfig that is not there": ({"KUBECONFIG": "/nowhere"}, 2, "looked at /nowhere"),
    "an engine that does not exist": ({"REGATTA_ENGINE": "slurm"}, 2, "local or kubernetes"),
}


@pytest.mark.parametrize("case", WITHOUT_A_CLUSTER.values(), ids=list(WITHOUT_A_CLUSTER))
def test_without_a_cluster(tmp_path: Path, case: tuple[dict[str, str], int, str]) -> None:
    environment, code, sentence = case
    regatta = Regatta(tmp_path)
    regatta.environment |= {"HOME": str(tmp_path), "REGATTA_ENGINE": "kubernetes", "KUBECONFIG": ""}

    said = regatta("get", **environment)

    assert said.code == code, said
    assert sentence in said.err
    assert "Traceback" not in said.err


def rewritten(change: Callable[[dict], None]) -> Callable[[ClusterRegatta], None]:
    """The kubeconfig with something else in it."""

    def rewrite(regatta: ClusterRegatta) -> None:
        document = json.loads(regatta.kubeconfig.read_text())
        change(document)
        regatta.kubeconfig.write_text(json.dumps(document))

    return rewrite


def elsewhere(document: dict) -> None:
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"


def strange_token(document: dict) -> None:
    document["users"][0]["user"]["token"] = "strange"


REFUSED = {
    "nobody answers": (rewritten(elsewhere), 5, "the cluster of context test (/"),
    "a token that nobody knows": (rewritten(strange_token), 5, "does not know you (401)"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
@pytest.mark.parametrize("words", [["get"], ["logs", "x"], ["wait", "x"], ["delete", "x"]])
def test_a_cluster_that_says_no(
    plane: ControlPlane,
    tmp_path: Path,
    case: tuple[Callable[[ClusterRegatta], None], int, str],
    words: list[str],
) -> None:
    rewrite, code, sentence = case
    regatta = ClusterRegatta(tmp_path, plane, "default")
    rewrite(regatta)

    said = regatta(*words)

    assert said.code == code, said
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_an_unknown_context_names_those_there_are(plane: ControlPlane, tmp_path: Path) -> None:
    said = ClusterRegatta(tmp_path, plane, "default")("--context", "prod", "get")

    assert said.code == 2
    assert "has no context 'prod'; it has test" in said.err


def test_a_missing_right_names_the_verb_the_resource_and_the_person(
    plane: ControlPlane, tmp_path: Path
) -> None:
    regatta = ClusterRegatta(tmp_path, plane, "default", user="alice")

    looking = regatta("get")
    submitting = regatta("submit", "-", stdin=jobfiles.text(jobfiles.running("x")))

    assert (looking.code, submitting.code) == (5, 5)
    sentence = "the cluster knows you as alice, who may not list paddlejobs in namespace default"
    assert sentence in looking.err
    assert "alice, who may not get paddlejobs" in submitting.err


def test_a_namespace_that_is_not_there(plane: ControlPlane, tmp_path: Path) -> None:
    regatta = ClusterRegatta(tmp_path, plane, "default")

    said = regatta("-n", "nowhere", "submit", "-", stdin=jobfiles.text(jobfiles.running("x")))

    assert said.code == 2
    assert "`kubectl create namespace nowhere` makes it" in said.err


ODD_NAMESPACES = ["..", ".", "../kube-system", "Team", "a.b", "a" * 64]


@pytest.mark.parametrize("namespace", ODD_NAMESPACES)
def test_a_namespace_that_no_cluster_could_have_is_refused_by_name(
    plane: ControlPlane, tmp_path: Path, namespace: str
) -> None:
    said = ClusterRegatta(tmp_path, plane, "default")("-n", namespace, "get")

    assert said.code == 2, said
    assert f'namespace: found "{namespace[:20]}' in said.err
    assert "a namespace is at most 63 lower-case letters, digits and -" in said.err


def test_so_it_is_by_a_server_in_front_of_the_cluster(plane: ControlPlane, tmp_path: Path) -> None:
    with ClusterRegatta(tmp_path, plane, "default").serving("--engine", "kubernetes") as engine:
        asked: list[Callable[[str], object]] = [
            engine.list,
            engine.capacity,
            lambda where: engine.get(where, "x"),
            lambda where: engine.delete(where, "x"),
            lambda where: engine.events(where, None),
            lambda where: next(iter(engine.watch(where))),
        ]
        for ask in asked:
            with pytest.raises(BadRequest, match=r'namespace: found "\.\."; a namespace is'):
                ask("..")
        with pytest.raises(JobNotFound):
            engine.get("default", "..")


def test_a_job_at_which_no_operator_looks_says_so_and_what_to_do(
    start_plane: StartPlane, tmp_path: Path
) -> None:
    plane = start_plane(controller_manager=False, scheduler=False, kwok=False)
    install_crd(plane)
    jobs = Jobs(plane, "default")
    jobs.create(jobfiles.running("alone", workers=1))
    regatta = ClusterRegatta(tmp_path, plane, "default")
    assert "NoOperator" not in regatta("describe", "alone").out, "it is too early to say"

    said = eventually(lambda: _if_told(regatta("describe", "alone").out), "that nobody looks")

    assert "Why it waits:\n  NoOperator: no operator has looked at it: none runs" in said
    assert "`kubectl apply -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml` installs it" in said
    assert json.loads(regatta("get", "alone", "-o", "json").out)["status"]["reason"] == "NoOperator"
    assert not jobs.status("alone"), "nothing of it is stored"
    jobs.api.patch(f"{jobs.path}/alone/status", {"status": {"phase": "Pending"}})
    assert "NoOperator" not in regatta("describe", "alone").out


def _if_told(said: str) -> str:
    return said if "NoOperator" in said else ""


@pytest.mark.parametrize("words", [["get"], ["describe", "x"], ["wait", "x"]])
def test_a_cluster_without_the_resource_says_how_to_install_it(
    bare: ControlPlane, tmp_path: Path, words: list[str]
) -> None:
    said = ClusterRegatta(tmp_path, bare, "default")(*words)

    assert said.code == 5
    assert "kubectl apply -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml" in said.err


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    options = PlaneOptions(controller_manager=False, scheduler=False, kwok=False)
    with ControlPlane(options, tmp_path_factory.mktemp("bare-plane")) as running:
        yield running


def test_a_cluster_that_goes_away_is_waited_for(start_plane: StartPlane, tmp_path: Path) -> None:
    plane = start_plane(controller_manager=False, scheduler=False, kwok=False)
    install_crd(plane)
    regatta = ClusterRegatta(tmp_path, plane, "default")
    jobs = Jobs(plane, "default")
    jobs.create(jobfiles.running("patient", workers=1))
    waiting = regatta.start("get", "-w")
    assert waiting.stdout is not None
    waiting.stdout.readline()
    assert waiting.stdout.readline().split()[:2] == ["patient", "Pending"]

    plane.restart_apiserver(crash=True)
    jobs.api.patch(f"{jobs.path}/patient/status", {"status": {"phase": "Running"}})

    try:
        assert waiting.stdout.readline().split()[:2] == ["patient", "Running"]
    finally:
        waiting.terminate()
        waiting.communicate()
