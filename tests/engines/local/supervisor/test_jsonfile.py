"""What the engine is told of a run that lives comes late where there is no room, and it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from regatta.engines.local.replicas.runspec import BackOff
from regatta.engines.local.replicas.runtime import RunPhase
from regatta.engines.local.supervisor import jsonfile
from regatta.engines.local.supervisor.jsonfile import AGAIN_SECONDS, Reserve, Telling
from tests.engines.local.runs import AT_ONCE, Pod, eventually, shell
from tests.full_disks import KINDS, a_small_disk


def until_there(path: Path) -> str:
    return f"until [ -e {path} ]; do sleep 0.02; done"


def no_room_for(file: Path) -> Path:
    """Nothing can be written there until what this makes is removed."""
    taken = file.with_name(file.name + ".new")
    taken.mkdir(parents=True)
    return taken


def test_a_start_that_could_not_be_told_is_told_when_it_can(pod: Pod) -> None:
    taken = no_room_for(pod.run / "state.json")
    pod.start(shell("echo up $$; sleep 600"))
    pod.says("up")
    assert pod.state().phase is RunPhase.STARTING
    taken.rmdir()
    state = pod.reaches(RunPhase.RUNNING)
    assert [f"up {state.pid}"] == pod.texts()
    assert state.started_at is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_on_a_full_disk_is_told_once_there_is_room(
    pod: Pod, tmp_path: Path, kind: str
) -> None:
    go, up = tmp_path / "go", tmp_path / "up"
    with a_small_disk(pod.folder, kind, "4m") as disk:
        fetch = shell(until_there(go), name="fetch")
        pod.start(shell(f"touch {up}; sleep 600"), init=(fetch,))
        eventually(lambda: pod.state().in_init)
        disk.fill()
        go.touch()
        eventually(up.exists)
        disk.make_room()
        state = pod.reaches(RunPhase.RUNNING)
        assert not state.in_init
        pod.runtime.stop(pod.run, 0)
        pod.ended()


def test_of_all_that_could_not_be_told_the_newest_is_told(pod: Pod, tmp_path: Path) -> None:
    """After an init container, and two restarts in place."""
    go, tries = tmp_path / "go", tmp_path / "tries"
    main = f"echo $$ >> {tries}; [ $(wc -l < {tries}) -eq 3 ] || exit 1; exec sleep 600"
    fetch = shell(until_there(go), name="fetch")
    pod.start(shell(main), init=(fetch,), restart_policy="OnFailure", back_off=AT_ONCE)
    eventually(lambda: pod.state().in_init)
    taken = no_room_for(pod.run / "state.json")
    go.touch()
    eventually(lambda: tries.exists() and tries.read_text().count("\n") == 3)
    taken.rmdir()
    state = pod.reaches(RunPhase.RUNNING)
    assert state.restarts == 2
    assert state.pid == int(tries.read_text().split()[-1])


def test_one_that_waits_to_restart_tells_so_when_it_can(pod: Pod) -> None:
    taken = no_room_for(pod.run / "state.json")
    an_hour = BackOff(base_seconds=3600.0, limit_seconds=3600.0)
    pod.start(shell("echo tried; exit 1"), restart_policy="Always", back_off=an_hour)
    eventually(lambda: pod.texts().count("tried") == 2)
    pod.says("restart 2 in 3600 s")
    taken.rmdir()
    waiting = eventually(lambda: s if (s := pod.state()).waiting else None)
    assert (waiting.restarts, waiting.pid) == (2, None)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that somebody tried to write."""
    names: list[str] = []
    write: Callable[..., None] = jsonfile.write

    def note(path: str, value: dict[str, object]) -> None:
        names.append(Path(path).name)
        write(path, value)

    monkeypatch.setattr(jsonfile, "write", note)
    return names


def test_what_is_owed_is_tried_now_and_then_and_nothing_else(
    tmp_path: Path, tried: list[str]
) -> None:
    told, taken = Telling(str(tmp_path)), no_room_for(tmp_path / "left.json")
    now = time.monotonic()
    told.tell("state.json", {"restarts": 1})
    assert told.look(now + 100) is None
    told.tell("left.json", {"1": 2})
    assert told.look(now) is not None
    assert tried == ["state.json", "left.json"]
    assert told.look(now + 100) == AGAIN_SECONDS
    taken.rmdir()
    assert told.look(now + 100 + AGAIN_SECONDS / 4) == AGAIN_SECONDS * 3 / 4
    assert tried == ["state.json", "left.json", "left.json"]
    assert told.look(now + 200) is None
    assert told.look(now + 300) is None
    assert tried == ["state.json", "left.json", "left.json", "left.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.json", "state.json"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_owed_at_the_end_has_room_of_its_own(tmp_path: Path, kind: str) -> None:
    with a_small_disk(tmp_path / "run", kind, "4m") as disk:
        reserve = Reserve(str(disk.path / "exit.json"))
        told = Telling(str(disk.path))
        disk.fill()
        told.tell("left.json", {"1": 2})
        assert not (disk.path / "left.json").exists()
        told.look_again(reserve)
        assert jsonfile.read(str(disk.path / "left.json")) == {"1": 2}
        disk.fill()
        reserve.spend({"message": "x" * 4096 * 6})
        assert jsonfile.read(str(disk.path / "exit.json")) == {"message": "x" * 4096 * 6}
