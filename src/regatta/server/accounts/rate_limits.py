"""How much somebody may ask for: token buckets with a bounded memory. Pure but for the clock, which
is handed in.

A bucket is one number, the time at which it will be full again. A full bucket and one that was
never seen are the same, so those that are full are forgotten, and what is kept is bounded by who
asked lately. Where a flood of different keys passes even that bound, those go that were not seen
for longest: they have the least left to wait for. Nobody is ever refused for want of memory.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from regatta.api.errors import BadSetting
from regatta.server.openpai_errors import TooManyRequests

Clock = Callable[[], float]

MOST_KEYS = 100_000

#: In seconds: a hair of it must not cost anybody the last one of a bucket.
_ROUNDING = 1e-6

_PERIODS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_RATE = re.compile(r"\s*([0-9]{1,9})\s*/\s*([0-9]{0,4})\s*(s|min|h)\s*")


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` at once, and as many again in `seconds`. A count of 0 is no limit."""

    count: int
    seconds: float

    @property
    def each(self) -> float:
        return self.seconds / self.count


def rate_of(setting: str, text: str) -> Rate:
    """`600/min`, `30/5min`, or `off`; `setting` is where it was written."""
    if text.strip() == "off":
        return Rate(0, 1.0)
    found = _RATE.fullmatch(text)
    count, periods = (int(found.group(1)), int(found.group(2) or 1)) if found else (0, 0)
    if found is None or not count or not periods:
        raise BadSetting(
            f"{setting} is {text!r}; write a number, a slash and s, min or h, such as 600/min or "
            "30/5min, or off for no limit"
        )
    return Rate(count, periods * _PERIODS[found.group(3)])


class Limiter:
    """One rate, for many keys."""

    def __init__(
        self, rate: Rate, clock: Clock = time.monotonic, most_keys: int = MOST_KEYS
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._most = most_keys
        #: When each bucket is full again; the key that was seen last is last.
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """0, or how many seconds are left until it would be let in. Who is refused pays nothing, so
        that asking again and again does not make anybody wait longer."""
        if not self._rate.count:
            return 0.0
        now = self._clock()
        wait = self._wait(key, now)
        if wait == 0:
            self._full_at[key] = max(self._full_at.get(key, now), now) + self._rate.each
        # Who is refused has been seen, too: a flood of others must not wash his count away.
        self._full_at.move_to_end(key)
        self._forget(now)
        return wait

    def give_back(self, key: Hashable) -> None:
        """Of what was taken, one."""
        if key in self._full_at:
            self._full_at[key] -= self._rate.each

    def __len__(self) -> int:
        return len(self._full_at)

    def _wait(self, key: Hashable, now: float) -> float:
        if key not in self._full_at:
            return 0.0
        missing = self._full_at[key] + self._rate.each - now
        wait = missing - self._rate.seconds
        return wait if wait > _ROUNDING else 0.0

    def _forget(self, now: float) -> None:
        """A few at a time: what came in last is full last, more or less."""
        for _ in range(2):
            if not self._full_at:
                return
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= self._most:
                return
            del self._full_at[oldest]


@dataclass(frozen=True, slots=True)
class Rates:
    """OpenPAI's, and for signing in ours: it has none."""

    #: Every request, per address.
    requests: Rate = Rate(600, 60.0)
    #: Lists of jobs, per user.
    lists: Rate = Rate(120, 60.0)
    #: Submitted jobs, per user.
    submits: Rate = Rate(3600, 3600.0)
    #: Sign-ins that fail, per address and per name.
    sign_in_address: Rate = Rate(30, 300.0)
    sign_in_name: Rate = Rate(10, 300.0)


class RequestLimits:
    """What every request has to pass, in a server."""

    def __init__(self, rates: Rates, clock: Clock = time.monotonic) -> None:
        self._requests = Limiter(rates.requests, clock)
        self._lists = Limiter(rates.lists, clock)
        self._submits = Limiter(rates.submits, clock)

    def request(self, address: str) -> None:
        _pass(self._requests, address_key(address), "your address sends more requests than it may")

    def list_jobs(self, user: str) -> None:
        _pass(self._lists, user, "you list jobs more often than you may")

    def submit(self, user: str) -> None:
        _pass(self._submits, user, "you submit more jobs than you may")


def _pass(limiter: Limiter, key: str, said: str) -> None:
    wait = limiter.take(key)
    if wait > 0:
        raise TooManyRequests(said, wait)


def address_key(address: str) -> str:
    """Who an address stands for: whoever has one of IPv6 has the 2^64 beside it as well, and a
    process of this machine, such as a member's job, has all 2^24 of 127.0.0.0/8."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        parsed = parsed.ipv4_mapped or parsed
    if parsed.is_loopback:
        return "this machine"
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> 64 << 64)) + "/64"
    return str(parsed)
