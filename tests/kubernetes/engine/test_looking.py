"""`get`, `describe`, `events`, `top` and `wait` on a cluster: the same words as on a machine."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest

from tests.doors import eventually
from tests.kubernetes.controlplane.kwok import WAITING, exits
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.conftest import ClusterRegatta
from tests.kubernetes.operator.builders import a_job
from tests.kubernetes.operator.running import Jobs


def words(line: str) -> list[str]:
    return line.split()


def test_get_has_the_columns_that_users_know(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.running(name, workers=2, servers=1))
    jobs.wait_for_phase(name, "Running")

    header, row = regatta("get").out.splitlines()

    assert words(header) == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert words(row)[:5] == [name, "Running", "PS", "1/1", "2/2"]


def test_get_lists_jobs_of_all_namespaces_oldest_first(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    for each in (f"b-{name}", f"a-{name}"):
        jobs.create(jobfiles.running(each, workers=1))
        jobs.wait_for_phase(each, "Running")

    rows = [words(row) for row in regatta("get", "-A").out.splitlines()]

    assert rows[0][:2] == ["NAMESPACE", "NAME"]
    ours = [row[1] for row in rows if row[0] == jobs.namespace]
    assert sorted(ours) == [f"a-{name}", f"b-{name}"]


def test_get_of_an_empty_namespace_says_so(regatta: ClusterRegatta, jobs: Jobs) -> None:
    said = regatta("get")

    assert (said.code, said.out) == (0, "")
    assert said.err == f"No jobs in namespace {jobs.namespace}. `regatta run FILE` starts one.\n"


def test_get_for_programs_is_the_whole_job(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=2))
    jobs.wait_for_phase(name, "Running")

    shown = json.loads(regatta("get", name, "-o", "json").out)

    assert shown["kind"] == "PaddleJob"
    assert shown["spec"]["mode"] == "Collective"  # as defaulted as on a machine
    assert shown["status"]["phase"] == "Running"


def test_get_watches(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_phase(name, "Running")
    watching = regatta.start("get", "-w")
    assert watching.stdout is not None
    try:
        assert words(watching.stdout.readline())[0] == "NAME"
        assert words(watching.stdout.readline())[:2] == [name, "Running"]
        jobs.ends(f"{name}-worker-0")
        while words(watching.stdout.readline())[:2] != [name, "Completed"]:
            pass
    finally:
        watching.terminate()
        watching.communicate()


def test_describe_shows_where_replicas_are_and_how_they_ended(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    ends = exits(7, message="no such file: data.csv")
    jobs.create(a_job(name).with_ps(1).workers(1, **ends).spec(cleanPodPolicy="Never"))
    jobs.wait_for_phase(name, "Failed")
    jobs.wait_for_event(name, "ReplicaFailed")
    assigned = f"worker-0: Successfully assigned {jobs.namespace}/{name}-worker-0 to "

    def told() -> str:
        said = regatta("describe", name).out
        return said if assigned in said else ""

    page = eventually(told, "its pod's events: the scheduler writes them behind its work")

    assert "Status:     Failed" in page
    assert "worker-0 failed first with exit code 7; its last lines:" in page
    assert "no such file: data.csv" in page
    node = jobs.pods(name)[f"{name}-worker-0"]["spec"]["nodeName"]
    (row,) = [line for line in page.splitlines() if line.startswith("  worker-0 ")]
    assert words(row)[:3] == ["worker-0", "Failed", node]
    assert words(row)[6] == "7"
    assert assigned + node in page


def test_describe_says_why_a_job_waits(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(a_job(name).workers(1, **{WAITING: "ImagePullBackOff"}))
    jobs.wait(name, lambda s: "ImagePullBackOff" in s.get("message", ""), "the reason")

    page = regatta("describe", name).out

    assert "Why it waits:" in page
    assert "ImagePullBackOff" in page


def test_describe_remembers_replicas_whose_pods_were_cleaned(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.ending(name, workers=2))
    jobs.wait_for_phase(name, "Completed")
    jobs.wait_for_pods(name, lambda pods: not pods, "no pods")

    rows = [words(line) for line in regatta("describe", name).out.splitlines()]

    removed = [row for row in rows if row[-1:] == ["Removed"]]
    assert [row[:2] for row in removed] == [["worker-0", "Succeeded"], ["worker-1", "Succeeded"]]


def test_events_are_those_of_this_job_and_not_of_its_namesake(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.ending(name))
    jobs.wait_for_event(name, "Completed")
    jobs.delete(name)
    jobs.api.wait_for(f"{jobs.path}/{name}", lambda seen: seen is None, what="gone")
    jobs.create(jobfiles.running(name, workers=1).policy(suspend=True))
    jobs.wait_for_phase(name, "Suspended")

    said = regatta("events", name)

    assert "Completed" not in said.out, said


def test_events_go_on(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_phase(name, "Running")
    following = regatta.start("events", name, "-f")
    assert following.stdout is not None
    try:
        assert words(following.stdout.readline())[:3] == ["AGE", "TYPE", "REASON"]
        jobs.ends(f"{name}-worker-0")
        while "Completed" not in following.stdout.readline():
            pass
    finally:
        following.terminate()
        following.communicate()


def test_top_shows_what_nodes_have_and_jobs_ask_for(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    document = jobfiles.running(name, workers=2).document()
    container = document["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}}
    jobs.create(document)
    jobs.wait_for_phase(name, "Running")

    page = [words(line) for line in regatta("top").out.splitlines()]
    whole = json.loads(regatta("top", "-o", "json").out)

    assert page[0] == ["CLUSTER", "TOTAL", "HELD", "USED"]
    assert page[1][:2] == ["cpu", "128"]
    ours = [row for row in page if row[:1] == [name]]
    assert [row[4:] for row in ours] == [["2", "1.0GiB", "1"], ["2", "1.0GiB", "1"]]
    held = sum(node["gpusHeld"] for node in whole["nodes"])
    assert held >= 2
    assert [replica["replica"] for replica in whole["replicas"]] == ["worker-0", "worker-1"]


def test_wait_ends_with_the_jobs_result(regatta: ClusterRegatta, jobs: Jobs, name: str) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    waiting = regatta.start("wait", name)
    jobs.wait_for_phase(name, "Running")
    jobs.ends(f"{name}-worker-0", 3)

    out, err = waiting.communicate(timeout=60)

    assert (waiting.returncode, out, err) == (1, f"job {name} is Failed\n", "")


def test_wait_for_what_is_not_there_and_for_what_goes(
    regatta: ClusterRegatta, jobs: Jobs, name: str
) -> None:
    assert regatta("wait", "no-such-job").code == 4
    jobs.create(jobfiles.running(name, workers=1))
    waiting = regatta.start("wait", name, "--for", "deleted")
    eventually(lambda: waiting.poll() is None and jobs.pods(name), "a job that is waited for")
    jobs.delete(name)

    out, _ = waiting.communicate(timeout=60)

    assert (waiting.returncode, out) == (0, f"job {name} is deleted\n")


def test_version_names_the_clusters(regatta: ClusterRegatta) -> None:
    told = regatta("version").out.splitlines()[1:]
    assert told[0] == "cluster v1.36.3"
    assert re.fullmatch(r"access context \S+ of /\S+", told[1]), "and by which file it is asked"
    assert f"access {json.loads(regatta('version', '-o', 'json').out)['access']}" == told[1]


def test_looking_imports_nothing_heavy(regatta: ClusterRegatta) -> None:
    heavy = ("pydantic", "rich", "fastapi", "httpx2", "jsonschema_rs", "sqlite3")
    probe = (
        "import sys; from regatta.cli.main import run; code = run(sys.argv[1:]); "
        f"print('HEAVY', code, *(name for name in {heavy} if name in sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", probe, "get"],
        capture_output=True,
        text=True,
        timeout=60,
        env=regatta.environment,
    )

    assert done.stdout.splitlines()[-1] == "HEAVY 0", done


@pytest.mark.parametrize("words", [["get", "-w"], ["events", "-f"]])
def test_ctrl_c_ends_a_command_that_goes_on(
    regatta: ClusterRegatta, jobs: Jobs, name: str, words: list[str]
) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_event(name, "Created")
    watching = regatta.start(*words)
    assert watching.stdout is not None
    watching.stdout.readline()

    watching.send_signal(signal.SIGINT)

    _, err = watching.communicate(timeout=60)
    assert (watching.returncode, err.strip()) == (130, "")
