"""Finding, starting, guarding and replacing the server."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regatta.daemon.find import answering
from regatta.daemon.server_files import Address, ServerFiles, is_held
from tests.doors import FOREVER, Regatta, eventually, shell_job


def server_pid(regatta: Regatta) -> int:
    return eventually(lambda: answering(regatta.files), "the server").pid


def guardian_pid(regatta: Regatta) -> int:
    """The process that holds the guardian's lock, as the kernel has it."""
    inode = regatta.files.guardian_lock.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "FLOCK" in fields and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return 0


def processes_of(regatta: Regatta) -> list[str]:
    """Command lines of everything that belongs to this state folder's server."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            command = words.decode("utf-8", "replace")
            environment = (folder / "environ").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        home = f"REGATTA_HOME={regatta.environment['REGATTA_HOME']}\0"
        guards = "regatta.daemon.guardian" in command
        if home in environment and "-m regatta.server " in command and not guards:
            found.append(command)
    return found


def test_racing_first_commands_start_exactly_one_server(fresh: Regatta) -> None:
    racers = [fresh.start("get") for _ in range(4)]
    ends = [racer.communicate(timeout=120) for racer in racers]

    assert [racer.returncode for racer in racers] == [0, 0, 0, 0], ends
    assert len(processes_of(fresh)) == 1


def test_a_killed_server_is_restarted_without_any_command(fresh: Regatta) -> None:
    fresh("submit", "-", stdin=shell_job("survivor", "sleep 1; echo still here"))
    first = server_pid(fresh)

    os.kill(first, signal.SIGKILL)

    eventually(lambda: (now := answering(fresh.files)) and now.pid != first, "another server")
    eventually(lambda: fresh.client.get("default", "survivor").finished, "the job's end")
    assert "still here" in fresh("logs", "survivor").out


def test_a_killed_guardian_is_replaced_and_guards(fresh: Regatta) -> None:
    fresh("server", "start")
    server, guardian = server_pid(fresh), guardian_pid(fresh)
    assert guardian

    os.kill(guardian, signal.SIGKILL)
    eventually(lambda: guardian_pid(fresh) not in (0, guardian, server), "another guardian")
    os.kill(server, signal.SIGKILL)

    eventually(lambda: (now := answering(fresh.files)) and now.pid != server, "another server")


def test_a_halted_guardian_makes_way_for_another(fresh: Regatta) -> None:
    assert fresh("get").code == 0
    guardian = guardian_pid(fresh)
    os.kill(guardian, signal.SIGSTOP)
    eventually(lambda: guardian_pid(fresh) not in (0, guardian), "another guardian")


@pytest.mark.parametrize("words", [("get",), ("server", "stop")])
def test_a_halted_guardian_without_a_server_holds_no_command_up(
    fresh: Regatta, words: tuple[str, ...]
) -> None:
    assert fresh("get").code == 0
    guardian, server = guardian_pid(fresh), server_pid(fresh)
    os.kill(server, signal.SIGSTOP)  # or it would see to its guardian itself
    os.kill(guardian, signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    eventually(lambda: answering(fresh.files) is None, "the server's end")
    assert fresh(*words).code == 0
    assert guardian_pid(fresh) != guardian


def test_stop_ends_server_and_guardian_and_leaves_jobs_running(fresh: Regatta) -> None:
    fresh("submit", "-", stdin=shell_job("goes-on", FOREVER))
    assert fresh("wait", "goes-on", "--for", "running").code == 0
    replica = fresh.client.pods("default", "goes-on")[0].pid
    assert replica

    assert fresh("server", "stop").code == 0

    assert not is_held(fresh.files.server_lock)
    assert not is_held(fresh.files.guardian_lock)
    os.kill(replica, 0)
    assert fresh("server", "start").code == 0
    [pod] = fresh.client.pods("default", "goes-on")
    assert (pod.pid, pod.phase) == (replica, "Running")


FOLLOWERS = [["run", "job.yaml"], ["logs", "-f", "followed"], ["get", "--watch"]]


@pytest.mark.parametrize("words", FOLLOWERS, ids=lambda words: words[0])
def test_a_stopped_server_is_not_started_again_by_who_follows_a_job(
    fresh: Regatta, words: list[str]
) -> None:
    fresh.write(shell_job("followed", FOREVER))
    if words[0] != "run":
        assert fresh("submit", "job.yaml").code == 0
    follower = fresh.start(*words)
    assert follower.stdout is not None
    first = "followed" if words[0] == "get" else "up"
    eventually(lambda: first in follower.stdout.readline(), "the first line")

    assert fresh("server", "stop").code == 0

    _, err = follower.communicate(timeout=60)
    assert follower.returncode == 5
    assert "the server was stopped" in err
    assert "regatta logs -f" in err
    assert not is_held(fresh.files.guardian_lock)
    assert fresh("delete", "followed").code == 0


def test_who_follows_a_job_stays_while_a_server_hands_over(fresh: Regatta) -> None:
    fresh("submit", "-", stdin=shell_job("followed", "echo up; sleep 4; echo down"))
    follower = fresh.start("logs", "-f", "followed")
    assert follower.stdout is not None
    eventually(lambda: "up" in follower.stdout.readline(), "the first line")
    old = fresh.address
    # As a server of an earlier version would have written it.
    fresh.files.write(Address(url=old.url, pid=old.pid, version="0.0.1"))

    assert fresh("get").code == 0

    out, err = follower.communicate(timeout=60)
    assert follower.returncode == 0, err
    assert "down" in out
    assert fresh.address.pid != old.pid


@pytest.mark.parametrize("victim", ["server", "guardian"])
def test_a_polite_signal_ends_both(fresh: Regatta, victim: str) -> None:
    fresh("server", "start")
    pid = server_pid(fresh) if victim == "server" else guardian_pid(fresh)

    os.kill(pid, signal.SIGTERM)

    eventually(lambda: not is_held(fresh.files.guardian_lock), "the guardian's end")
    eventually(lambda: not is_held(fresh.files.server_lock), "the server's end")


def test_a_server_that_hangs_is_named_by_every_command_with_the_way_to_end_it(
    fresh: Regatta,
) -> None:
    fresh("server", "start")
    pid = server_pid(fresh)
    os.kill(pid, signal.SIGSTOP)
    try:
        lines = (["get"], ["logs", "any"], ["server", "stop"], ["version"])
        asked = [fresh.start(*words) for words in lines]  # together: each waits for an answer
        said = [command.communicate(timeout=120)[1] for command in asked]
    finally:
        os.kill(pid, signal.SIGCONT)

    assert [command.returncode for command in asked] == [5] * len(asked), said
    for words in said:
        assert f"the server (process {pid}) runs but does not answer" in words
        assert f"`kill -9 {pid}` ends it" in words


def test_killing_a_server_that_hangs_is_all_it_takes(fresh: Regatta) -> None:
    fresh("server", "start")
    pid = server_pid(fresh)
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)

    assert fresh("get").code == 0
    assert server_pid(fresh) != pid


def test_an_old_server_hands_over_to_a_newer_client(fresh: Regatta) -> None:
    fresh("submit", "-", stdin=shell_job("handed-over", FOREVER))
    fresh("wait", "handed-over", "--for", "running")
    old = fresh.files.read()
    assert old is not None
    # As a server of an earlier version would have written it.
    fresh.files.write(Address(url=old.url, pid=old.pid, version="0.0.1"))

    assert fresh("get").code == 0

    new = fresh.files.read()
    assert new is not None
    assert new.pid != old.pid
    assert new.version != "0.0.1"
    assert fresh.client.get("default", "handed-over").status.phase == "Running"


def test_a_newer_server_is_left_alone(fresh: Regatta) -> None:
    fresh("server", "start")
    old = fresh.files.read()
    assert old is not None
    fresh.files.write(Address(url=old.url, pid=old.pid, version="999.0"))

    assert fresh("get").code == 0

    assert server_pid(fresh) == old.pid


def test_a_stranger_on_the_old_port_never_sees_the_token(fresh: Regatta, tmp_path: Path) -> None:
    """The server died, and its port was given to somebody else."""
    seen: list[str | None] = []

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ok", "pid": 1}')

        def log_message(self, *_: object) -> None: ...

    fresh("server", "start")
    fresh("server", "stop")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{stranger.server_address[1]}"
        fresh.files.write(Address(url=url, pid=os.getpid(), version="0.1.0"))

        assert fresh("get").code == 0
        stranger.shutdown()

    assert seen
    assert set(seen) <= {None, "Bearer "}
    assert fresh.address.url != url


def test_submit_into_a_pipe_does_not_wait_for_the_server(fresh: Regatta) -> None:
    """The server that a command starts must not hold the command's output open."""
    command = " ".join(fresh.command("submit", fresh.write(shell_job("piped", FOREVER))))

    done = subprocess.run(
        ["sh", "-c", f"{command} | cat"],
        capture_output=True,
        text=True,
        timeout=60,
        env=fresh.environment,
        cwd=fresh.folder,
    )

    assert "job piped submitted" in done.stdout


