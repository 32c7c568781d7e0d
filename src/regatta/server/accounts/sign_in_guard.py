"""How often one may try to sign in, so that passwords cannot be guessed and nobody is locked out.

A limit per address alone is passed by whoever has many addresses; a limit per name alone is a way
to lock its owner out, by failing in his name for ever. So both are counted, and the name's limit
gives way to those who are likely its owner:

- an address that has not failed lately has one try, whatever others do to the name. Somebody who
  knows his password comes in at once from any such address; a guesser has one guess per address
  (per /64 of IPv6) and period;
- an address from which that name has signed in before has a limit of its own for it, which nobody
  elsewhere can use up.

What is left is a colleague behind the same address, who can keep others from signing in there for
as long as he goes on failing; the audit has his tries. Tokens are not looked at here: who is signed
in stays so. A try is paid for before the password is checked and given back when it was right, or
a thousand at once would all be let in.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable

from regatta.server.accounts.account_rules import key_of
from regatta.server.accounts.rate_limits import Clock, Limiter, Rate, Rates, address_key
from regatta.server.openpai_errors import TooManyRequests

MOST_KNOWN = 10_000


class SignInGuard:
    def __init__(self, rates: Rates, clock: Clock = time.monotonic) -> None:
        self._addresses = Limiter(rates.sign_in_address, clock)
        self._names = Limiter(rates.sign_in_name, clock)
        #: One try in a period for an address that has not failed.
        self._free = Limiter(Rate(1, rates.sign_in_name.seconds), clock)
        self._known_pairs = Limiter(rates.sign_in_name, clock)
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def begin(self, address: str, name: str) -> Try:
        """Pays for one try, or raises TooManyRequests."""
        where, who = address_key(address), _bounded(name)
        if (where, who) in self._known:
            self._pay(self._known_pairs, (where, who), "the password was wrong too often")
            return Try(self, where, who, [(self._known_pairs, (where, who))])
        self._pay(self._addresses, where, "sign-ins from your address failed too often")
        paid: list[tuple[Limiter, Hashable]] = [(self._addresses, where)]
        free = self._free.take(where)
        if free == 0:
            paid.append((self._free, where))
        wait = self._names.take(who)
        if wait == 0:
            paid.append((self._names, who))
        elif free > 0:
            self._addresses.give_back(where)
            said = "sign-ins with this name failed too often"
            raise TooManyRequests(said, min(wait, free))
        return Try(self, where, who, paid)

    def _pay(self, limiter: Limiter, key: Hashable, said: str) -> None:
        wait = limiter.take(key)
        if wait > 0:
            raise TooManyRequests(said, wait)

    def remember(self, where: str, who: str) -> None:
        self._known[where, who] = None
        self._known.move_to_end((where, who))
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


class Try:
    def __init__(
        self, guard: SignInGuard, where: str, who: str, paid: list[tuple[Limiter, Hashable]]
    ) -> None:
        self._guard, self._where, self._who, self._paid = guard, where, who, paid

    def succeeded(self) -> None:
        """Only this one is given back: a right password in between resets no count."""
        self.not_made()
        self._guard.remember(self._where, self._who)

    def not_made(self) -> None:
        """The password was not looked at."""
        for limiter, key in self._paid:
            limiter.give_back(key)
        self._paid = []


def _bounded(name: str) -> str:
    """What somebody sends for a name may be megabytes."""
    return key_of(name[:80])
