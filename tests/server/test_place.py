"""Whatever is removed of a server's files while it runs: it can be found, or it is gone."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from regatta.daemon.find import answering
from regatta.daemon.server_files import ServerFiles, is_held
from regatta.server.place import LARGEST_LOG, bound_log
from tests.doors import FOREVER, Regatta, eventually, shell_job


def is_gone(pid: int) -> bool:
    """Or a zombie, where nobody collects orphans."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def holder(lock: Path) -> int:
    """The process that holds this lock, as the kernel has it."""
    inode = lock.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "FLOCK" in fields and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return 0


def test_a_removed_state_folder_takes_server_and_guardian_along(fresh: Regatta) -> None:
    assert fresh("server", "start").code == 0
    server, guardian = fresh.address.pid, holder(fresh.files.guardian_lock)
    assert guardian

    shutil.rmtree(fresh.environment["REGATTA_HOME"])

    eventually(lambda: is_gone(server), "the server's end")
    eventually(lambda: is_gone(guardian), "the guardian's end")
    assert not Path(fresh.environment["REGATTA_HOME"]).exists()


def test_a_removed_state_folder_takes_its_replicas_along(fresh: Regatta) -> None:
    fresh("submit", "-", stdin=shell_job("orphan", FOREVER))
    assert fresh("wait", "orphan", "--for", "running").code == 0
    replica = fresh.client.pods("default", "orphan")[0].pid
    assert replica

    def removed() -> bool:
        """What is being written to may take more than one try."""
        shutil.rmtree(fresh.environment["REGATTA_HOME"], ignore_errors=True)
        return not Path(fresh.environment["REGATTA_HOME"]).exists()

    eventually(removed, "the folder to be gone")
    eventually(lambda: is_gone(replica), "the replica's end")
    assert not Path(fresh.environment["REGATTA_HOME"]).exists()


def test_a_state_folder_made_anew_at_once_is_another_servers(fresh: Regatta) -> None:
    assert fresh("server", "start").code == 0
    former = fresh.address.pid
    shutil.rmtree(fresh.environment["REGATTA_HOME"])

    assert fresh("get").code == 0

    eventually(lambda: is_gone(former), "the former server's end")
    now = answering(fresh.files)
    assert now is not None
    assert now.pid != former


@pytest.mark.parametrize("file", ["server.json", "server.token"])
@pytest.mark.parametrize("words", [["get"], ["server", "status"], ["server", "stop"]])
def test_a_removed_file_locks_nobody_out(fresh: Regatta, file: str, words: list[str]) -> None:
    assert fresh("server", "start").code == 0
    before = fresh.address.pid
    (fresh.files.folder / file).unlink()

    said = fresh(*words)

    assert said.code == 0, said
    if words[-1] == "stop":
        assert "has stopped" in said.out
        assert is_gone(before)
    else:
        assert fresh.address.pid == before


@pytest.mark.parametrize("file", ["server.json", "server.token"])
def test_a_removed_file_is_written_again_without_any_command(fresh: Regatta, file: str) -> None:
    assert fresh("server", "start").code == 0
    path = fresh.files.folder / file
    path.unlink()

    eventually(path.exists, f"{file} again")


def test_the_token_of_a_file_that_was_removed_opens_nothing_any_more(fresh: Regatta) -> None:
    assert fresh("server", "start").code == 0
    url, leaked = fresh.address.url, fresh.files.token()
    fresh.files.token_file.unlink()

    def refused() -> bool:
        return fresh("--server", url, "get", REGATTA_TOKEN=leaked).code == 5

    eventually(refused, "the old token to be refused")
    assert fresh("--server", url, "get", REGATTA_TOKEN=fresh.files.token()).code == 0


def test_without_its_lock_a_server_makes_way_for_another(fresh: Regatta) -> None:
    assert fresh("server", "start").code == 0
    former = fresh.address.pid
    fresh.files.server_lock.unlink()

    eventually(lambda: (now := answering(fresh.files)) and now.pid != former, "another server")

    assert is_held(fresh.files.server_lock)
    eventually(lambda: is_gone(former), "the former server's end")


@pytest.mark.parametrize("files", [["regatta.db"], ["regatta.db-wal"], ["regatta.db", "*-wal"]])
def test_a_removed_database_is_written_again(fresh: Regatta, files: list[str]) -> None:
    fresh("submit", "-", stdin=shell_job("kept", FOREVER))
    assert fresh("wait", "kept", "--for", "running").code == 0
    server, replica = fresh.address.pid, fresh.client.pods("default", "kept")[0].pid
    for pattern in files:
        for file in fresh.files.folder.glob(pattern):
            file.unlink()

    assert fresh("submit", "-", stdin=shell_job("later")).code == 0
    assert fresh("wait", "later").code == 0

    assert fresh.address.pid == server
    with sqlite3.connect(fresh.files.folder / "regatta.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert fresh("server", "stop").code == 0
    assert fresh("server", "start").code == 0
    assert [job.name for job in fresh.client.list()] == ["kept", "later"]
    assert [pod.pid for pod in fresh.client.pods("default", "kept")] == [replica]
    assert "writing it again" in fresh.files.log.read_text()


def test_a_database_removed_just_before_the_server_stops_is_kept(fresh: Regatta) -> None:
    fresh("submit", "-", stdin=shell_job("kept"))
    assert fresh("wait", "kept").code == 0
    (fresh.files.folder / "regatta.db").unlink()

    assert fresh("server", "stop").code == 0

    assert "kept" in fresh("get").out


def test_another_database_in_place_of_the_one_in_use_is_refused_with_what_helps(
    fresh: Regatta,
) -> None:
    fresh("submit", "-", stdin=shell_job("former"))
    assert fresh("wait", "former").code == 0
    sqlite3.connect(fresh.folder / "other.db").close()
    (fresh.folder / "other.db").replace(fresh.files.folder / "regatta.db")

    said = fresh("submit", "-", stdin=shell_job("later"))

    assert said.code != 0
    assert "`regatta server stop`" in said.err
    assert fresh("server", "stop").code == 0
    assert "former" not in fresh("get").out


def test_a_log_that_was_removed_goes_on_in_a_new_one(fresh: Regatta) -> None:
    assert fresh("server", "start").code == 0
    fresh.files.log.unlink()
    eventually(fresh.files.log.exists, "another log")
    fresh.files.address.unlink()

    eventually(lambda: "writing it again" in fresh.files.log.read_text(), "words in it")


def test_a_log_that_grows_is_bounded(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    log = files.open_log()
    os.write(log, b"before\n")
    bound_log(files)
    assert files.log.read_bytes() == b"before\n"

    os.write(log, b"x" * LARGEST_LOG)
    bound_log(files)
    os.write(log, b"after\n")
    os.close(log)

    assert files.log.read_bytes() == b"after\n"
    assert files.log.with_name("server.log.1").read_bytes().startswith(b"before\nxxx")
