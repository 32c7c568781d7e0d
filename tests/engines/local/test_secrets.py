"""A secret reaches the processes that refer to it, and nothing else that is on this machine."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from regatta.api.errors import JobIsLive
from regatta.api.job import Job, Phase
from regatta.engines.base import LogQuery, Shell, Submission
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from tests.engines.local.jobs import eventually, texts, wait_for
from tests.engines.local.opening import OpenEngine
from tests.openpai_configs import version_two

PLANTED = 'planted "&\\1$$ `x` ü'
SHOWS = "printf '%s' '<% $secrets.token %>' | md5sum; until [ -e go ]; do sleep 0.02; done"


def submit(engine: Blocking, folder: Path, *commands: str, key: str = "", name: str = "s") -> Job:
    secrets = {"token": PLANTED}
    text = version_two(name, list(commands) or [SHOWS], secrets=secrets)
    here = Shell(directory=str(folder), environment={"PATH": "/usr/bin:/bin"})
    return engine.submit(Submission(text=text, key=key), here).job


def said(engine: Blocking, name: str = "s") -> str:
    return "\n".join(texts(engine.logs("default", name, LogQuery())))


def holding(folder: Path) -> list[Path]:
    """Files below it with the secret in them, however it is written down."""
    words = [PLANTED.encode(), b'planted \\"&']
    found = []
    for top, _, names in os.walk(folder):
        for path in (Path(top) / name for name in names):
            with suppress(OSError):  # gone meanwhile, or no file
                if any(word in path.read_bytes() for word in words):
                    found.append(path)
    return found


def test_it_is_in_the_process_and_in_one_file_of_its_run(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    job = submit(engine, tmp_path)
    eventually(lambda: "  -" in said(engine), "the sum")

    secrets = home.job(job.uid) / "secrets.json"
    assert holding(home.path) == [secrets]
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes()
        except OSError:
            continue
        assert PLANTED.encode() not in line

    (tmp_path / "go").touch()
    wait_for(engine, "s", Phase.COMPLETED)
    eventually(lambda: not secrets.exists(), "the file to go")
    assert holding(home.path) == []


def test_the_program_reads_it_as_it_was_written(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    submit(engine, tmp_path)

    wait_for(engine, "s", Phase.COMPLETED)
    assert hashlib.md5(PLANTED.encode()).hexdigest() in said(engine)


@pytest.mark.parametrize("ends", ["failed", "stopped", "deleted"])
def test_it_goes_however_the_job_ends(
    ends: str, engine: Blocking, home: Home, tmp_path: Path
) -> None:
    submit(engine, tmp_path, *([SHOWS, "exit 3"] if ends == "failed" else [SHOWS]))
    eventually(lambda: "  -" in said(engine), "the sum")

    if ends == "failed":
        (tmp_path / "go").touch()
    elif ends == "stopped":
        engine.stop("default", "s")
    else:
        engine.delete("default", "s")

    eventually(lambda: not holding(home.path), "no trace of it")


def test_a_job_that_waits_for_its_turn_has_it_when_that_comes(
    open_engine: OpenEngine, home: Home, tmp_path: Path
) -> None:
    engine = open_engine(cpus=1)
    submit(engine, tmp_path, "until [ -e first ]; do sleep 0.02; done", name="first")
    job = submit(engine, tmp_path, name="s")
    engine.close()

    engine = open_engine(cpus=1)  # which has only what is on disk
    assert (home.job(job.uid) / "secrets.json").exists()
    (tmp_path / "first").touch()
    (tmp_path / "go").touch()

    wait_for(engine, "s", Phase.COMPLETED)
    eventually(lambda: not holding(home.path), "no trace of it")


def test_a_submit_that_makes_no_job_leaves_none(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    job = submit(engine, tmp_path, key="k")
    assert submit(engine, tmp_path, key="k").uid == job.uid
    with pytest.raises(JobIsLive):
        submit(engine, tmp_path)

    assert holding(home.path) == [home.job(job.uid) / "secrets.json"]
    assert [path.name for path in (home.path / "jobs").iterdir()] == [job.uid]


def test_a_start_removes_what_a_death_before_the_job_left(
    open_engine: OpenEngine, home: Home, tmp_path: Path
) -> None:
    engine = open_engine()
    submit(engine, tmp_path, "true")
    engine.close()
    left = home.path / "jobs" / "never-was"
    left.mkdir()
    (left / "secrets.json").write_text(PLANTED)

    open_engine()

    assert not left.exists()


def test_a_preview_shows_that_it_is_there_and_not_what_it_is(
    engine: Blocking, home: Home, tmp_path: Path
) -> None:
    text = version_two("s", [SHOWS], secrets={"token": PLANTED})

    preview = engine.preview(Submission(text=text), Shell(directory=str(tmp_path)))

    (environment,) = preview.environment.values()
    assert environment["REGATTA_SECRET_0"] == "******"
    assert "planted" not in repr(preview)
    assert holding(home.path) == []


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("after", ["", "; seq 2000"], ids=["alone", "cut"])
def test_what_is_said_of_the_end_has_none_though_the_log_has(
    engine: Blocking, home: Home, tmp_path: Path, code: int, after: str
) -> None:
    repeat = "for n in $(seq 300); do printf '%s\\n' '<% $secrets.token %>'; done"
    last = "echo 'last words: <% $secrets.token %>x'"
    job = submit(engine, tmp_path, repeat + after, last, f"exit {code}")
    done = wait_for(engine, "s", Phase.FAILED if code else Phase.COMPLETED)

    assert PLANTED in said(engine)
    [pod] = engine.pods("default", "s")
    assert pod.message.endswith("***x")
    assert len(pod.message) > 700
    assert PLANTED[-4:] not in pod.message
    assert PLANTED not in str(done)
    held = {path.parent.name for path in holding(home.path)}
    assert held == {"logs"}, job.uid
