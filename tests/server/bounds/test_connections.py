"""Strangers on the port: they hold little, not for long, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import select
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from regatta.server.bounds import connections
from regatta.server.bounds.connections import BoundedConnection, Seldom, Strangers, stay_calm
from tests.doors import Regatta, eventually, shell_job

HALF = b"GET /regatta/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
EMPTY = [(b"content-length", b"0")]
HALF_A_BODY = b"POST /known HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
KNOWN = b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n"


def start_with(regatta: Regatta, limit: str) -> None:
    command = " ".join(regatta.command("server", "start"))
    done = subprocess.run(
        ["bash", "-c", f"ulimit {limit}; {command}"], env=regatta.environment, capture_output=True
    )
    assert done.returncode == 0, done


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextmanager
def many_files(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        pytest.skip(f"this machine allows {hard} open files, and the test needs {count}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_two_thousand_half_requests_keep_nobody_out(fresh: Regatta) -> None:
    start_with(fresh, "-n 1024")
    server = fresh.address.pid
    with many_files(4096), ExitStack() as strangers:
        place = urlsplit(fresh.address.url).netloc.split(":")
        ends = []
        for _ in range(2000):
            end = strangers.enter_context(socket.socket())
            end.connect((place[0], int(place[1])))
            with contextlib.suppress(ConnectionError):  # it may be turned out already
                end.sendall(HALF)
            ends.append(end)

        for _ in range(3):
            assert fresh("get").code == 0

        assert open_files(server) < 512
        assert fresh.files.log.stat().st_size < 64 * 1024
        # And nobody stays for ever.
        eventually(lambda: open_files(server) < 100, "the strangers to be turned out")
        assert fresh.address.pid == server


def is_answered(end: socket.socket) -> bool:
    return bool(select.select([end], [], [], 0)[0])


def says_it_waits(regatta: Regatta) -> bool:
    return "a connection waits" in regatta.files.log.read_text()


def test_a_server_that_can_open_no_more_files_says_it_seldom_and_goes_on(fresh: Regatta) -> None:
    start_with(fresh, "-n 128")
    server = fresh.address.pid
    watching = (
        "GET /regatta/v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {fresh.files.token()}\r\n\r\n"
    ).encode()
    with ExitStack() as owners:
        place = urlsplit(fresh.address.url).netloc.split(":")
        for _ in range(150):
            end = owners.enter_context(socket.socket())
            end.connect((place[0], int(place[1])))
            end.sendall(watching)
            # One by one: of many strangers at once the oldest are turned out.
            eventually(lambda end=end: is_answered(end) or says_it_waits(fresh), "an answer")
            if says_it_waits(fresh):
                break
        else:
            pytest.fail("150 connections stand where 128 files may be open")

    eventually(lambda: open_files(server) < 100, "room")
    assert fresh("get").code == 0
    assert fresh.files.log.read_text().count("a connection waits") < 5
    assert fresh.files.log.stat().st_size < 64 * 1024


def test_a_replica_may_open_as_many_files_as_the_server_was_given(fresh: Regatta) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    start_with(fresh, "-S -n 300")

    assert fresh("run", "-", stdin=shell_job("limited", "ulimit -n")).code == 0

    assert "300" in fresh("logs", "limited").out
    limits = Path(f"/proc/{fresh.address.pid}/limits").read_text()
    assert f"Max open files            {hard}" in limits


async def answer_whole_requests(scope: Any, receive: Any, send: Any) -> None:
    """Who asks for /known is known, and /slow takes longer than a request may."""
    if scope["path"] == "/known":
        scope["state"]["admit"]()
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5)
    await send({"type": "http.response.start", "status": 200, "headers": EMPTY})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def a_small_server(strangers: Strangers, app: Any = answer_whole_requests) -> Iterator[int]:
    kind: Any = partial(BoundedConnection, strangers)
    server = uvicorn.Server(
        uvicorn.Config(app, http=kind, lifespan="off", log_config=None, timeout_keep_alive=600)
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=server.run, args=[[listener]])
        serving.start()
        try:
            eventually(lambda: server.started, "the server")
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            serving.join()


def until_hung_up(end: socket.socket) -> bytes:
    said = b""
    try:
        while got := end.recv(65536):
            said += got
    except ConnectionResetError:
        pass
    return said


def answers(end: socket.socket) -> bool:
    end.sendall(KNOWN)
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        said += end.recv(65536)
    return said.startswith(b"HTTP/1.1 200")


def dialled(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


SLOW = {
    "silence": b"",
    "half a request": HALF,
    "half of the next request": KNOWN + HALF,
    "half of a body": HALF_A_BODY,
    "half of the next request's body": KNOWN + HALF_A_BODY,
}


@pytest.mark.parametrize("case", SLOW)
def test_who_says_no_more_is_turned_out(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    strangers = Strangers(1024)

    with a_small_server(strangers) as port, dialled(port) as end:
        end.sendall(SLOW[case])
        answer = until_hung_up(end)

    assert answer.startswith(b"HTTP/1.1 200") == case.startswith("half of the next")
    assert len(strangers) == 0


def test_a_body_that_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 600.0)
    monkeypatch.setattr(connections, "WHOLE_BODY_SECONDS", 0.2)
    drip = b"POST /known HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"

    with a_small_server(Strangers(1024)) as port, dialled(port) as end:
        end.sendall(drip)

        def hung_up() -> bool:
            try:
                end.sendall(b"x")
            except OSError:
                return True
            return is_answered(end) and until_hung_up(end) == b""

        eventually(hung_up, "the server to hang up")


def test_a_slow_line_gets_its_body_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WHOLE_BODY_SECONDS", 0.2)
    monkeypatch.setattr(connections, "SLOWEST_RATE", 1024)
    head = b"POST /known HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n"

    with a_small_server(Strangers(1024)) as port, dialled(port) as end:
        end.sendall(head + b"x" * 100_000)
        with dialled(port) as dripping:  # until whose end it has waited, too
            dripping.sendall(head)
            assert until_hung_up(dripping) == b""
        end.sendall(b"x")
        assert end.recv(65536).startswith(b"HTTP/1.1 200")


def test_who_waits_for_us_is_answered_and_then_turned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a sign-in does whose database is locked: it is told so."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 1.0)
    strangers = Strangers(1024)

    with a_small_server(strangers) as port, dialled(port) as end:
        end.sendall(KNOWN.replace(b"/known", b"/slow"))
        assert until_hung_up(end).startswith(b"HTTP/1.1 200")

    assert len(strangers) == 0


def test_the_oldest_stranger_makes_room_and_who_is_known_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 600.0)
    strangers = Strangers(8)  # a quarter of these files: two strangers
    with a_small_server(strangers) as port, ExitStack() as stack:
        known = stack.enter_context(dialled(port))
        assert answers(known)
        oldest, second, third = (stack.enter_context(dialled(port)) for _ in range(3))

        assert until_hung_up(oldest) == b""

        for end in (known, second, third):
            assert answers(end)


def test_half_requests_hold_so_much_memory_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 100)
    with a_small_server(Strangers(1024)) as port, dialled(port) as end:
        end.sendall(HALF + b"x" * 200)
        assert until_hung_up(end) == b""


LONG = 16 * 1024 * 1024


class Answering:
    """An app whose answers are longer than what the system keeps for a client, but for /stream:
    that says something at once, and the rest when it is told to."""

    def __init__(self) -> None:
        self.begun, self.over, self.go_on = 0, 0, threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["admit"]()
        self.begun += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"so far", "more_body": True})
            await asyncio.to_thread(self.go_on.wait, 60)
            await send({"type": "http.response.body", "body": b", so good"})
        else:
            await send({"type": "http.response.body", "body": b"x" * LONG})
        self.over += 1


def asking(stack: ExitStack, port: int, path: str) -> socket.socket:
    """With little room for what is answered."""
    end = stack.enter_context(socket.socket())
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    end.settimeout(60)
    end.connect(("127.0.0.1", port))
    end.sendall(b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
    return end


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    monkeypatch.setattr(connections, "TAKING_SECONDS", 2.0)
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 1.0)
    return Answering()


def test_who_takes_nothing_of_an_answer_is_cut_off(answering: Answering) -> None:
    with a_small_server(Strangers(1024), answering) as port, ExitStack() as ends:
        end = asking(ends, port, "/")
        eventually(lambda: answering.begun, "the answer to begin")
        eventually(lambda: answering.over, "the server to give it up")

        assert len(until_hung_up(end)) < LONG


def test_who_takes_an_answer_slowly_and_steadily_gets_all_of_it(answering: Answering) -> None:
    with a_small_server(Strangers(1024), answering) as port, ExitStack() as ends:
        slow = asking(ends, port, "/")
        said = slow.recv(4096)
        asking(ends, port, "/")  # reads nothing: until whose end it has waited, too

        def read_some_until_one_is_cut_off() -> bool:
            nonlocal said
            said += slow.recv(4096)
            return answering.over > 0

        eventually(read_some_until_one_is_cut_off, "the other to be cut off")
        assert len(said) < LONG // 2
        said += until_hung_up(slow)
        assert said.count(b"x") == LONG
        eventually(lambda: answering.over == 2, "its end")


def test_a_stream_that_has_nothing_to_say_is_not_cut_off(answering: Answering) -> None:
    with a_small_server(Strangers(1024), answering) as port, ExitStack() as ends:
        silent = asking(ends, port, "/stream")
        asking(ends, port, "/")
        eventually(lambda: answering.over, "the one who takes nothing to be cut off")

        answering.go_on.set()
        said = until_hung_up(silent)
        assert b"so far" in said
        assert b", so good" in said


def test_the_same_words_are_logged_now_and_then_only() -> None:
    seldom = Seldom()

    def said(words: str) -> bool:
        return seldom.filter(logging.LogRecord("x", logging.INFO, "", 0, words, None, None))

    assert [said("a"), said("b"), said("a")] == [True, True, False]


def test_other_trouble_is_told_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        stay_calm(loop, Strangers(1024))
        loop.call_exception_handler({"message": "something else", "exception": OSError(5, "odd")})

    asyncio.run(scene())
    assert "something else" in caplog.text
