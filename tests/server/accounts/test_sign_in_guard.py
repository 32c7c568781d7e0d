from __future__ import annotations

import pytest

from regatta.server.accounts import sign_in_guard
from regatta.server.accounts.rate_limits import Rate, Rates
from regatta.server.accounts.sign_in_guard import SignInGuard
from regatta.server.openpai_errors import TooManyRequests
from tests.server.accounts.people import Clock

PERIOD = 300.0
RATES = Rates(sign_in_address=Rate(5, PERIOD), sign_in_name=Rate(3, PERIOD))
OFFICE, CAFE = "192.0.2.1", "198.51.100.1"


class Attack:
    """Who fails in a name, from as many addresses as wanted, as often as he is let."""

    def __init__(self, guard: SignInGuard) -> None:
        self.guard = guard
        self._next = 0

    def exhaust(self, name: str) -> None:
        for _ in range(20):
            self._next += 1
            address = f"203.0.{self._next // 250}.{self._next % 250}"
            for _ in range(2):
                self.fail(address, name)

    def fail(self, address: str, name: str) -> bool:
        """Whether the password was looked at."""
        try:
            self.guard.begin(address, name)
        except TooManyRequests:
            return False
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attack(clock: Clock) -> Attack:
    return Attack(SignInGuard(RATES, clock))


def test_an_address_fails_only_so_often_whatever_the_name(attack: Attack) -> None:
    assert [attack.fail(OFFICE, f"user{n}") for n in range(7)] == [True] * 5 + [False] * 2


def test_a_name_fails_only_so_often_from_an_address(attack: Attack) -> None:
    assert [attack.fail(OFFICE, "ann") for _ in range(5)] == [True] * 3 + [False] * 2


def test_a_name_is_one_however_it_is_written(attack: Attack) -> None:
    assert [attack.fail(OFFICE, name) for name in ("ann", "Ann", "ANN", "aNN")][-1] is False


def test_many_addresses_have_one_guess_each_once_the_name_is_worn_out(attack: Attack) -> None:
    attack.exhaust("ann")
    for n in range(10):
        assert attack.fail(f"198.18.0.{n}", "ann")
        assert not attack.fail(f"198.18.0.{n}", "ann")


def test_a_network_of_ipv6_has_one_guess(attack: Attack) -> None:
    attack.exhaust("ann")
    assert attack.fail("2001:db8::1", "ann")
    assert not attack.fail("2001:db8::2", "ann")


def test_that_guess_comes_back_after_a_period_and_not_before(attack: Attack, clock: Clock) -> None:
    attack.exhaust("ann")
    assert attack.fail(CAFE, "ann")
    clock.now += PERIOD - 1
    attack.exhaust("ann")
    assert not attack.fail(CAFE, "ann")
    clock.now += 1.1
    assert attack.fail(CAFE, "ann")


def test_nobody_is_locked_out_of_a_new_place(attack: Attack, clock: Clock) -> None:
    """However long somebody goes on failing in her name."""
    for _ in range(50):
        attack.exhaust("ann")
        attack.guard.begin(CAFE, "ann").succeeded()
        clock.now += 10


def test_nobody_is_locked_out_of_where_she_was_before(attack: Attack) -> None:
    attack.guard.begin(OFFICE, "ann").succeeded()
    attack.exhaust("ann")

    assert attack.fail(OFFICE, "ann")  # she mistypes
    attack.guard.begin(OFFICE, "ann").succeeded()


def test_a_place_where_she_was_has_a_limit_as_well(attack: Attack) -> None:
    attack.guard.begin(OFFICE, "ann").succeeded()

    assert [attack.fail(OFFICE, "ann") for _ in range(5)] == [True] * 3 + [False] * 2


def test_a_colleagues_failures_do_not_lock_out_who_was_there_before(attack: Attack) -> None:
    attack.guard.begin(OFFICE, "ann").succeeded()
    for _ in range(20):
        attack.fail(OFFICE, "bob")

    attack.guard.begin(OFFICE, "ann").succeeded()


def test_signing_in_as_oneself_frees_no_guesses(attack: Attack) -> None:
    guesses = 0
    for _ in range(20):
        attack.guard.begin(OFFICE, "mallory").succeeded()
        guesses += attack.fail(OFFICE, "ann")

    assert guesses == 3


def test_signing_in_spends_no_free_try_and_gives_none_back(attack: Attack) -> None:
    attack.guard.begin(CAFE, "bob").succeeded()
    attack.exhaust("ann")
    assert attack.fail(CAFE, "ann")
    attack.guard.begin(CAFE, "cy").succeeded()
    assert not attack.fail(CAFE, "ann")


def test_a_try_is_given_back_once(attack: Attack) -> None:
    for _ in range(2):
        assert attack.fail(OFFICE, "ann")
    last = attack.guard.begin(OFFICE, "ann")
    last.not_made()
    last.not_made()
    assert [attack.fail(OFFICE, "ann") for _ in range(2)] == [True, False]


def test_a_try_that_is_refused_for_its_name_is_not_counted_for_its_address(attack: Attack) -> None:
    attack.exhaust("ann")
    assert [attack.fail(OFFICE, "ann") for _ in range(20)] == [True] + [False] * 19
    assert [attack.fail(OFFICE, f"user{n}") for n in range(5)] == [True] * 4 + [False]


def test_half_a_second_too_early_is_too_early(attack: Attack, clock: Clock) -> None:
    for n in range(5):
        attack.fail(OFFICE, f"user{n}")
    clock.now += PERIOD / 5 - 0.5
    with pytest.raises(TooManyRequests, match="your address failed too often") as told:
        attack.guard.begin(OFFICE, "ann")
    assert told.value.retry_after == 1


def test_right_passwords_cost_nothing(attack: Attack) -> None:
    for _ in range(100):
        attack.guard.begin(OFFICE, "ann").succeeded()


def test_a_thousand_at_once_are_counted_before_any_is_looked_at(attack: Attack) -> None:
    assert sum(attack.fail(OFFICE, "ann") for _ in range(1000)) == 3


def test_what_was_not_looked_at_is_not_counted(attack: Attack) -> None:
    for _ in range(20):
        attack.guard.begin(OFFICE, "ann").not_made()
    assert [attack.fail(OFFICE, "ann") for _ in range(4)] == [True] * 3 + [False]


def test_the_wait_that_is_told_is_enough(attack: Attack, clock: Clock) -> None:
    while attack.fail(OFFICE, "ann"):
        pass
    with pytest.raises(TooManyRequests, match="this name failed too often") as told:
        attack.guard.begin(OFFICE, "ann")
    assert told.value.retry_after == PERIOD / 3
    clock.now += told.value.retry_after
    attack.guard.begin(OFFICE, "ann")


def test_a_limit_that_is_off_refuses_nobody() -> None:
    off = Rate(0, 1.0)
    attack = Attack(SignInGuard(Rates(sign_in_address=off, sign_in_name=off), Clock()))

    assert all(attack.fail(OFFICE, "ann") for _ in range(1000))


def test_what_is_remembered_is_bounded(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_guard, "MOST_KNOWN", 5)
    for n in range(100):
        attack.guard.begin(f"192.0.2.{n}", "ann").succeeded()
        attack.guard.begin("192.0.2.0", "ann").succeeded()
    kept = [where for where, _ in attack.guard._known]
    assert kept == [f"192.0.2.{n}" for n in (96, 97, 98, 99, 0)]
    for n in range(100):
        attack.fail("198.18.0.1", "x" * n * 1000)
    assert max(len(str(key)) for key in attack.guard._names._full_at) <= 80
