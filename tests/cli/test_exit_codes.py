"""Exit codes are part of the interface, and every error says what to do next."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.doors import Regatta, eventually, shell_job

CASES = {
    "a verb that does not exist": (["lgos"], 2, "did you mean `logs`?"),
    "an option that does not exist": (["get", "--wacth"], 2, "--watch"),
    "no job named": (["stop"], 2, "`regatta get` lists"),
    "names and --all together": (["delete", "x", "--all"], 2, "only one of these"),
    "a job that does not exist": (["get", "no-such-job"], 4, "`regatta get -A`"),
    "logs of a job that does not exist": (["logs", "no-such-job"], 4, "no-such-job"),
    "a job that is in no namespace": (["get", "no-such-job", "-A"], 4, "in any namespace"),
    "one of two that is in none": (["get", "no-such-job", "-A", "-o", "json"], 4, "no-such-job"),
    "watching a job that does not exist": (["get", "-w", "no-such-job"], 4, "in namespace default"),
    "watching it everywhere": (["get", "-w", "-A", "no-such-job"], 4, "in any namespace"),
    "events of a job that does not exist": (["events", "no-such-job"], 4, "no-such-job"),
    "events of one in no namespace": (["events", "no-such-job", "-A"], 4, "in any namespace"),
    "following such events": (["events", "-f", "no-such-job"], 4, "no-such-job"),
    "following them everywhere": (["events", "-f", "-A", "no-such-job"], 4, "in any namespace"),
    "deleting a job that does not exist": (["delete", "no-such-job"], 4, "no-such-job"),
    "waiting for a job that does not exist": (["wait", "no-such-job"], 4, "does not exist"),
    "a file that does not exist": (["run", "nowhere.yaml"], 2, "- for standard input"),
    "a variable without a value": (["run", "-", "--env", "NAME"], 2, "--env NAME=VALUE"),
    "a time that is none": (["wait", "x", "--timeout", "soon"], 2, "write 30s, 5m"),
    "no server at that address": (
        ["--server", "http://127.0.0.1:1", "get"],
        5,
        "Check the address, and that `regatta serve` runs there",
    ),
    "no replicas": (["scale", "x", "--replicas", "0"], 2, "not in the range x>=1"),
    "a field in the place of an option": (
        ["run", "-", "--replicas", "3"],
        2,
        "--set spec.worker.replicas=N",
    ),
    "a file of variables that is not there": (
        ["run", "-", "--env-file", "nowhere"],
        2,
        "Name a file of NAME=VALUE lines",
    ),
    "a name that turns the line": (["run", "no\u202ewhere.yaml"], 2, r"no\u202ewhere.yaml cannot"),
    "an address that is none": (["--server", "ftp://x", "get"], 2, "http://HOST:PORT"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_bad_command_lines(regatta: Regatta, case: tuple[list[str], int, str]) -> None:
    words, code, sentence = case

    said = regatta(*words)

    assert said.code == code, said
    assert sentence in said.err
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err


def test_a_folder_without_a_job_file(regatta: Regatta) -> None:
    said = regatta("run", "/proc/self/fdinfo")

    assert said.code == 2
    assert "a folder without a job.yaml" in said.err


def test_a_broken_job_file_lists_every_problem(regatta: Regatta) -> None:
    said = regatta("submit", "-", stdin="kind: PaddleJob\nspec: {worker: {replicas: many}}\n")

    assert said.code == 2
    assert "problems" in said.err.splitlines()[0]
    assert "  - apiVersion" in said.err
    assert "spec.worker.replicas" in said.err


def test_a_job_that_can_never_fit_is_refused(regatta: Regatta, name: str) -> None:
    text = shell_job(name).replace("name: main", "name: main\n          resources: "
                                   "{requests: {cpu: '100000'}}")  # fmt: skip

    said = regatta("submit", "-", stdin=text)

    assert said.code == 2
    assert "100000" in said.err


def test_a_job_of_many_replicas_is_told_which_setting_counts_them(
    regatta: Regatta, name: str
) -> None:
    said = regatta("submit", "-", stdin=shell_job(name, replicas=300))

    assert said.code == 2
    assert "`regatta server stop; REGATTA_PODS=300 regatta server start`" in said.err
    assert "Ask for less" not in said.err


def test_a_container_runtime_that_is_not_here_is_refused_at_submit(
    regatta: Regatta, name: str, tmp_path: Path
) -> None:
    file = regatta.write(shell_job(name), f"{name}.yaml")

    said = regatta("submit", file, "--runtime", "podman", PATH=str(tmp_path))

    assert said.code == 2
    assert "podman is not on the job's PATH" in said.err
    assert regatta("get", name).code == 4


def test_binary_input_is_refused_with_a_sentence(regatta: Regatta) -> None:
    path = regatta.folder / "binary.yaml"
    path.write_bytes(b"kind: \xff\xfe")

    said = regatta("run", str(path))

    assert said.code == 2
    assert "not UTF-8" in said.err


def test_submit_wait_exits_with_the_jobs_result(regatta: Regatta, name: str) -> None:
    assert regatta("submit", "--wait", "-", stdin=shell_job(name)).code == 0
    assert regatta("submit", "--wait", "-", stdin=shell_job(name, "exit 9")).code == 1


def test_wait_gives_up_after_its_timeout(regatta: Regatta, name: str) -> None:
    regatta("submit", "-", stdin=shell_job(name, runPolicy={"suspend": True}))
    assert regatta("wait", name, "--for", "suspended").code == 0

    said = regatta("wait", name, "--timeout", "3s")

    assert said.code == 124
    assert "was not finished within 3 s; it is Suspended" in said.err


#: `regatta wait` that says when it has seen the job for the first time.
TELLING_WAIT = """
from regatta.engines.blocking import Blocking
watch = Blocking.watch

