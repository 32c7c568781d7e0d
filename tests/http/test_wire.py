"""HTTP/1.1 as servers and gateways really write it, byte by byte over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from regatta.engines.kubernetes.api.errors import Unreachable
from regatta.http.dial import Dialler
from regatta.http.wire import Connection
from tests.engines.kubernetes.loops import eventually


@asynccontextmanager
async def answered_with(
    *pieces: bytes, hangs_up: bool = True
) -> AsyncIterator[tuple[Connection, bytearray]]:
    """A connection to a server that reads one request, writes these pieces and hangs up."""
    asked = bytearray()
    served = asyncio.Event()
    leave = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            asked.extend(await reader.readuntil(b"\r\n\r\n"))
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)  # So that pieces arrive one by one.
            if not hangs_up:
                await leave.wait()
            writer.close()
            await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await Dialler(f"http://127.0.0.1:{port}").dial(None)
    try:
        yield connection, asked
    finally:
        leave.set()
        connection.close()
        await served.wait()
        server.close()
        await server.wait_closed()


async def _exchange(*pieces: bytes) -> tuple[int, bytes]:
    async with answered_with(*pieces) as (connection, _):
        head = await connection.send("GET", "/x", [("Host", "a")], b"")
        return head.status, await connection.body(head)


ANSWERS: dict[str, tuple[tuple[bytes, ...], int, bytes]] = {
    "a known length": ((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",), 200, b"ok"),
    "a head in three pieces": (
        (b"HTTP/1.1 20", b"0 OK\r\nContent-Le", b"ngth: 2\r\n\r\no", b"k"),
        200,
        b"ok",
    ),
    "chunks, an extension and trailers": (
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n",
            b"3;x=y\r\nabc\r\nA\r\n0123456789\r\n",
            b"0\r\nX-Trailer: t\r\n\r\n",
        ),
        200,
        b"abc0123456789",
    ),
    "until the connection ends": ((b"HTTP/1.0 200 OK\r\n\r\nall ", b"of it"), 200, b"all of it"),
    "an informational answer first": (
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n",),
        404,
        b"",
    ),
    "no content": ((b"HTTP/1.1 204 No Content\r\n\r\n",), 204, b""),
    "an empty body": ((b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",), 200, b""),
}


@pytest.mark.parametrize("which", ANSWERS)
def test_an_answer_is_read_to_its_end(which: str) -> None:
    pieces, status, body = ANSWERS[which]
    assert asyncio.run(_exchange(*pieces)) == (status, body)


@pytest.mark.parametrize(
    ("pieces", "raised"),
    [
        pytest.param((), asyncio.IncompleteReadError, id="nothing"),
        pytest.param((b"HTTP/1.1 200 OK\r\n",), asyncio.IncompleteReadError, id="half a head"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",),
            asyncio.IncompleteReadError,
            id="half a body",
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",),
            asyncio.IncompleteReadError,
            id="chunks without an end",
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",),
            Unreachable,
            id="a chunk of no size",
        ),
        pytest.param((b"SSH-2.0-OpenSSH_9.2\r\n\r\n",), Unreachable, id="another protocol"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",), Unreachable, id="no number"
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 21),),
            asyncio.LimitOverrunError,
            id="a head without end",
        ),
    ],
)
def test_a_broken_answer_is_never_taken_for_a_whole_one(
    pieces: tuple[bytes, ...], raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        asyncio.run(_exchange(*pieces))


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
    ],
)
def test_a_connection_serves_again_only_where_the_server_says_so(
    answer: bytes, again: bool
) -> None:
    async def scenario() -> None:
        async with answered_with(answer, hangs_up=False) as (connection, _):
            head = await connection.send("GET", "/x", [("Host", "a")], b"")
            assert not connection.usable  # Its answer has not been read yet.
            await connection.body(head)
            assert connection.usable is again

        async with answered_with(answer) as (connection, _):
            head = await connection.send("GET", "/x", [("Host", "a")], b"")
            await connection.body(head)
            await eventually(lambda: not connection.usable)  # It has left in the meantime.

    asyncio.run(scenario())


@pytest.mark.parametrize("pieces", [1, 2], ids=["at once", "a moment later"])
def test_what_nobody_asked_for_is_not_the_next_answer(pieces: int) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    farewell = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"

    async def scenario() -> None:
        written = (answer + farewell,) if pieces == 1 else (answer, farewell)
        async with answered_with(*written, hangs_up=False) as (connection, _):
            await connection.body(await connection.send("GET", "/x", [("Host", "a")], b""))
            await eventually(lambda: not connection.usable)

    asyncio.run(scenario())


def test_a_write_without_a_body_says_so() -> None:
    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        async with answered_with(answer) as (connection, asked):
            await connection.send("POST", "/x?a=b", [("Host", "a"), ("X", "y")], b"")
            assert bytes(asked) == (
                b"POST /x?a=b HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 0\r\n\r\n"
            )

    asyncio.run(scenario())
