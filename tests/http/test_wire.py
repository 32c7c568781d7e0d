"""Requests and the heads of their answers, as servers and gateways really write them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from regatta.http.dial import Dialler
from regatta.http.failures import Broken, HttpError, NotHttp
from regatta.http.wire import MOST_HEAD, Connection, Head
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.http.peer import OK, Peer, Script, Talk, a_peer, answering, half_close, hang_up

HOST = [("Host", "a")]


@asynccontextmanager
async def connected(script: Script) -> AsyncIterator[tuple[Connection, Peer]]:
    async with a_peer(script) as peer:
        connection = await Dialler(peer.url).dial()
        try:
            yield connection, peer
        finally:
            connection.close()


async def ask(connection: Connection, method: str = "GET") -> tuple[Head, bytes]:
    head = await connection.send(method, "/x", HOST)
    return head, await connection.body(head)


async def asked(answer: bytes | Iterable[bytes], method: str = "GET") -> tuple[Head, bytes]:
    """The answer of a server that writes this and hangs up."""
    async with connected(answering(answer, then=hang_up)) as (connection, _):
        return await ask(connection, method)


# What is sent


@in_a_loop
async def test_a_request_is_sent_as_it_was_given() -> None:
    heard: list[bytes] = []

    async def listen(talk: Talk) -> None:
        for _ in range(3):
            heard.append(await talk.request())
            await talk.say(OK)

    async with connected(listen) as (connection, _):
        for method, body in (("GET", b""), ("POST", b""), ("PATCH", b"{}")):
            head = await connection.send(method, "/x?a=b", [*HOST, ("X", "y")], body)
            await connection.body(head)
    assert heard == [
        b"GET /x?a=b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
        # A write without a body says so.
        b"POST /x?a=b HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 0\r\n\r\n",
        b"PATCH /x?a=b HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 2\r\n\r\n{}",
    ]


@pytest.mark.parametrize(
    ("target", "header"),
    [("/x\r\nX: y", "z"), ("/x", "z\r\nX: y"), ("/x", "z\nX: y"), ("/x", "z\rX: y")],
)
@in_a_loop
async def test_nobody_smuggles_a_line_into_a_request(target: str, header: str) -> None:
    async with connected(answering(OK)) as (connection, _):
        with pytest.raises(ValueError, match="cannot hold line breaks"):
            await connection.send("GET", target, [("Host", header)])


@in_a_loop
async def test_a_server_may_refuse_a_large_request_before_it_has_read_it() -> None:
    async def refuse(talk: Talk) -> None:
        await talk.reader.readuntil(b"\r\n\r\n")
        await talk.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        # It neither reads on nor hangs up.
        await asyncio.Event().wait()

    async with connected(refuse) as (connection, _):
        head = await connection.send("POST", "/x", HOST, b"x" * (64 << 20))
        assert (head.status, await connection.body(head)) == (413, b"no")
        assert not connection.usable  # Half a request lies on the wire.


# What is read


HEADS: dict[str, tuple[bytes, int, dict[str, str]]] = {
    "no phrase": (b"HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", 404, {}),
    "an empty phrase": (b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", 404, {}),
    "a header twice": (
        b"HTTP/1.1 200 OK\r\nWarning: one\r\nContent-Length: 0\r\nwarning: two\r\n\r\n",
        200,
        {"warning": "one, two"},
    ),
    "values with spaces, colons and nothing": (
        b"HTTP/1.1 200 OK\r\nA:  b: c \r\nB:\r\nContent-Length: 0\r\n\r\n",
        200,
        {"a": "b: c", "b": ""},
    ),
    "an informational answer first": (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 None\r\nX: y\r\n\r\n",
        204,
        {"x": "y"},
    ),
    "several informational answers first": (
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5 + b"HTTP/1.1 204 None\r\nX: y\r\n\r\n",
        204,
        {"x": "y"},
    ),
    "64 KiB": (
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (64 << 10) + b"\r\nContent-Length: 0\r\n\r\n",
        200,
        {"x": "x" * (64 << 10)},
    ),
}


@pytest.mark.parametrize("which", HEADS)
@in_a_loop
async def test_a_head_is_understood(which: str) -> None:
    text, status, headers = HEADS[which]
    head, body = await asked(text)
    assert (head.status, body) == (status, b"")
    assert {name: head.headers.get(name) for name in headers} == headers


NONSENSE = {
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "another version": b"HTTP/2 200\r\n\r\n",
    "a status that is no number": b"HTTP/1.1 OK 200\r\n\r\n",
    "a status of four figures": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a status of nought": b"HTTP/1.1 000 OK\r\n\r\n",
    "a header without a colon": b"HTTP/1.1 200 OK\r\nContent-Length 0\r\n\r\n",
    "a header of two lines": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a space before a colon": b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
    "another protocol from here on": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
    "a length that is no number": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a length in odd figures": b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
    "no length after all": b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "an encoding nobody asked for": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a head that is too large": b"HTTP/1.1 200 OK\r\nX: " + b"x" * MOST_HEAD + b"\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * (2 * MOST_HEAD),
}


@pytest.mark.parametrize("which", NONSENSE)
@in_a_loop
async def test_nonsense_is_never_taken_for_an_answer(which: str) -> None:
    async with connected(answering(NONSENSE[which])) as (connection, _):
        with pytest.raises(NotHttp):
            await ask(connection)
        assert not connection.usable


@pytest.mark.parametrize("text", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r"])
@in_a_loop
async def test_half_a_head_is_a_broken_connection(text: bytes) -> None:
    with pytest.raises(Broken, match="the other side closed it"):
        await asked(text)


@in_a_loop
async def test_the_answer_to_head_has_no_body() -> None:
    head, body = await asked(b"HTTP/1.1 200 OK\r\nContent-Length: 700\r\n\r\n", "HEAD")
    assert (head.headers["content-length"], body) == ("700", b"")


# Whether the connection serves again


AGAIN: dict[str, tuple[bytes, bool]] = {
    "a known length": (OK, True),
    "an empty body": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", True),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        True,
    ),
    "chunks and trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nX: y\r\n\r\n",
        True,
    ),
    "an informational answer first": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, True),
    "an error": (b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno", True),
    "an old server that keeps it": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        True,
    ),
    "an old server": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
    "one that says close": (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        False,
    ),
    "one that says close among others": (
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
        False,
    ),
    "two lengths that disagree": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\n",
        False,
    ),
}


@pytest.mark.parametrize("which", AGAIN)
@in_a_loop
async def test_a_connection_serves_again_only_where_the_server_says_so(which: str) -> None:
    answer, again = AGAIN[which]
    second = b"HTTP/1.1 201 Created\r\nContent-Length: 6\r\n\r\nsecond"
    async with connected(answering(answer, second)) as (connection, _):
        head = await connection.send("GET", "/x", HOST)
        await connection.body(head)
        assert connection.usable is again
        if again:
            later, body = await ask(connection)
            assert (later.status, body) == (201, b"second")


@in_a_loop
async def test_an_answer_that_was_not_read_to_its_end_spoils_the_connection() -> None:
    async with connected(answering(OK)) as (connection, _):
        head = await connection.send("GET", "/x", HOST)
        assert not connection.usable
        await connection.body(head)
        assert connection.usable


@pytest.mark.parametrize("leaves", [hang_up, half_close], ids=["closed", "half-closed"])
@in_a_loop
async def test_a_server_that_has_left_meanwhile_is_not_asked_again(leaves: Script) -> None:
    async with connected(answering(OK, then=leaves)) as (connection, _):
        head, body = await ask(connection)
        assert (head.status, body) == (200, b"ok")
        await eventually(lambda: not connection.usable)


@pytest.mark.parametrize("pieces", [1, 2], ids=["at once", "a moment later"])
@in_a_loop
async def test_what_nobody_asked_for_is_not_the_next_answer(pieces: int) -> None:
    farewell = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    written = [OK + farewell] if pieces == 1 else [OK, farewell]
    async with connected(answering(written)) as (connection, _):
        assert (await ask(connection))[1] == b"ok"
        await eventually(lambda: not connection.usable)
        with pytest.raises(NotHttp, match=r"speaks before it is asked: .*408"):
            await ask(connection)


@in_a_loop
async def test_a_server_that_speaks_first_is_told_from_one_that_answers() -> None:
    async def greet(talk: Talk) -> None:
        await talk.say(b"220 mail.example ESMTP\r\n")
        await talk.until_left()

    async with connected(greet) as (connection, _):
        await eventually(lambda: not connection.usable)
        with pytest.raises(NotHttp, match="ESMTP"):
            await ask(connection)


@in_a_loop
async def test_a_request_that_is_cancelled_spoils_its_connection() -> None:
    async with connected(answering(then=Talk.until_left)) as (connection, _):
        asking = asyncio.create_task(ask(connection))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        assert not connection.usable


@in_a_loop
async def test_who_waits_on_a_connection_that_we_close_is_told() -> None:
    async with connected(answering(then=Talk.until_left)) as (connection, peer):
        asking = asyncio.create_task(ask(connection))
        await eventually(lambda: peer.busy)
        connection.close()
        with pytest.raises(HttpError, match="closed on this side"):
            await asking
