"""No test looks at a clock: that two answers take as long is seen in the work done for them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from argon2 import PasswordHasher, Type, extract_parameters

from regatta.server.accounts import passwords
from regatta.server.accounts.passwords import AT_A_TIME, Checked, Hashes, Passwords
from tests.server.accounts.people import CHEAP, PASSWORD, CountingHashes, refused


def test_a_hash_is_argon2id_and_never_twice_the_same() -> None:
    hashes = Hashes()
    one, other = hashes.make(PASSWORD), hashes.make(PASSWORD)

    assert one != other
    found = extract_parameters(one)
    assert found.type is Type.ID
    assert found.memory_cost >= 64 * 1024
    assert found.time_cost >= 3


@pytest.mark.parametrize(
    ("given", "right"),
    [(PASSWORD, True), ("wrong", False), ("", False), (PASSWORD + "x", False), ("x" * 5000, False)],
)
def test_the_right_password_is_right_and_no_other(given: str, right: bool) -> None:
    hashes = Hashes(CHEAP)
    assert hashes.check(hashes.make(PASSWORD), given) == Checked(right)


def test_a_long_password_is_not_right_because_its_beginning_is() -> None:
    hashes = Hashes(CHEAP)
    stored = hashes.make("x" * 1024)
    assert hashes.check(stored, "x" * 1024).right
    assert not hashes.check(stored, "x" * 1025).right


@pytest.mark.parametrize("given", [PASSWORD, "wrong", "x" * 5000])
@pytest.mark.parametrize("known", [True, False])
def test_an_unknown_user_costs_what_a_wrong_password_costs(given: str, known: bool) -> None:
    hashes = CountingHashes()
    stored = hashes.make("another one") if known else None

    assert not hashes.check(stored, given).right

    assert len(hashes.checked) == 1
    assert extract_parameters(hashes.checked[0]) == extract_parameters(hashes.make(PASSWORD))


def test_nobodys_hash_opens_nothing() -> None:
    hashes = Hashes(CHEAP)
    assert not any(hashes.check(None, word).right for word in ("", PASSWORD, "nobody"))


def test_a_hash_with_other_parameters_is_made_again_when_its_password_is_right() -> None:
    old = CHEAP.hash(PASSWORD)
    hashes = Hashes(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))

    checked = hashes.check(old, PASSWORD)

    assert checked.right
    assert checked.rehashed is not None
    assert extract_parameters(checked.rehashed).time_cost == 2
    assert hashes.check(checked.rehashed, PASSWORD) == Checked(True)
    assert hashes.check(old, "wrong") == Checked(False)


@pytest.mark.parametrize("stored", ["", "no hash", "$argon2id$broken"])
def test_what_is_no_hash_is_matched_by_nothing(stored: str) -> None:
    assert not Hashes(CHEAP).check(stored, PASSWORD).right


class Held(Hashes):
    """Whose work ends when it is told to."""

    def __init__(self) -> None:
        super().__init__(CHEAP)
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.now = self.most = 0
        self._lock = threading.Lock()

    def make(self, password: str) -> str:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.begun.release()
        assert self.go_on.wait(60)
        with self._lock:
            self.now -= 1
        return password


def working(held: Held, play: Any) -> Any:
    async def body() -> Any:
        desk = Passwords(held)
        try:
            return await play(desk)
        finally:
            held.go_on.set()
            desk.close()

    return asyncio.run(body())


async def begun(held: Held, how_many: int) -> None:
    for _ in range(how_many):
        assert await asyncio.to_thread(held.begun.acquire, True, 60)


def test_two_are_worked_on_at_a_time_and_the_loop_goes_on() -> None:
    held = Held()

    async def play(desk: Passwords) -> list[str]:
        tasks = [asyncio.create_task(desk.make(str(n))) for n in range(6)]
        await begun(held, AT_A_TIME)
        held.go_on.set()
        return list(await asyncio.gather(*tasks))

    assert working(held, play) == [str(n) for n in range(6)]
    assert held.most == AT_A_TIME == 2


def test_who_hangs_up_makes_no_room_for_a_third() -> None:
    held = Held()

    async def play(desk: Passwords) -> None:
        first = [asyncio.create_task(desk.make("a")) for _ in range(AT_A_TIME)]
        await begun(held, AT_A_TIME)
        for task in first:
            task.cancel()
        await asyncio.gather(*first, return_exceptions=True)
        later = asyncio.create_task(desk.make("b"))
        await asyncio.sleep(0)
        assert not held.begun.acquire(blocking=False)
        held.go_on.set()
        assert await later == "b"

    working(held, play)
    assert held.most == AT_A_TIME


def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "MOST_WAITING", 3)
    held = Held()

    async def play(desk: Passwords) -> None:
        tasks = [asyncio.create_task(desk.make("a")) for _ in range(3)]
        await begun(held, AT_A_TIME)
        with refused(429, "TooManyRequestsError", "at this moment"):
            await desk.make("b")
        held.go_on.set()
        await asyncio.gather(*tasks)
        assert await desk.make("c") == "c"

    working(held, play)
