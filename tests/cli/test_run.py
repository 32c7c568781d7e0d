"""`regatta run`: from a file to a result."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from tests.doors import Regatta, eventually, ps_job, shell_job


def test_run_shows_the_plan_the_lines_and_the_summary(regatta: Regatta, name: str) -> None:
    file = regatta.write(shell_job(name, "echo line of $PADDLE_TRAINER_ID", replicas=2))

    said = regatta("run", file)

    assert said.code == 0, said
    plan, _, rest = said.out.partition("\n\n")
    assert re.search(r"ROLE +REPLICAS +CPU +MEMORY +GPU +COMMAND", plan)
    assert re.search(r"worker +2 .* sh -c echo line of", plan)
    assert "worker-0 | line of 0" in rest
    assert "worker-1 | line of 1" in rest
    assert re.search(r"REPLICA +STATE +EXIT +RESTARTS +DURATION", rest)
    assert re.search(r"worker-1 +Succeeded +0 +0 ", rest)
    assert re.search(rf"job {name} Completed in \d+\.\ds$", rest.strip())


def test_a_failed_job_exits_1_and_shows_who_failed_first_and_what_it_said(
    regatta: Regatta, name: str
) -> None:
    file = regatta.write(shell_job(name, "echo almost there; echo boom >&2; exit 7"))

    said = regatta("run", file)

    assert said.code == 1
    assert "worker-0 failed first with exit code 7; its last lines:" in said.out
    assert re.search(r"^    boom$", said.out, re.MULTILINE)
    assert f"regatta logs {name} --role worker --index 0" in said.out


def test_a_finished_job_makes_room_and_a_live_one_does_not(regatta: Regatta, name: str) -> None:
    file = regatta.write(shell_job(name))
    assert regatta("run", file).code == 0
    assert regatta("run", file).code == 0

    regatta.write(shell_job(name, "sleep 1000"))
    assert regatta("submit", file).code == 0
    refused = regatta("run", file)

    assert refused.code == 4
    assert "--replace" in refused.err
    regatta.write(shell_job(name, "echo the new one"))
    replaced = regatta("run", file, "--replace")
    assert replaced.code == 0
    assert "worker-0 | the new one" in replaced.out


def test_servers_left_running_are_named_with_the_command_that_ends_them(
    regatta: Regatta, name: str, tmp_path: Path
) -> None:
    train = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo trained"
    file = regatta.write(ps_job(name, "sleep 1000", train, cleanPodPolicy="Never"))

    going = regatta.start("run", file)
    eventually(lambda: re.search("PS +1/1 +1/1", regatta("get", name).out), "both replicas")
    (tmp_path / "go").touch()
    out, err = going.communicate(timeout=60)

    assert going.returncode == 0, err
    assert (
        f"ps-0 still runs because the job says cleanPodPolicy: Never; `regatta stop {name}` ends it"
        in out
    )
    assert re.search(rf"{name} +Completed +PS +1/1 +0/1 ", regatta("get", name).out)
    assert re.search(rf"{name} +ps-0 +Running", regatta("top").out)
    assert f"stopping what job {name} left running" in regatta("stop", "--all").out
    eventually(lambda: re.search("PS +0/1 +0/1", regatta("get", name).out), "the server's end")
    assert name not in regatta("stop", "--all").out


def test_options_change_the_job(regatta: Regatta, name: str) -> None:
    script = "echo $GREETING $WHO from $PWD"
    file = regatta.write(shell_job("another-name", script))
    env_file = regatta.write("# people\nWHO='you all'\n\n", "people.env")
    workdir = regatta.folder / "elsewhere"
    workdir.mkdir(exist_ok=True)

    said = regatta(
        *("run", file, "--name", name, "--env", "GREETING=hello", "--env-file", env_file),
        *("--set", "spec.worker.replicas=2", "--workdir", str(workdir)),
    )

    assert said.code == 0, said
    assert f"worker-1 | hello you all from {workdir}" in said.out


def test_a_job_runs_in_the_folder_of_its_file(regatta: Regatta, name: str) -> None:
    folder = regatta.folder / f"project-{name}"
    folder.mkdir()
    (folder / "job.yaml").write_text(shell_job(name, "cat message.txt"))
    (folder / "message.txt").write_text("found beside the job file\n")

    said = regatta("run", str(folder))

    assert "worker-0 | found beside the job file" in said.out


def test_a_job_can_come_through_standard_input(regatta: Regatta, name: str) -> None:
    said = regatta("run", "-", stdin=shell_job(name, "echo piped in"))

    assert said.code == 0
    assert "worker-0 | piped in" in said.out


def test_piped_output_is_plain(regatta: Regatta, name: str) -> None:
    said = regatta("run", regatta.write(shell_job(name)))

    assert "\x1b" not in said.out + said.err
    assert "\r" not in said.out


def test_a_waiting_job_says_why(regatta: Regatta, name: str) -> None:
    """As a line of its own, since no status line can show it in a pipe."""
    text = shell_job(name, runPolicy={"suspend": True})
    follower = regatta.start("run", regatta.write(text, f"{name}.yaml"))
    assert follower.stdout is not None
    assert follower.stderr is not None
    try:
        for line in follower.stdout:
            if line.startswith(f"-- job {name} is Suspended"):
                break
        assert regatta("resume", name).code == 0
        rest = follower.stdout.read()
        assert follower.wait(60) == 0, rest
        assert "worker-0 | hello" in rest
    finally:
        follower.kill()
        follower.communicate()


def test_run_and_submit_agree_on_a_dry_run_and_create_nothing(regatta: Regatta, name: str) -> None:
    file = regatta.write(shell_job(name, replicas=2))

    as_yaml = regatta("run", file, "--dry-run")
    as_json = regatta("submit", file, "--dry-run", "-o", "json")

    assert as_yaml.code == as_json.code == 0
    documents = list(yaml.safe_load_all(as_yaml.out))
    shown = json.loads(as_json.out)
    pods = [d["metadata"]["name"] for d in documents if d.get("kind") == "Pod"]
    assert pods == [f"{name}-worker-0", f"{name}-worker-1"]
    assert [o["kind"] for o in shown["objects"]] == [d["kind"] for d in documents[:-1]]
    environment = shown["environment"][f"{name}-worker-1"]
    assert environment["PADDLE_TRAINER_ID"] == "1"
    assert environment["PADDLE_TRAINERS_NUM"] == "2"
    first, second = (shown["ports"][pod] for pod in pods)
    assert second["first"] > first["last"]
    assert regatta("get", name).code == 4
