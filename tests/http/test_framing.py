"""Bodies: where they end, however the network cuts them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regatta.http.dial import Dialler
from regatta.http.failures import Broken, NotHttp
from regatta.http.framing import MOST_LINE
from regatta.http.stream import BUFFER
from tests.engines.kubernetes.loops import in_a_loop
from tests.http.peer import Script, a_peer, answering, half_close, hang_up, reset
from tests.http.test_wire import HOST, asked, connected

KNOWN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"

BODIES: dict[str, tuple[bytes, bytes]] = {
    "a known length": (KNOWN % 9 + b"all of it", b"all of it"),
    "nothing, of a known length": (KNOWN % 0, b""),
    "chunks": (CHUNKED + b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", b"abc0123456789"),
    "no chunks": (CHUNKED + b"0\r\n\r\n", b""),
    "chunks with extensions": (
        CHUNKED + b'3;x=y\r\nabc\r\n00002 ; q="1"\r\nde\r\n0;last\r\n\r\n',
        b"abcde",
    ),
    "chunks that look like chunks": (CHUNKED + b"7\r\n0\r\n\r\nab\r\n0\r\n\r\n", b"0\r\n\r\nab"),
    "chunks and trailers": (CHUNKED + b"2\r\nok\r\n0\r\nX: y\r\nZ: \r\n\r\n", b"ok"),
    "until the connection ends": (ENDLESS + b"all of it", b"all of it"),
    "nothing until the connection ends": (ENDLESS, b""),
    "after an informational answer": (
        b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"2\r\nok\r\n0\r\n\r\n",
        b"ok",
    ),
}


@pytest.mark.parametrize("which", BODIES)
@in_a_loop
async def test_a_body_is_read_to_its_end_when_every_byte_comes_by_itself(which: str) -> None:
    text, body = BODIES[which]
    assert (await asked([bytes([byte]) for byte in text]))[1] == body


@pytest.mark.parametrize("which", BODIES)
@in_a_loop
async def test_a_body_is_read_to_its_end_wherever_it_is_cut_in_two(which: str) -> None:
    text, body = BODIES[which]
    for cut in range(1, len(text)):
        assert (await asked([text[:cut], text[cut:]]))[1] == body, f"cut at {cut}"


def pieces_of(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges) if a != b]


@settings(deadline=None, max_examples=60)
@given(
    chunks=st.lists(st.binary(min_size=1, max_size=400), max_size=8),
    cuts=st.lists(st.integers(0, 5000), max_size=20),
)
def test_chunks_come_out_as_they_went_in(chunks: list[bytes], cuts: list[int]) -> None:
    async def parts() -> list[bytes]:
        text = CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        async with connected(answering(pieces_of(text + b"0\r\n\r\n", cuts))) as (connection, _):
            head = await connection.send("GET", "/x", HOST)
            came = [part async for part in connection.parts(head)]
            assert connection.usable
            return came

    assert asyncio.run(parts()) == chunks


HALF = {
    "a known length": KNOWN % 9 + b"all",
    "a chunk": CHUNKED + b"9\r\nall",
    "a chunk without its end": CHUNKED + b"3\r\nall",
    "chunks without an end": CHUNKED + b"3\r\nall\r\n",
    "chunks without the end's end": CHUNKED + b"3\r\nall\r\n0\r\n",
    "the line before a chunk": CHUNKED + b"3",
    "a trailer": CHUNKED + b"3\r\nall\r\n0\r\nX: ",
}


@pytest.mark.parametrize("leaves", [hang_up, half_close, reset])
@pytest.mark.parametrize("which", HALF)
@in_a_loop
async def test_half_a_body_is_never_taken_for_a_whole_one(which: str, leaves: Script) -> None:
    async with connected(answering(HALF[which], then=leaves)) as (connection, _):
        head = await connection.send("GET", "/x", HOST)
        with pytest.raises(Broken):
            await connection.body(head)
        assert not connection.usable


@in_a_loop
async def test_a_body_that_ends_with_the_connection_must_not_end_in_a_reset() -> None:
    async with connected(answering(ENDLESS + b"all of", then=reset)) as (connection, _):
        head = await connection.send("GET", "/x", HOST)
        with pytest.raises(Broken, match="reset"):
            await connection.body(head)


@pytest.mark.parametrize(
    "chunks",
    [
        b"xyz\r\n",
        b"\r\n",
        b"-2\r\nab\r\n0\r\n\r\n",
        b"0x2\r\nab\r\n0\r\n\r\n",
        b"1_0\r\n",
        b"+2\r\nab\r\n",
        b"f" * 17 + b"\r\n",
        b"2\r\nabc\r\n0\r\n\r\n",
        b"2\r\nabXX0\r\n\r\n",
        b"2\nab\r\n0\r\n\r\n" + b"x" * MOST_LINE + b"\r\n",
        b"2;" + b"x" * MOST_LINE + b"\r\nab\r\n0\r\n\r\n",
        b"0\r\n" + b"X: y\r\n" * MOST_LINE,
    ],
    ids=lambda text: repr(text[:16]),
)
@in_a_loop
async def test_a_broken_chunk_ends_the_connection(chunks: bytes) -> None:
    async with connected(answering(CHUNKED + chunks)) as (connection, _):
        head = await connection.send("GET", "/x", HOST)
        with pytest.raises(NotHttp):
            await connection.body(head)
        assert not connection.usable


@in_a_loop
async def test_a_very_large_chunk_comes_in_parts_that_fit_into_the_buffer() -> None:
    body = bytes(range(256)) * (3 * BUFFER // 256) + b"the end"
    text = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    async with connected(answering(CHUNKED + text)) as (connection, _):
        head = await connection.send("GET", "/x", HOST)
        parts = [part async for part in connection.parts(head)]
        assert b"".join(parts) == body
        assert max(map(len, parts)) <= BUFFER
        assert connection.usable


@in_a_loop
async def test_a_stream_that_is_left_early_spoils_its_connection_only() -> None:
    endless = CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n"
    async with a_peer(answering(endless)) as peer:
        connection = await Dialler(peer.url).dial()
        head = await connection.send("GET", "/x", HOST)
        async with aclosing(connection.parts(head)) as parts:
            assert await anext(parts) == b"one"
        assert not connection.usable
        connection.close()
