"""Runs of the past, and deleting many jobs: what is printed, asked and refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.doors import FOREVER, Regatta, Terminal, eventually, shell_job


def run(regatta: Regatta, name: str, script: str, *options: str, **spec: object) -> str:
    """The uid of a job that has ended."""
    regatta("run", "-", *options, stdin=shell_job(name, script, **spec))
    runs = json.loads(regatta("history", name, *options, "-o", "json").out)["items"]
    return str(runs[0]["uid"])


def test_history_lists_a_replaced_run_whose_log_and_page_are_found_by_its_uid(
    regatta: Regatta, name: str
) -> None:
    old = run(regatta, name, "echo old; exit 3")
    new = run(regatta, name, "echo new")

    head, *rows = regatta("history", name).out.splitlines()

    assert head.split() == ["NAME", "STATUS", "MODE", "SUBMITTED", "TOOK", "LOGS", "UID"]
    assert [(row.split()[1], row.split()[-1]) for row in rows] == [
        ("Completed", new),
        ("Failed", old),
    ]
    assert regatta("logs", "--uid", old).out.splitlines() == ["worker-0 | old"]
    assert regatta("logs", "--uid", old[:8]).out.splitlines() == ["worker-0 | old"]
    assert f"but of job {name} in namespace default" in regatta("logs", "x", "--uid", old).err
    assert regatta("logs", name, "--uid", old, "--role", "worker").out == "worker-0 | old\n"
    assert f"UID:        {old}" in regatta("describe", "--uid", old).out
    events = regatta("events", "--uid", old).out
    assert "Failed" in events
    assert "Completed" not in events


def test_a_record_is_described_when_nothing_else_is_left(regatta: Regatta, name: str) -> None:
    uid = run(regatta, name, "exit 3", runPolicy={"ttlSecondsAfterFinished": 0})
    eventually(lambda: regatta("get", name).code == 4, "the end of its time to live")

    page = regatta("describe", "--uid", uid)

    assert page.code == 0
    assert "Status:      Failed" in page.out
    assert "Removed:     deleted with its logs: its time to live was over" in page.out
    assert json.loads(regatta("describe", "--uid", uid, "-o", "json").out)["run"]["uid"] == uid
    said = regatta("logs", "--uid", uid)
    assert said.code == 4
    assert "only the record is left" in said.err
    assert " removed " in regatta("history", name).out
    assert regatta("delete", name).out == f"job {name} deleted\n"
    assert regatta("history", name).out == ""


@pytest.mark.parametrize("verb", ["logs", "describe"])
def test_a_verb_about_one_job_wants_its_name_or_its_uid(regatta: Regatta, verb: str) -> None:
    said = regatta(verb)
    assert said.code == 2
    assert "needs a name, or --uid" in said.err
    said = regatta(verb, "--uid", "nobody")
    assert said.code == 4
    assert "there is no run with the UID nobody" in said.err


def test_history_says_when_it_leaves_older_runs_out(regatta: Regatta, name: str) -> None:
    for _ in range(3):
        run(regatta, name, "true")
    said = regatta("history", name, "--limit", "2")
    assert len(said.out.splitlines()) == 3
    assert "`--limit 0` lists all" in said.err
    assert len(regatta("history", name, "--limit", "0").out.splitlines()) == 4


def test_finished_jobs_are_deleted_and_the_last_line_is_true(regatta: Regatta, name: str) -> None:
    space = ("-n", name)
    for job in ("a", "b", "b"):
        run(regatta, job, "true", *space)
    regatta("submit", "-", *space, stdin=shell_job("live", FOREVER))

    assert regatta("delete", "--finished", "--older-than", "1h", *space).out.startswith(
        "No job or run ended before 20"
    )
    said = regatta("delete", "--finished", *space)

    assert (said.code, said.out) == (0, "2 jobs and 1 earlier run deleted\n")
    rows = regatta("get", *space).out.splitlines()
    assert [row.split()[0] for row in rows] == ["NAME", "live"]
    assert len(regatta("history", *space).out.splitlines()) == 2


def test_delete_all_does_not_take_live_jobs_along_unless_told_so(
    regatta: Regatta, name: str
) -> None:
    space = ("-n", name)
    run(regatta, "over", "true", *space)
    regatta("submit", "-", *space, stdin=shell_job("live", FOREVER))

    refused = regatta("delete", "--all", *space)

    assert refused.code == 4
    assert "1 job is not finished: live" in refused.err
    assert "--yes" in refused.err
    assert "every finished job and earlier run" in refused.err
    assert len(regatta("get", *space).out.splitlines()) == 3
    said = regatta("delete", "--all", "--yes", *space)
    assert (said.code, said.out) == (0, "2 jobs deleted\n")
    assert regatta("delete", "--all", *space).out == "No jobs.\n"


def test_on_a_terminal_delete_all_asks_for_live_jobs(
    regatta: Regatta, name: str, terminal: Callable[..., Terminal]
) -> None:
    space = ("-n", name)
    regatta("submit", "-", *space, stdin=shell_job("live", FOREVER))

    refusing = terminal("delete", "--all", *space)
    refusing.until(r"1 job is not finished: live\. Delete every job of .*, finished.*\[y/N\]")
    refusing.type("n\n")
    assert refusing.end() == 4
    assert regatta("get", "live", *space).code == 0

    agreeing = terminal("delete", "--all", *space)
    agreeing.until(r"\[y/N\]")
    agreeing.type("y\n")
    assert agreeing.end() == 0
    assert "1 job deleted" in agreeing.seen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a name, or --all or --finished"),
        (["--all", "--finished"], "only one of these"),
        (["x", "--finished"], "only one of these"),
        (["--all", "--older-than", "1d"], "--finished --older-than"),
    ],
)
def test_delete_wants_one_word_about_what(regatta: Regatta, words: list[str], said: str) -> None:
    refused = regatta("delete", *words)
    assert refused.code == 2
    assert said in refused.err


def test_get_shows_what_lives_and_what_ended_last(regatta: Regatta, name: str) -> None:
    space = ("-n", name)
    for job in ("a", "b", "c"):
        run(regatta, job, "true", *space)
    regatta("submit", "-", *space, stdin=shell_job("live", FOREVER))
    two = "from regatta.cli import main; from regatta.cli.verbs import get\n"
    two += "get.ENDED_SHOWN = 2; main.main()"

    def got(*words: str) -> tuple[list[str], str]:
        process = regatta.start_python("-c", two, "get", *space, *words)
        out, err = process.communicate()
        return [line.split()[0] for line in out.splitlines()[1:]], err

    names, err = got()
    assert names == ["b", "c", "live"]
    assert "`regatta get --all`" in err
    assert got("--all") == (["a", "b", "c", "live"], "")
    assert got("a") == (["a"], "")


def test_the_server_says_what_it_keeps_and_keeps_all_where_the_bounds_are_wrong(
    fresh: Regatta,
) -> None:
    config = fresh.folder / "home" / "config.yaml"
    config.parent.mkdir()
    config.write_text("retention: {runs: 7, size: 1Gi}\n")
    run(fresh, "over", "echo hello")

    said = fresh("server", "status").out

    assert "jobs:    0 live, 1 finished" in said
    assert "runs:    1 on record, the first ended" in said
    bounds = "the newest 7 of the last 90 days are kept, and the newest 1.0GiB of their logs"
    assert f"keeps:   of runs that have ended, {bounds}" in said
    storage = json.loads(fresh("server", "status", "-o", "json").out)["storage"]
    assert storage["retention"] == {"age": 90 * 86400.0, "runs": 7, "size": 1024**3}
    assert bounds in fresh.files.log.read_text()

    config.write_text("retention: {runs: 8}\n")
    elsewhere = fresh("server", "restart", "--server", fresh.address.url)
    assert (elsewhere.code, "and not started" in elsewhere.err) == (2, True)
    assert fresh("server", "restart").code == 0
    assert "the newest 8 of the last 90 days" in fresh("server", "status").out

    fresh("server", "stop")
    config.write_text("retention: {age: 90}\n")
    wrong = (
        f"warning: {config}: retention.age is 90; write a time such as 90d or 12h, or unlimited."
    )
    got = fresh("get")
    assert got.code == 0
    assert "over " in got.out
    assert got.err == f"{wrong} A server that starts now removes nothing.\n"
    for verb in ("start", "status"):
        said = fresh("server", verb)
        assert said.code == 0
        assert said.err.startswith(f"{wrong} Nothing is removed until it is right")
    assert "all of any age are kept, and all of their logs" in said.out
    config.unlink()


def test_a_name_that_no_run_has_is_an_error(regatta: Regatta) -> None:
    said = regatta("history", "nobody")
    assert said.code == 4
    assert "there is no run of a job named nobody" in said.err


def test_an_earlier_run_is_described_with_commands_that_reach_it(
    regatta: Regatta, name: str
) -> None:
    first = run(regatta, name, "echo first; exit 3")
    run(regatta, name, "true")
    page = regatta("describe", "--uid", first).out
    assert page.count(f"regatta logs --uid {first} --role worker --index 0") == 2
