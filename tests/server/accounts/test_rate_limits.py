from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.api.errors import BadSetting
from regatta.server.accounts.rate_limits import (
    Limiter,
    Rate,
    Rates,
    RequestLimits,
    address_key,
    rate_of,
)
from regatta.server.openpai_errors import TooManyRequests
from tests.server.accounts.people import Clock

RATES = st.builds(Rate, st.integers(1, 20), st.sampled_from([1.0, 7.5, 60.0, 3600.0]))
#: How long after the one before each request comes, and of whom.
REQUESTS = st.lists(
    st.tuples(st.floats(0, 120, allow_subnormal=False), st.sampled_from("abc")), max_size=80
)


def test_as_many_as_the_rate_says_and_then_one_by_one() -> None:
    clock = Clock()
    limiter = Limiter(Rate(3, 60), clock)

    assert [limiter.take("a") for _ in range(4)] == [0, 0, 0, 20]
    assert limiter.take("b") == 0
    clock.now += 19
    assert limiter.take("a") == pytest.approx(1)
    clock.now += 1
    assert limiter.take("a") == 0
    assert limiter.take("a") == pytest.approx(20)


@given(RATES, REQUESTS)
def test_in_no_time_do_more_pass_than_a_full_bucket_and_what_came_in(
    rate: Rate, requests: list[tuple[float, str]]
) -> None:
    clock = Clock()
    limiter = Limiter(rate, clock)
    passed: dict[str, list[float]] = {}
    for pause, key in requests:
        clock.now += pause
        if limiter.take(key) == 0:
            passed.setdefault(key, []).append(clock.now)

    for times in passed.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                most = rate.count + (times[last] - times[first]) / rate.each
                assert last - first + 1 <= most + 1e-3


@given(RATES, REQUESTS)
def test_who_keeps_to_the_rate_is_never_refused(
    rate: Rate, requests: list[tuple[float, str]]
) -> None:
    clock = Clock()
    limiter = Limiter(rate, clock)
    for pause, _ in requests:
        clock.now += rate.each + pause
        assert limiter.take("steady") == 0
        limiter.take("hasty")


@given(RATES, REQUESTS)
def test_who_waits_as_told_is_let_in(rate: Rate, requests: list[tuple[float, str]]) -> None:
    clock = Clock()
    limiter = Limiter(rate, clock)
    for pause, key in requests:
        clock.now += pause
        wait = limiter.take(key)
        if wait > 0:
            assert wait <= rate.each + 1e-6
            for _ in range(3):  # asking again makes nobody wait longer
                assert limiter.take(key) == pytest.approx(wait)
            clock.now += wait
            assert limiter.take(key) == 0


@given(RATES, REQUESTS)
def test_what_is_given_back_can_be_taken_again(
    rate: Rate, requests: list[tuple[float, str]]
) -> None:
    clock = Clock()
    limiter = Limiter(rate, clock)
    for pause, key in requests:
        clock.now += pause
        if limiter.take(key) == 0:
            limiter.give_back(key)
            assert limiter.take(key) == 0


def test_a_million_keys_do_not_fill_the_memory() -> None:
    clock = Clock()
    limiter = Limiter(Rate(10, 3600), clock, most_keys=1000)
    for number in range(1_000_000):
        limiter.take(number)

    assert len(limiter) == 1000


def test_a_flood_of_others_refuses_nobody() -> None:
    limiter = Limiter(Rate(1, 3600), Clock(), most_keys=10)

    assert all(limiter.take(number) == 0 for number in range(1000))


def test_a_flood_does_not_free_who_goes_on_asking() -> None:
    clock = Clock()
    limiter = Limiter(Rate(100, 3600), clock, most_keys=10)
    let_in = 0
    for number in range(1000):
        limiter.take(number)
        let_in += limiter.take("loud") == 0

    assert let_in == 100


def test_full_buckets_are_forgotten() -> None:
    clock = Clock()
    limiter = Limiter(Rate(1, 60), clock)
    for number in range(100):
        limiter.take(number)
    clock.now += 61
    for number in range(100):
        limiter.take("a" if number % 2 else "b")

    assert len(limiter) == 2


def test_no_limit_is_a_rate_too() -> None:
    limiter = Limiter(rate_of("lists", "off"), Clock())

    assert all(limiter.take("a") == 0 for _ in range(10_000))
    assert len(limiter) == 0
    limiter.give_back("a")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("600/min", Rate(600, 60)),
        (" 5 / s ", Rate(5, 1)),
        ("3600/h", Rate(3600, 3600)),
        ("30/5min", Rate(30, 300)),
    ],
)
def test_a_rate_is_written_as_people_say_it(text: str, rate: Rate) -> None:
    assert rate_of("requests", text) == rate


@pytest.mark.parametrize(
    "text", ["", "600", "0/min", "-1/min", "600/day", "many/min", "1.5/s", "1/0s"]
)
def test_another_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadSetting, match=r"requests is .* such as 600/min or 30/5min, or off"):
        rate_of("requests", text)


def test_the_rates_are_openpais_unless_somebody_wrote_others() -> None:
    usual = Rates()
    assert usual.sign_in_address.count == 30
    assert usual.sign_in_name.count == 10
    assert usual.sign_in_address.seconds == usual.sign_in_name.seconds == 300
    assert (usual.requests, usual.lists, usual.submits) == (
        Rate(600, 60),
        Rate(120, 60),
        Rate(3600, 3600),
    )


@pytest.mark.parametrize(
    ("ask", "other"),
    [("request", "198.51.100.7"), ("list_jobs", "bob"), ("submit", "bob")],
)
def test_who_asks_for_too_much_is_told_when_to_ask_again(ask: str, other: str) -> None:
    clock = Clock()
    few = Rate(2, 60)
    limits = RequestLimits(Rates(requests=few, lists=few, submits=few), clock)
    asking = getattr(limits, ask)
    asking("192.0.2.1")
    asking("192.0.2.1")

    with pytest.raises(TooManyRequests, match="try again in 30 seconds") as told:
        asking("192.0.2.1")
    assert (told.value.status, told.value.retry_after) == (429, 30)
    asking(other)
    clock.now += 29.5
    with pytest.raises(TooManyRequests, match=r"try again in 1 second$"):
        asking("192.0.2.1")
    clock.now += 0.5
    asking("192.0.2.1")


def test_each_limit_counts_by_itself() -> None:
    one = Rate(1, 60)
    limits = RequestLimits(Rates(requests=one, lists=one, submits=one), Clock())

    limits.request("ann")
    limits.list_jobs("ann")
    limits.submit("ann")


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", "this machine"),
        ("127.5.200.7", "this machine"),
        ("::ffff:127.0.0.9", "this machine"),
        ("::1", "this machine"),
        ("testclient", "testclient"),
    ],
)
def test_one_who_has_a_network_counts_once(address: str, key: str) -> None:
    assert address_key(address) == key