def telling(*words):
    for update in watch(*words):
        yield update
        print("seen", flush=True)

Blocking.watch = telling
from regatta.cli.main import main; main()
"""


@contextmanager
def waiting_for(regatta: Regatta, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`regatta wait` that has seen the job."""
    waits = regatta.start_python("-c", TELLING_WAIT, "wait", *words)
    assert waits.stdout is not None
    try:
        assert waits.stdout.readline() == "seen\n"
        yield waits
    finally:
        waits.kill()
        waits.communicate()


REPLACED = "was replaced by another of the same name meanwhile"


def test_a_job_that_was_replaced_is_not_waited_for_under_its_name(
    regatta: Regatta, name: str
) -> None:
    regatta("submit", regatta.write(shell_job(name, "sleep 1000"), f"{name}.yaml"))
    with waiting_for(regatta, name) as waits:
        assert regatta("submit", "-", "--replace", stdin=shell_job(name)).code == 0
        _, err = waits.communicate(timeout=60)

    assert (waits.returncode, REPLACED in err) == (4, True), err


def test_a_job_that_was_replaced_is_not_what_its_submit_waits_for(
    regatta: Regatta, name: str
) -> None:
    file = regatta.write(shell_job(name, "sleep 1000"), f"{name}.yaml")
    waits = regatta.start("submit", "--wait", file)
    try:
        eventually(lambda: regatta("wait", name, "--for", "running").code == 0, "the first job")
        assert regatta("submit", "-", "--replace", stdin=shell_job(name)).code == 0
        _, err = waits.communicate(timeout=60)
    finally:
        waits.kill()

    assert (waits.returncode, REPLACED in err) == (4, True), err


def test_waiting_until_a_job_is_deleted_ends_when_another_took_its_name(
    regatta: Regatta, name: str
) -> None:
    submitted = shell_job(name, runPolicy={"suspend": True})
    regatta("submit", "-", stdin=submitted)
    with waiting_for(regatta, name, "--for", "deleted") as waits:
        assert regatta("submit", "-", "--replace", stdin=submitted).code == 0
        assert waits.wait(60) == 0


def test_waiting_for_what_cannot_come_any_more_ends_with_the_result(
    regatta: Regatta, name: str
) -> None:
    regatta("submit", "--wait", "-", stdin=shell_job(name, "exit 1"))

    assert regatta("wait", name, "--for", "completed").code == 1
    assert regatta("wait", name, "--for", "failed").code == 0


def test_a_reader_that_leaves_early_is_no_error_worth_a_traceback(
    regatta: Regatta, name: str
) -> None:
    regatta("run", "-", stdin=shell_job(name, "seq 1 20000"))
    reading = regatta.start("logs", name)
    assert reading.stdout is not None
    assert reading.stderr is not None
    assert reading.stdout.readline() == "worker-0 | 1\n"
    reading.stdout.close()

    assert reading.wait(60) == 141
    assert reading.stderr.read() == ""
    reading.stderr.close()
