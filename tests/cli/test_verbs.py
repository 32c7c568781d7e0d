"""The verbs that look at jobs and change them."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import yaml

from tests.doors import FOREVER, Regatta, eventually, shell_job


def submit(regatta: Regatta, text: str, *options: str) -> None:
    said = regatta("submit", "-", *options, stdin=text)
    assert said.code == 0, said


def test_get_prints_the_columns_that_paddlejob_users_know(regatta: Regatta, name: str) -> None:
    regatta("run", "-", stdin=shell_job(name, replicas=2))

    head, row = regatta("get", name).out.splitlines()

    assert head.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert re.fullmatch(rf"{name} +Completed +Collective +- +0/2 +\d+s", row)


def test_get_counts_the_replicas_of_named_tasks_as_workers(regatta: Regatta, name: str) -> None:
    document = yaml.safe_load(shell_job(name, FOREVER))
    role = document["spec"].pop("worker")
    document["spec"]["tasks"] = [
        {"name": "left", **role, "replicas": 1},
        {"name": "right", **role, "replicas": 2},
    ]
    submit(regatta, yaml.safe_dump(document))
    assert regatta("wait", name, "--for", "running").code == 0

    assert re.search(rf"{name} +Running +Custom +- +3/3 ", regatta("get", name).out)
    assert "left:1/1 right:2/2" in regatta("get", name, "-o", "wide").out


def test_get_writes_json_and_yaml_of_the_same_job(regatta: Regatta, name: str) -> None:
    regatta("run", "-", stdin=shell_job(name))

    as_json = json.loads(regatta("get", name, "-o", "json").out)
    as_yaml = yaml.safe_load(regatta("get", name, "-o", "yaml").out)
    listed = json.loads(regatta("get", "-o", "json").out)

    assert as_json["kind"] == "PaddleJob"
    assert as_json["status"]["phase"] == as_yaml["status"]["phase"] == "Completed"
    assert as_json in listed["items"]


def test_get_watch_prints_each_change(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, FOREVER))
    regatta("wait", name, "--for", "running")
    watching = regatta.start("get", name, "-w")
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().startswith("NAME")
        assert "Running" in watching.stdout.readline()
        assert regatta("stop", name).code == 0
        while "Aborted" not in (row := watching.stdout.readline()):
            assert row.startswith(name)
    finally:
        watching.kill()
        watching.communicate()


def test_get_watch_says_nothing_where_only_the_age_would_change(
    regatta: Regatta, name: str
) -> None:
    script = "import time, regatta\nfor n in range(600): regatta.progress(n, 600); time.sleep(0.2)"
    text = shell_job(name, f"exec python3 -c '{script}'")
    submit(regatta, text)
    assert regatta("wait", name, "--for", "running").code == 0

    def steps() -> int:
        status = json.loads(regatta("get", name, "-o", "json").out)["status"]
        return int((status.get("progress") or {}).get("step", 0))

    watching = regatta.start("get", name, "-w")
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().startswith("NAME")
        watching.stdout.readline()
        before = eventually(steps, "progress")
        eventually(lambda: steps() > before + 5, "more progress")
        regatta("stop", name)
        states = []
        while "Aborted" not in states:
            states.append(watching.stdout.readline().split()[1])
    finally:
        watching.kill()
        watching.communicate()
    assert len(states) == len(set(states)), states


def test_namespaces_keep_jobs_apart(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name), "-n", "team-a")

    assert regatta("get", name).code == 4
    assert name in regatta("get", "-n", "team-a").out
    assert name in regatta("-n", "team-a", "get").out
    assert re.search(rf"team-a +{name} ", regatta("get", "-A").out)


def test_describe_tells_addresses_exit_codes_events_and_why_it_failed(
    regatta: Regatta, name: str
) -> None:
    regatta("run", "-", stdin=shell_job(name, "echo before the end; exit 3"))

    page = regatta("describe", name).out

    assert re.search(r"worker-0 +Failed +127\.\d+\.\d+\.\d+ +\d+-\d+ +- +3 ", page)
    assert "Why it failed:" in page
    assert "before the end" in page
    assert re.search(r"Warning +ReplicaFailed", page)


def test_describe_tells_the_last_lines_of_a_job_that_hung_and_why_once(
    regatta: Regatta, name: str
) -> None:
    hung = "echo the loader waits; while true; do sleep 0.1; done"
    regatta("run", "-", stdin=shell_job(name, hung, runPolicy={"hangTimeoutSeconds": 1}))

    page = regatta("describe", name).out

    why = "no replica reported progress for hangTimeoutSeconds (1 s)"
    head, _, events = page.partition("Events:")
    assert head.count(why) == 1
    assert events.count(why) == 1
    assert f"Why it failed:\n  Hung: {why}\n    the last lines of worker-0:" in page
    assert re.search(r"worker-0:\n +the loader waits\n", page)


def test_describe_of_a_job_that_its_user_stopped_speaks_of_no_failure(
    regatta: Regatta, name: str
) -> None:
    submit(regatta, shell_job(name, FOREVER))
    regatta("stop", name)
    regatta("wait", name)

    page = regatta("describe", name).out

    assert "Why it ended:\n  stopped on request\n" in page
    assert "Why it failed" not in page


def test_describe_tells_why_a_job_waits(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, runPolicy={"suspend": True}))
    regatta("wait", name, "--for", "suspended")

    assert "Why it waits:\n  Suspended" in regatta("describe", name).out


def test_logs_choose_lines(regatta: Regatta, name: str) -> None:
    script = "for i in 1 2 3; do echo $i of $PADDLE_TRAINER_ID; done"
    regatta("run", "-", stdin=shell_job(name, script, replicas=2))

    def lines(*options: str) -> list[str]:
        return sorted(regatta("logs", name, *options).out.splitlines())

    assert len(lines()) == 6
    assert lines("--index", "1", "--tail", "2") == ["worker-1 | 2 of 1", "worker-1 | 3 of 1"]
    assert lines("--grep", "^[12] of 0") == ["worker-0 | 1 of 0", "worker-0 | 2 of 0"]
    assert lines("--since", "1h") == lines()
    assert re.match(r"worker-0 \| \d{4}-\d\d-\d\dT[\d:.]+Z 1 of 0", lines("--timestamps")[0])
    records = [json.loads(line) for line in lines("-o", "json")]
    assert {(r["replica"], r["stream"]) for r in records} == {
        ("worker-0", "stdout"),
        ("worker-1", "stdout"),
    }


def test_habits_of_kubectl_are_told_what_to_type(regatta: Regatta, name: str) -> None:
    regatta("run", "-", stdin=shell_job(name, "true"))
    said = regatta("logs", f"{name}-worker-0")
    assert said.code == 4
    assert f"Write `regatta logs {name} --role worker --index 0`." in said.err
    assert "there is no job named no-worker-0" in regatta("logs", "no-worker-0").err
    assert "there is no job named no" in regatta("logs", "no").err
    said = regatta("get", "pdj", name)
    assert said.code == 4
    assert f"Write `regatta get {name}`." in said.err


def test_logs_of_a_replica_that_never_was_are_an_error(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, FOREVER, replicas=2))

    odd_index = regatta("logs", name, "--index", "7")
    odd_role = regatta("logs", name, "--role", "captain")

    assert (odd_index.code, odd_role.code) == (4, 4)
    assert "has no replica with index 7" in odd_index.err
    assert "worker 2" in odd_index.err
    assert "Its roles are worker." in odd_role.err


def test_logs_of_a_replica_that_was_scaled_away_are_still_there(
    regatta: Regatta, name: str
) -> None:
    submit(regatta, shell_job(name, FOREVER, replicas=2))
    eventually(lambda: regatta("logs", name).out.count("up") == 2, "both workers' first line")
    regatta("scale", name, "--replicas", "1")
    eventually(lambda: "1/1" in regatta("get", name).out, "one worker")

    assert "worker-1 | up" in regatta("logs", name, "--index", "1").out


def test_a_job_that_is_found_is_shown_beside_one_that_is_not(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name))

    said = regatta("get", name, "no-such-job", "-A")

    assert said.code == 4
    assert name in said.out
    assert "no job named no-such-job in any namespace" in said.err


def test_a_deleted_job_is_gone_when_the_command_says_so(regatta: Regatta, name: str) -> None:
    slow = "trap 'sleep 1; exit' TERM; while :; do sleep 0.1; done"
    for number in (1, 2):
        submit(regatta, shell_job(f"{name}-{number}", slow))
        regatta("wait", f"{name}-{number}", "--for", "running")

    said = regatta("delete", f"{name}-1", f"{name}-2")

    assert said.out.splitlines() == [f"job {name}-1 deleted", f"job {name}-2 deleted"]
    assert regatta("get", f"{name}-1").code == 4
    assert regatta("get", f"{name}-2").code == 4


def test_a_job_that_does_not_go_is_being_deleted(regatta: Regatta, name: str) -> None:
    script = "trap '' TERM; echo up; until [ -e leave ]; do sleep 0.05; done"
    document = yaml.safe_load(shell_job(name, script))
    document["spec"]["worker"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    submit(regatta, yaml.safe_dump(document))
    eventually(lambda: "up" in regatta("logs", name).out, "its first line")
    # In a process of its own: the thread that watches must not outlive the test.
    hasty = (
        "from regatta.cli.verbs import delete; delete.PATIENCE_SECONDS = 0.5; "
        "from regatta.cli.main import main; main()"
    )

    done = subprocess.run(
        [sys.executable, "-c", hasty, "delete", name],
        capture_output=True,
        text=True,
        timeout=60,
        env=regatta.environment,
    )

    assert done.returncode == 0, done
    assert f"job {name} is being deleted" in done.stdout
    assert "Terminating" in regatta("get", name).out
    (regatta.folder / "leave").touch()
    eventually(lambda: regatta("get", name).code == 4, "its end")
    (regatta.folder / "leave").unlink()


def test_logs_follow_to_the_end_of_the_job(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done"))

    said = regatta("logs", "-f", name)

    assert said.code == 0
    assert said.out.splitlines() == [f"worker-0 | {i}" for i in range(1, 6)]


def test_stop_keeps_the_record_and_delete_removes_it(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, FOREVER))
    eventually(lambda: "up" in regatta("logs", name).out, "its first line")

    assert regatta("stop", name).code == 0
    assert regatta("wait", name).code == 3
    assert "up" in regatta("logs", name).out
    assert regatta("delete", name).code == 0
    assert regatta("get", name).code == 4


def test_one_name_that_is_wrong_does_not_keep_the_others_from_being_stopped(
    regatta: Regatta, name: str
) -> None:
    submit(regatta, shell_job(name, FOREVER))

    said = regatta("stop", "no-such-job", name)

    assert said.code == 4
    assert "no-such-job" in said.err
    assert regatta("wait", name, "--for", "aborted").code == 0


def test_all_means_the_jobs_of_the_namespace(regatta: Regatta, name: str) -> None:
    for number in (1, 2):
        submit(regatta, shell_job(f"{name}-{number}", FOREVER), "-n", name)

    assert regatta("stop", "--all", "-n", name).code == 0
    for number in (1, 2):
        assert regatta("wait", f"{name}-{number}", "-n", name).code == 3
    assert regatta("delete", "--all", "-n", name).code == 0
    eventually(lambda: "No jobs" in regatta("get", "-n", name).err, "the jobs to be gone")


def test_scale_suspend_and_resume_reach_the_engine(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, FOREVER, replicas=2))
    regatta("wait", name, "--for", "running")

    assert regatta("scale", name, "--replicas", "1").code == 0
    eventually(lambda: "1/1" in regatta("get", name).out, "one worker")
    assert regatta("suspend", name).code == 0
    assert regatta("wait", name, "--for", "suspended", "--timeout", "60s").code == 0
    assert regatta("resume", name).code == 0
    assert regatta("wait", name, "--for", "running", "--timeout", "60s").code == 0
    twice = regatta("resume", name)
    assert twice.code == 4
    assert "not suspended" in twice.err


def test_events_are_told_and_followed(regatta: Regatta, name: str) -> None:
    regatta("run", "-", stdin=shell_job(name))

    assert re.search(rf"Normal +Completed +{name} ", regatta("events", name).out)
    everywhere = regatta("events", "-A").out.splitlines()
    assert everywhere[0].split() == ["NAMESPACE", "AGE", "TYPE", "REASON", "JOB", "MESSAGE"]
    assert any(re.match(rf"default .*Completed +{name} ", line) for line in everywhere)
    following = regatta.start("events", name, "-f")
    assert following.stdout is not None
    try:
        while "Completed" not in (line := following.stdout.readline()):
            assert line
    finally:
        following.kill()
        following.communicate()


def test_top_shows_what_replicas_use(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, FOREVER))
    regatta("wait", name, "--for", "running")

    page = regatta("top").out

    assert re.search(r"^cpu +\d", page, re.MULTILINE)
    assert re.search(rf"{name} +worker-0 +Running +\d+% +\S+", page)


def test_validate_needs_no_server(fresh: Regatta) -> None:
    good = fresh.write(shell_job("fine"))
    bad = fresh.write(shell_job("fine", cleanPodPolicy="Nerver"), "bad.yaml")

    said = fresh("validate", good, bad)

    assert said.code == 2
    assert f"{good}: valid, a Single job of 1 replica" in said.out
    assert "spec.cleanPodPolicy" in said.err
    assert "Never" in said.err
    report = json.loads(fresh("validate", bad, "-o", "json").out)
    assert not report["valid"]
    assert report["problems"][0]["path"] == "spec.cleanPodPolicy"
    assert not (fresh.folder / "home").exists()


def test_validate_tells_of_every_file_also_when_one_cannot_be_read(fresh: Regatta) -> None:
    good, other = fresh.write(shell_job("fine")), fresh.write(shell_job("other"), "other.yaml")

    said = fresh("validate", good, "nowhere.yaml", other)
    report = json.loads(fresh("validate", good, "nowhere.yaml", "-o", "json").out)

    assert said.code == 2
    assert f"{good}: valid" in said.out
    assert f"{other}: valid" in said.out
    assert said.err.startswith("nowhere.yaml cannot be read: No such file or directory. ")
    assert [result["valid"] for result in report] == [True, False]


def test_version_and_status_start_no_server(fresh: Regatta) -> None:
    assert "server not running" in fresh("version").out
    assert fresh("server", "status").code == 5
    assert fresh("server", "start").code == 0
    assert re.search(r"^server \d", fresh("version").out, re.MULTILINE)
    assert "restarted when it dies" in fresh("server", "status").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(regatta: Regatta, shell: str) -> None:
    assert "_REGATTA_COMPLETE" in regatta("completion", shell).out


def test_job_names_complete(regatta: Regatta, name: str) -> None:
    submit(regatta, shell_job(name, FOREVER))

    said = regatta(
        _REGATTA_COMPLETE="bash_complete", COMP_WORDS=f"regatta logs {name}", COMP_CWORD="2"
    )

    assert f"plain,{name}" in said.out.splitlines()
