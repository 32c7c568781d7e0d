"""Connections that wait: which are used again, and which never."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from regatta.http.dial import Dialler
from regatta.http.failures import CannotConnect, HttpError
from regatta.http.pool import Pool
from regatta.http.wire import Connection
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.http.certificates import Authority, served
from tests.http.peer import OK, Peer, Script, Talk, a_peer, answering, hang_up


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def patient(talk: Talk) -> None:
    while True:
        await talk.request()
        await talk.say(OK)


@asynccontextmanager
async def a_pool(script: Script = patient) -> AsyncIterator[tuple[Pool, Peer, Clock]]:
    clock = Clock()
    async with a_peer(script) as peer:
        pool = Pool(Dialler(peer.url), idle_seconds=60, clock=clock)
        try:
            yield pool, peer, clock
        finally:
            pool.close()


async def ask(pool: Pool, context: ssl.SSLContext | None = None) -> Connection:
    connection = await pool.take(context)
    try:
        head = await connection.send("GET", "/x", [("Host", "a")])
        await connection.body(head)
    finally:
        pool.give_back(connection)
    return connection


@in_a_loop
async def test_one_connection_serves_one_request_after_another() -> None:
    async with a_pool() as (pool, peer, _):
        first = await ask(pool)
        assert await ask(pool) is first
        assert len(peer.talks) == 1
        assert len(pool) == 1


@in_a_loop
async def test_requests_at_once_have_a_connection_each_and_the_last_used_goes_first() -> None:
    async with a_pool() as (pool, peer, _):
        one, two = await pool.take(), await pool.take()
        pool.give_back(one)
        pool.give_back(two)
        await eventually(lambda: len(peer.talks) == 2)
        assert await pool.take() is two
        assert await pool.take() is one
        one.close()
        two.close()


@pytest.mark.parametrize(("idle", "again"), [(59.9, True), (60.0, False)])
@in_a_loop
async def test_what_has_idled_for_too_long_is_closed(idle: float, again: bool) -> None:
    async with a_pool() as (pool, peer, clock):
        first = await ask(pool)
        clock.now += idle
        assert (await ask(pool) is first) is again
        await eventually(lambda: peer.busy == 1)
        assert len(pool) == 1


@in_a_loop
async def test_a_connection_made_of_other_credentials_is_not_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = served(authority.issue("peer", "IP:127.0.0.1"))
    first, second = (
        ssl.create_default_context(cafile=str(authority.certificate)) for _ in range(2)
    )
    async with a_peer(patient, tls=tls) as peer:
        pool = Pool(Dialler(peer.url))
        old = await ask(pool, first)
        assert await ask(pool, first) is old
        assert await ask(pool, second) is not old
        assert not old.usable
        assert len(pool) == 1
        pool.close()


@in_a_loop
async def test_a_server_that_hung_up_meanwhile_is_dialled_anew() -> None:
    async with a_pool(answering(OK, then=hang_up)) as (pool, peer, _):
        first = await ask(pool)
        await eventually(lambda: not first.usable)
        assert await ask(pool) is not first
        assert len(peer.talks) == 2


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"],
    ids=["before the answer", "in its head", "in its body"],
)
@in_a_loop
async def test_a_request_that_is_cancelled_leaves_no_connection_behind(answer: bytes) -> None:
    async with a_pool(answering(answer)) as (pool, peer, _):
        asking = asyncio.create_task(ask(pool))
        await eventually(lambda: peer.talks and peer.talks[0].said == len(answer))
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        assert len(pool) == 0
        await eventually(lambda: not peer.busy)


@in_a_loop
async def test_a_request_that_fails_leaves_no_connection_behind() -> None:
    async with a_pool(answering(b"nonsense\r\n\r\n")) as (pool, peer, _):
        with pytest.raises(HttpError):
            await ask(pool)
        assert len(pool) == 0
        await eventually(lambda: not peer.busy)


@in_a_loop
async def test_a_closed_pool_keeps_nothing_open() -> None:
    async with a_pool() as (pool, peer, _):
        await ask(pool)
        pool.close()
        assert len(pool) == 0
        await eventually(lambda: not peer.busy)


@in_a_loop
async def test_a_server_that_is_gone_is_no_ones_connection() -> None:
    pool = Pool(Dialler("http://127.0.0.1:1"))
    with pytest.raises(CannotConnect):
        await ask(pool)
    assert len(pool) == 0