def test_a_server_that_cannot_start_says_why(fresh: Regatta) -> None:
    fresh("server", "start")
    fresh("server", "stop")
    (fresh.files.folder / "regatta.db").write_bytes(b"this is not a database, and long enough" * 99)

    said = fresh("get")

    (fresh.files.folder / "regatta.db").unlink()
    assert said.code == 5
    assert "server.log" in said.err
    assert "Traceback" not in said.err.splitlines()[0]


def test_serve_runs_in_the_foreground_and_refuses_a_second(fresh: Regatta) -> None:
    serving = fresh.start("serve")
    assert serving.stdout is not None
    try:
        assert serving.stdout.readline().startswith("serving http://127.0.0.1:")
        assert fresh("get").code == 0
        second = fresh("serve")
        assert second.code == 4
        assert "regatta server stop" in second.err
        serving.send_signal(signal.SIGINT)
        assert serving.wait(60) == 0
    finally:
        serving.kill()
        serving.communicate()


def test_the_token_is_the_same_for_all_who_make_it_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from regatta.daemon.server_files import ServerFiles; "
        "print(ServerFiles(Path(sys.argv[1])).token())"
    )
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]

    tokens = {maker.communicate(timeout=60)[0] for maker in makers}

    assert len(tokens) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["server.token"]
    assert ServerFiles(tmp_path).token() == tokens.pop().strip()


def test_an_empty_token_opens_nothing(fresh: Regatta) -> None:
    assert fresh("server", "start").code == 0
    assert fresh("server", "stop").code == 0
    fresh.files.token_file.write_text("")

    said = fresh("get")

    assert said.code == 5
    assert "is empty; remove it: the next server makes another" in said.err
    fresh.files.token_file.unlink()
    assert fresh("get").code == 0
