"""A submission is one submission, whatever becomes of the answers on its way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regatta.api.errors import ClusterUnreachable, JobIsLive, NoCluster, NotPossible, ShellRefused
from regatta.engines.base import Accepted, Shell, Submission
from regatta.engines.blocking import Blocking
from regatta.engines.kubernetes.engine.engine import open_cluster
from regatta.engines.kubernetes.objects.annotations import SUBMISSION
from tests.doors import eventually
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.engines import opened
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import (
    Drop,
    DropAfterCommit,
    Fault,
    Hold,
    RefuseAfterCommit,
    Rule,
)
from tests.kubernetes.operator.running import Jobs

CREATE = r"/paddlejobs\?"


@pytest.fixture
def jobs(plane: ControlPlane, namespace: str) -> Jobs:
    """An operator may be at work on them, or not."""
    return Jobs(plane, namespace)


@pytest.fixture
def proxy(plane: ControlPlane, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(plane.admin_kubeconfig, tmp_path / "proxy") as running:
        yield running


@pytest.fixture
def engine(proxy: FaultProxy, jobs: Jobs) -> Iterator[Blocking]:
    with opened(proxy.kubeconfig, jobs.namespace) as engine:
        yield engine


def a_submission(name: str, key: str = "", *, replace: bool = False) -> Submission:
    text = jobfiles.text(jobfiles.running(name, workers=1))
    return Submission(text=text, key=key, replace=replace)


def posts(proxy: FaultProxy) -> int:
    return sum(n for (method, path), n in proxy.requests.items() if method == "POST")


@pytest.mark.parametrize("fault", [RefuseAfterCommit(500), DropAfterCommit()], ids=["500", "drop"])
def test_a_submission_whose_answer_was_lost_has_arrived(
    engine: Blocking, proxy: FaultProxy, jobs: Jobs, name: str, fault: Fault
) -> None:
    lost = proxy.add(Rule(fault, method="POST", path=CREATE))

    accepted = engine.submit(a_submission(name, "k1"))

    assert lost.struck == 1
    assert accepted.job.uid == jobs.get(name)["metadata"]["uid"]
    assert jobs.get(name)["metadata"]["annotations"][SUBMISSION] == "k1"
    assert posts(proxy) == 1


@pytest.mark.parametrize("fault", [RefuseAfterCommit(500), DropAfterCommit()], ids=["500", "drop"])
def test_without_a_key_a_lost_answer_is_told_as_such(
    engine: Blocking, proxy: FaultProxy, jobs: Jobs, name: str, fault: Fault
) -> None:
    proxy.add(Rule(fault, method="POST", path=CREATE))

    with pytest.raises(ClusterUnreachable):
        engine.submit(a_submission(name))


def test_a_submission_that_is_sent_again_after_a_broken_way_is_one(
    engine: Blocking, proxy: FaultProxy, jobs: Jobs, name: str
) -> None:
    proxy.add(Rule(DropAfterCommit(), method="POST", path=CREATE))
    away = proxy.add(Rule(Drop(), method="GET", path=f"/paddlejobs/{name}", skip=1, times=3))
    with pytest.raises(ClusterUnreachable):
        engine.submit(a_submission(name, "k1"))
    assert away.struck == 3
    first = jobs.get(name)["metadata"]["uid"]

    again = engine.submit(a_submission(name, "k1", replace=True))

    assert again.job.uid == first == jobs.get(name)["metadata"]["uid"]
    assert again.replaced == ""
    assert posts(proxy) == 1


def test_of_two_that_arrive_together_with_one_key_both_are_answered_with_one_job(
    engine: Blocking, proxy: FaultProxy, jobs: Jobs, name: str
) -> None:
    go = threading.Event()
    held = proxy.add(Rule(Hold(go), method="POST", path=CREATE))
    answers: list[Accepted] = []
    slow = threading.Thread(target=lambda: answers.append(engine.submit(a_submission(name, "k1"))))
    slow.start()
    eventually(lambda: held.struck, "the first to be held up")

    quick = engine.submit(a_submission(name, "k1"))
    go.set()
    slow.join(60)

    assert [answer.job.uid for answer in answers] == [quick.job.uid]
    assert posts(proxy) == 2


def test_of_two_that_arrive_together_with_keys_of_their_own_one_is_told_that_the_name_is_taken(
    engine: Blocking, proxy: FaultProxy, jobs: Jobs, name: str
) -> None:
    go = threading.Event()
    held = proxy.add(Rule(Hold(go), method="POST", path=CREATE))
    refused: list[BaseException] = []

    def submit() -> None:
        with pytest.raises(JobIsLive, match=f"a job named {name} is ") as refusal:
            engine.submit(a_submission(name, "k1"))
        refused.append(refusal.value)

    slow = threading.Thread(target=submit)
    slow.start()
    eventually(lambda: held.struck, "the first to be held up")
    quick = engine.submit(a_submission(name, "k2"))
    go.set()
    slow.join(60)

    assert len(refused) == 1
    assert jobs.get(name)["metadata"]["uid"] == quick.job.uid


def test_another_key_is_another_submission(engine: Blocking, jobs: Jobs, name: str) -> None:
    first = engine.submit(a_submission(name, "k1"))

    with pytest.raises(JobIsLive):
        engine.submit(a_submission(name, "k2"))
    second = engine.submit(a_submission(name, "k2", replace=True))

    assert second.replaced == first.job.uid != second.job.uid


def test_a_file_that_was_copied_from_a_job_does_not_take_its_key_along(
    engine: Blocking, jobs: Jobs, name: str
) -> None:
    engine.submit(a_submission(name, "k1"))
    copied = jobfiles.running(name, workers=1).annotated(**{SUBMISSION: "k1", "mine": "yes"})

    engine.submit(Submission(text=jobfiles.text(copied), replace=True))

    annotations = jobs.get(name)["metadata"]["annotations"]
    assert SUBMISSION not in annotations
    assert annotations["mine"] == "yes"


def test_a_shell_is_refused_before_anything_is_asked_of_the_cluster(
    engine: Blocking, proxy: FaultProxy, name: str
) -> None:
    for ask in (engine.submit, engine.preview):
        with pytest.raises(ShellRefused, match="--python is about jobs on this machine"):
            ask(a_submission(name), Shell(python="/usr/bin/python3"))

    assert not proxy.requests
    assert engine.submit(a_submission(name), Shell(no_preflight=True)).job.name == name


def test_a_preview_of_what_would_be_stored_stores_nothing(
    engine: Blocking, jobs: Jobs, name: str
) -> None:
    preview = engine.preview(a_submission(name, "k1"), stored=True)

    (shown,) = preview.objects
    assert shown["metadata"]["uid"]  # the API server's word
    assert jobs.api.find(f"{jobs.path}/{name}") is None


def test_a_kubeconfig_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(NoCluster, match="there is no kubeconfig at"):
        open_cluster(tmp_path / "nothing", None)


def test_a_late_repetition_of_a_submission_that_was_replaced_replaces_nothing(
    engine: Blocking, jobs: Jobs, name: str
) -> None:
    def send(key: str) -> Accepted:
        return engine.submit(a_submission(name, key, replace=True))

    send("first")
    second = send("second")

    with pytest.raises(NotPossible, match=r"arrived before, as a job .* that was replaced since"):
        send("first")
    assert engine.get(jobs.namespace, name).uid == second.job.uid
    assert send("second").job.uid == second.job.uid


def test_all_who_replace_one_job_at_once_have_their_turn(
    engine: Blocking, jobs: Jobs, name: str
) -> None:
    def send(key: str) -> str:
        return engine.submit(a_submission(name, key, replace=True)).job.uid

    with ThreadPoolExecutor(5) as pool:
        made = set(pool.map(send, "abcde"))

    assert len(made) == 5
    assert engine.get(jobs.namespace, name).uid in made
