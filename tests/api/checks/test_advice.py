"""Warnings: the job is taken, and its author is told."""

from __future__ import annotations

import pytest

from regatta.api.load import load_job
from tests.api.builders import a_job, a_pod_group, problems_of

LAUNCH = ("python3", "-m", "paddle.distributed.launch", "--gpus", "0,1", "ps.py", "--lr", "1")

EATER = {"name": "main", "command": ["true"], "resources": {"requests": {"memory": "64m"}}}

CASES: dict[str, tuple[a_job, str, str]] = {
    "a PS program behind the launcher": (
        a_job().with_ps().running(*LAUNCH),
        "spec.ps.template.spec.containers[0].command",
        "start the program directly: python3 ps.py --lr 1",
    ),
    "a PS program behind the launcher, in a shell": (
        a_job().with_ps().running("sh", "-c", "cd /x && python -m paddle.distributed.launch a.py"),
        "spec.worker.template.spec.containers[0].command",
        "start the program directly: python a.py",
    ),
    "a PS program behind fleetrun": (
        a_job().with_ps().running("fleetrun", "--server_num=2", "train.py"),
        "spec.worker.template.spec.containers[0].command",
        "start the program directly: python train.py",
    ),
    "a shell's signs": (
        a_job().running("python", "t.py", "a b", ">", "out.log", "&&", "echo done"),
        "spec.worker.template.spec.containers[0].command",
        """ask for one: ["sh", "-c", "python t.py 'a b' > out.log && echo done"]""",
    ),
    "a shell's signs that bash alone reads": (
        a_job().running("source", "env.sh", "&&", "python", "t.py"),
        "spec.worker.template.spec.containers[0].command",
        'no shell reads "&&"; ask for one: ["bash", "-c", "source env.sh && python t.py"]',
    ),
    "gloo without servers": (a_job().spec(withGloo=1), "spec.withGloo", "it has no effect"),
    "heter": (a_job().with_ps().with_heter(), "spec.heter", "2.6 and later cannot train"),
    "elastic with servers": (a_job().with_ps().spec(elastic=1), "spec.elastic", "servers stay"),
    "a range without elastic": (
        a_job().workers(2, limits=4),
        "spec.worker.limits",
        "no effect without spec.elastic: 1",
    ),
    "a smaller gang": (
        a_job().spec(schedulingPolicy={"minAvailable": 1}),
        "spec.schedulingPolicy.minAvailable",
        "all 2 replicas start together",
    ),
    "a field that Kubernetes does not know": (
        a_job().pod(nodeSelectr={"a": "b"}),
        "spec.worker.template.spec.nodeSelectr",
        "it has no effect. did you mean nodeSelector?",
    ),
    "thousandths of a byte": (
        a_job().pod(containers=[EATER]),
        "spec.worker.template.spec.containers[0].resources.requests.memory",
        "mebibytes are Mi, such as 64Mi",
    ),
    "aborted from the start": (
        a_job().spec(runPolicy={"abort": True}),
        "spec.runPolicy.abort",
        "aborted before it starts",
    ),
}


@pytest.mark.parametrize(("job", "path", "part"), CASES.values(), ids=CASES)
def test_a_warning_names_its_place_and_what_to_do(job: a_job, path: str, part: str) -> None:
    said = {warning.path: warning for warning in job.load().warnings}
    assert part in said[path].message
    assert said[path].severity == "warning"


QUIET = {
    "a plain job": a_job(),
    "a collective job behind the launcher": a_job().running(*LAUNCH),
    "gloo switched off": a_job().spec(withGloo=0),
    "an elastic range": a_job().workers(2, requests=1, limits=4).spec(elastic=1),
    "an elastic job's smaller gang": a_job().spec(elastic=1, schedulingPolicy={"minAvailable": 1}),
}


@pytest.mark.parametrize("job", QUIET.values(), ids=QUIET)
def test_what_is_as_it_should_be_warns_of_nothing(job: a_job) -> None:
    assert job.load().warnings == ()


def test_unknown_pod_fields_are_errors_when_strict() -> None:
    job = a_job().pod(nodeSelectr={"a": "b"})
    [problem] = problems_of(job.text(), strict=True)
    assert problem.path == "spec.worker.template.spec.nodeSelectr"
    assert problem.message == "Kubernetes knows no such field; did you mean nodeSelector?"
    assert problem.line is not None


def test_a_pod_group_smaller_than_the_job_is_a_gang_of_all_with_a_warning() -> None:
    [warning] = load_job(a_job().text(a_pod_group(1))).warnings
    assert warning.path == "PodGroup demo: spec.minMember"
    assert "all 2 replicas start together" in warning.message


def test_a_pod_group_of_another_name_says_nothing_about_this_job() -> None:
    assert load_job(a_job().text(a_pod_group(99, name="other"))).warnings == ()


def test_other_kinds_are_left_aside_with_a_warning() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    [warning] = load_job(a_job().text(secret)).warnings
    assert warning.path == "Secret keys"
    assert "left aside" in warning.message


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", "a > b && c"),
        ("/bin/bash", "-c", "x", ">"),
        ("find", ".", "-exec", "rm", "{}", ";"),
        ("python", "t.py", "a>b", "--x=&&"),
    ],
)
def test_what_a_shell_or_the_program_itself_reads_is_no_shells_sign(
    command: tuple[str, ...],
) -> None:
    assert a_job().running(*command).load().warnings == ()


def test_a_sign_that_stands_in_quotes_on_a_command_line_is_meant_so() -> None:
    assert a_job().load(commands={"*": "python t.py '>' x"}).warnings == ()
