"""Where a replica's lines come from besides its pipes: the files of Paddle's launcher."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from regatta.engines.local.supervisor import sources
from regatta.engines.local.supervisor.sources import Echo, LauncherFiles
from tests.engines.local.runs import Pod, eventually, python, shell
from tests.engines.local.supervisor.test_pump import pump_into, read_back


def test_the_launchers_files_belong_to_the_log(pod: Pod, tmp_path: Path) -> None:
    logs = tmp_path / "paddle"
    pod.play(
        shell(
            f"mkdir {logs}; for n in 0 1 2; do echo rank $n > {logs}/workerlog.$n; done; echo main"
        ),
        tail_folders=(str(logs),),
    )
    assert sorted(pod.texts()) == ["[1] rank 1", "[2] rank 2", "main"]


def test_the_launchers_files_are_followed_while_it_runs(pod: Pod, tmp_path: Path) -> None:
    logs = tmp_path / "paddle"
    pod.start(
        shell(f"mkdir {logs}; echo a > {logs}/workerlog.1; sleep 600"), tail_folders=(str(logs),)
    )
    pod.says("[1] a")


@pytest.mark.parametrize("makes", ["mkfifo {0}/{1}", "ln -s /dev/zero {0}/{1}"])
def test_what_only_looks_like_a_launchers_file_does_not_keep_the_replica_from_ending(
    pod: Pod, tmp_path: Path, makes: str
) -> None:
    logs = tmp_path / "paddle"
    both = "; ".join(makes.format(logs, f"workerlog.{number}") for number in (0, 1))
    ended = pod.play(shell(f"mkdir {logs}; {both}; echo main"), tail_folders=(str(logs),))
    assert ended.exit is not None
    assert ended.exit.code == 0
    assert pod.texts() == ["main"]


def test_a_name_of_other_digits_is_no_launchers_file(pod: Pod, tmp_path: Path) -> None:
    logs = tmp_path / "paddle"
    ended = pod.play(
        shell(f"mkdir {logs}; echo no > {logs}/workerlog.\u00b2; echo main"),
        tail_folders=(str(logs),),
    )
    assert ended.exit is not None
    assert ended.exit.code == 0
    assert pod.texts() == ["main"]


def test_a_file_that_takes_hours_to_read_does_not_keep_a_replica_from_being_ended(
    pod: Pod, tmp_path: Path
) -> None:
    logs = tmp_path / "paddle"
    file = logs / "workerlog.1"
    makes = f"mkdir {logs}; echo first > {file}; truncate -s 8T {file}"
    leaves = f"trap 'truncate -s 0 {file}; exit 4' TERM"
    pod.start(shell(f"{leaves}; {makes}; while :; do sleep 0.05; done"), tail_folders=(str(logs),))
    pod.says("[1] first")
    pod.runtime.stop(pod.run, 600)
    ended = pod.ended()
    assert ended.exit is not None
    assert ended.exit.code == 4


@pytest.mark.parametrize("number", [0, 1])
def test_holes_of_terabytes_are_over_with_the_program_that_made_them(
    pod: Pod, tmp_path: Path, number: int
) -> None:
    logs = tmp_path / "paddle"
    file = logs / f"workerlog.{number}"
    makes = f"mkdir {logs}; echo first >{file}; truncate -s 4T {file}; echo last >>{file}"
    ended = pod.play(shell(f"{makes}; echo main"), tail_folders=(str(logs),))
    assert ended.exit is not None
    assert ended.exit.code == 0
    assert "main" in pod.texts()
    if number:
        assert "[1] first" in pod.texts()
        assert any(text.endswith("last") for text in pod.texts())


def test_a_try_that_left_more_than_there_was_time_for_costs_the_next_one_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica may start again in place, under the same supervisor."""
    folder = tmp_path / "paddle"
    folder.mkdir()
    file = folder / "workerlog.1"
    pump, segments = pump_into(tmp_path, 1 << 20)
    files = LauncherFiles(pump, [str(folder)], Echo())
    monkeypatch.setattr(sources, "FINISH_SECONDS", -1.0)  # over before it begins
    files.begin()
    file.write_text("first try\n")
    files.finish()
    assert read_back(tmp_path) == ["workerlog.1 was too long to be read to its end"]

    files.begin()
    with file.open("a") as launcher:
        launcher.write("second try\n")
    files.read()

    segments.close()
    assert read_back(tmp_path)[1:] == ["[1] first try", "[1] second try"]


LAUNCHER = """
import os, signal, subprocess, sys, time
folder, extra = sys.argv[1], sys.argv[2]
os.makedirs(folder, exist_ok=True)
trainer = '''
import signal, sys, time
def save(*_):
    print("saved"); sys.exit(0)
signal.signal(signal.SIGTERM, save)
for step in range(3):
    print("step", flush=True)
time.sleep(600)
'''
log = open(folder + "/workerlog.0", "ab")
started = log.tell()
child = subprocess.Popen([sys.executable, "-c", trainer], stdout=log)
def leave(*_):
    child.terminate(); child.wait(); sys.exit(15)
signal.signal(signal.SIGTERM, leave)
while os.path.getsize(folder + "/workerlog.0") < started + 15:
    time.sleep(0.01)
echo = open(folder + "/workerlog.0")
echo.seek(started)
if extra:
    print(extra)
print(echo.readline() + echo.readline(), end="", flush=True)  # it lags behind by a line
time.sleep(600)
"""


@pytest.mark.parametrize("extra", ["", "a word of its own"])
def test_what_a_trainer_says_after_its_launcher_was_stopped_is_logged(
    pod: Pod, tmp_path: Path, extra: str
) -> None:
    logs = tmp_path / "paddle"
    logs.mkdir()
    (logs / "workerlog.0").write_text("step\nof an earlier try\n")
    launcher = replace(python(LAUNCHER), argv=(sys.executable, "-c", LAUNCHER, str(logs), extra))
    pod.start(launcher, tail_folders=(str(logs),))
    eventually(lambda: pod.texts().count("step") == 2)
    pod.runtime.stop(pod.run, 30)
    pod.ended()
    said = [text for text in pod.texts() if text != extra]
    # How far a launcher that also speaks for itself has come, lines that are all alike cannot tell.
    assert said == ["step"] * (2 if extra else 3) + ["saved"]
