"""Where a replica's lines come from besides its pipes: the files of Paddle's launcher."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from regatta.engines.local.supervisor import sources
from regatta.engines.local.supervisor.sources import MOST_ENTRIES, MOST_FILES, Echo, LauncherFiles
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


def test_one_end_waits_for_files_once_however_often_it_looks(
    files: LauncherFiles, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "FINISH_SECONDS", -1.0)  # over before it begins
    files.begin()
    workers_say(folder, "late", [1])
    files.finish()
    monkeypatch.setattr(sources, "FINISH_SECONDS", 60.0)
    files.finish()
    assert read_back(tmp_path) == ["workerlog.1 was too long to be read to its end"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "paddle"
    folder.mkdir()
    return folder


@pytest.fixture
def files(tmp_path: Path, folder: Path) -> Iterator[LauncherFiles]:
    """Of a pump whose lines `read_back` gives."""
    pump, segments = pump_into(tmp_path, 1 << 20)
    yield LauncherFiles(pump, [str(folder)], Echo())
    segments.close()


def workers_say(folder: Path, what: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        with (folder / f"workerlog.{number}").open("a") as file:
            file.write(f"{what}\n")


def ranks_in(texts: list[str], what: str) -> set[int]:
    return {int(text[1:].partition("]")[0]) for text in texts if text.endswith(f"] {what}")}


TOO_MANY = (
    f"there are more than {MOST_FILES} of the launcher's files (workerlog.N): "
    f"{MOST_FILES} are read, the lowest numbers first, and the others are not"
)
TOO_FULL = (
    f"the folder of the launcher's files has more than {MOST_ENTRIES} entries: "
    f"of workerlog.N only numbers up to {MOST_FILES} are looked for from here on"
)


def test_so_many_files_as_a_launcher_makes_are_read(
    files: LauncherFiles, folder: Path, tmp_path: Path
) -> None:
    workers_say(folder, "up", range(MOST_FILES + 1))  # number 0 is on its stdout
    files.read()
    texts = read_back(tmp_path)
    assert ranks_in(texts, "up") == set(range(1, MOST_FILES + 1))
    assert len(texts) == MOST_FILES


def test_of_more_files_the_lowest_numbers_are_read_and_that_is_said_once(
    files: LauncherFiles, folder: Path, tmp_path: Path
) -> None:
    workers_say(folder, "up", range(3 * MOST_FILES))
    files.read()
    workers_say(folder, "step", range(3 * MOST_FILES))
    files.finish()
    texts = read_back(tmp_path)
    for said in ("up", "step"):
        assert ranks_in(texts, said) == set(range(1, MOST_FILES + 1))
    assert texts.count(TOO_MANY) == 1


def test_a_file_that_was_read_is_read_on_and_others_do_not_take_its_place(
    files: LauncherFiles, folder: Path, tmp_path: Path
) -> None:
    first = range(MOST_FILES, 2 * MOST_FILES)
    workers_say(folder, "up", first)
    files.read()
    workers_say(folder, "instead", range(1, MOST_FILES))
    files.read()
    workers_say(folder, "again", first)
    files.read()
    texts = read_back(tmp_path)
    assert ranks_in(texts, "up") == ranks_in(texts, "again") == set(first)
    assert ranks_in(texts, "instead") == set()


def test_in_a_folder_of_too_many_entries_the_lowest_numbers_are_found(
    files: LauncherFiles, folder: Path, tmp_path: Path
) -> None:
    for number in range(2 * MOST_ENTRIES):
        (folder / f"workerlog.{MOST_FILES + number}").touch()
    workers_say(folder, "up", (1, 2, MOST_FILES, MOST_FILES + 1))
    files.read()
    files.read()
    texts = read_back(tmp_path)
    assert ranks_in(texts, "up") == {1, 2, MOST_FILES}
    assert texts.count(TOO_FULL) == 1
    assert TOO_MANY not in texts


class Listed:
    """How often a folder was listed, and how many of its entries were asked for."""

    def __init__(self) -> None:
        self.times = self.entries = 0

    def scandir(self, path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        self.times += 1
        return contextmanager(self._count)(path)

    def _count(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with SCANDIR(path) as entries:
            yield map(self._one, entries)

    def _one(self, entry: os.DirEntry[str]) -> os.DirEntry[str]:
        self.entries += 1
        return entry


SCANDIR = os.scandir


def test_a_folder_is_listed_the_more_seldom_the_fuller_it_is_and_never_to_its_end(
    files: LauncherFiles, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, now = Listed(), time.monotonic()
    monkeypatch.setattr(sources.os, "scandir", listed.scandir)
    workers_say(folder, "up", range(4))
    files.look(now)
    files.look(now + 0.5)
    assert listed.times == 2
    for number in range(2 * MOST_ENTRIES):
        (folder / f"other.{number}").touch()
    files.look(now + 1.0)
    assert listed.times == 3
    listed.entries = 0
    for seconds in range(1, 41):
        files.look(now + 1.0 + seconds / 2)
    assert 0 < listed.times - 3 <= 5
    assert listed.entries <= (listed.times - 3) * (MOST_ENTRIES + 1)


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
