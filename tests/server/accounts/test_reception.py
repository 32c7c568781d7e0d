from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from argon2 import PasswordHasher, extract_parameters
from sqlalchemy import Connection, Engine

from regatta.server.accounts import passwords, users
from regatta.server.accounts.caller import Caller
from regatta.server.accounts.identity import Door, Shown, identify
from regatta.server.accounts.passwords import Passwords
from regatta.server.accounts.rate_limits import Rate, Rates
from regatta.server.accounts.reception import Reception, SignedIn
from regatta.server.accounts.sign_in_guard import SignInGuard
from regatta.server.accounts.tokens import Kind, find_token
from regatta.server.accounts.users import NewUser
from regatta.server.openpai_errors import WRONG_SIGN_IN, OpenPaiError
from tests.server.accounts.people import (
    CHEAP,
    NOW,
    PASSWORD,
    Clock,
    CountingHashes,
    Database,
    a_caller,
    a_user,
    refused,
)

HERE = "192.0.2.1"
RATES = Rates(sign_in_address=Rate(10, 300), sign_in_name=Rate(5, 300))


class Desk:
    """A reception with ann, who has a password, and boss, an admin."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.database = Database(engine)
        self.hashes = CountingHashes()
        self.reception: Reception
        self.tells_unknown_users = False
        with engine.begin() as connection:
            for name in ("ann", "boss"):
                new = NewUser(name, admin=name == "boss")
                users.create_user(connection, new, self.hashes.make(PASSWORD), NOW)

    def play(self, script: Callable[[Reception], Awaitable[Any]]) -> Any:
        async def body() -> Any:
            work = Passwords(self.hashes)
            self.reception = Reception(
                self.database,
                work,
                SignInGuard(RATES, Clock()),
                lambda: NOW,
                tells_unknown_users=self.tells_unknown_users,
            )
            try:
                return await script(self.reception)
            finally:
                work.close()

        return asyncio.run(body())

    def sign_in(self, name: str = "ann", password: str = PASSWORD, **more: Any) -> SignedIn:
        found = self.play(lambda desk: desk.sign_in(name, password, address=HERE, **more))
        assert isinstance(found, SignedIn)
        return found

    def caller(self, signed: SignedIn) -> Caller:
        with self.engine.begin() as connection:
            return identify(connection, Shown(Door.BEARER, signed.token.value), NOW).caller

    def lives(self, signed: SignedIn) -> bool:
        with self.engine.begin() as connection:
            return find_token(connection, signed.token.value, NOW) is not None


@pytest.fixture
def desk(engine: Engine) -> Desk:
    return Desk(engine)


def test_who_knows_the_password_gets_a_token(desk: Desk) -> None:
    signed = desk.sign_in("ANN", expiration="4000")

    assert (signed.name, signed.admin) == ("ann", False)
    assert signed.token.expires == NOW + 4_000_000
    assert desk.caller(signed).name == "ann"
    assert desk.sign_in("boss").admin


def test_a_browsers_token_is_of_its_kind(desk: Desk) -> None:
    token = desk.sign_in(kind=Kind.BROWSER).token
    with desk.engine.begin() as connection:
        found = find_token(connection, token.value, NOW)
    assert found is not None
    assert found.kind is Kind.BROWSER


@pytest.mark.parametrize(
    ("name", "password", "code", "said"),
    [
        ("nonexistentuser", "password", "NoUserError", "User nonexistentuser is not found."),
        ("ann", "incorrectpassword", "IncorrectPasswordError", "Password is incorrect."),
        ("ann", "", "IncorrectPasswordError", "Password is incorrect."),
        ("a\0b", PASSWORD, "NoUserError", "is not found."),
    ],
)
@pytest.mark.parametrize("tells", [False, True], ids=["alike", "told apart"])
def test_a_wrong_name_and_a_wrong_password_cost_the_same(
    desk: Desk, name: str, password: str, code: str, said: str, tells: bool
) -> None:
    desk.tells_unknown_users = tells
    expected = (code, said) if tells else ("IncorrectPasswordError", WRONG_SIGN_IN)
    with refused(400, *expected):
        desk.sign_in(name, password)

    assert desk.database.calls == 1
    assert len(desk.hashes.checked) == 1
    assert extract_parameters(desk.hashes.checked[0]) == extract_parameters(CHEAP.hash("x"))


def test_an_expiration_that_will_not_do_costs_nothing(desk: Desk) -> None:
    with refused(400, "InvalidParametersError", "expiration"):
        desk.sign_in(expiration=5)
    assert desk.hashes.checked == []


def test_who_is_disabled_learns_it_with_the_right_password_alone(desk: Desk) -> None:
    with desk.engine.begin() as connection:
        users.disable_user(connection, "ann", NOW)
    with refused(403, "ForbiddenUserError", "ann is disabled; ask an admin"):
        desk.sign_in()
    with refused(400, "IncorrectPasswordError"):
        desk.sign_in(password="wrong one")


async def fail(reception: Reception, times: int) -> list[str]:
    codes = []
    for _ in range(times):
        try:
            await reception.sign_in("ann", "wrong", address=HERE)
        except OpenPaiError as refusal:
            codes.append(refusal.code)
    return codes


def test_guessing_ends_and_a_refused_guess_is_not_looked_at(desk: Desk) -> None:
    codes = desk.play(lambda reception: fail(reception, 8))

    assert codes == ["IncorrectPasswordError"] * 5 + ["TooManyRequestsError"] * 3
    assert len(desk.hashes.checked) == 5


def test_right_passwords_are_not_counted(desk: Desk) -> None:
    async def often(reception: Reception) -> None:
        for _ in range(20):
            await reception.sign_in("ann", PASSWORD, address=HERE)

    desk.play(often)


def test_a_desk_that_is_busy_counts_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(reception: Reception) -> list[str]:
        monkeypatch.setattr(passwords, "MOST_WAITING", 0)
        codes = await fail(reception, 20)
        monkeypatch.undo()
        return codes + await fail(reception, 5)

    codes = desk.play(script)
    assert codes == ["TooManyRequestsError"] * 20 + ["IncorrectPasswordError"] * 5


def test_an_old_hash_is_made_again_at_sign_in(desk: Desk) -> None:
    desk.hashes = CountingHashes(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    desk.sign_in()

    with desk.engine.begin() as connection:
        stored = users.stored_password(connection, "ann")
    assert stored is not None
    assert extract_parameters(stored.password).time_cost == 2
    assert desk.sign_in().name == "ann"


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda c: users.set_password(c, "ann", "another hash", NOW),
        lambda c: users.disable_user(c, "ann", NOW),
        lambda c: users.delete_user(c, "ann"),
        lambda c: (users.delete_user(c, "ann"), a_user(c, "ann")),
    ],
    ids=["password changed", "disabled", "deleted", "another ann"],
)
def test_who_lost_the_account_meanwhile_gets_no_token(
    desk: Desk, meanwhile: Callable[[Connection], Any]
) -> None:
    desk.database.between = meanwhile
    with refused(400, "IncorrectPasswordError"):
        desk.sign_in()
    with desk.engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tokens").scalar_one() == 0


def test_a_changed_password_keeps_who_changed_it_and_ends_the_others(desk: Desk) -> None:
    mine, other = desk.sign_in(), desk.sign_in()
    caller = desk.caller(mine)

    desk.play(lambda r: r.change_own_password(caller, PASSWORD, "new password", address=HERE))

    assert desk.lives(mine)
    assert not desk.lives(other)
    assert desk.sign_in(password="new password").name == "ann"
    with refused(400, "IncorrectPasswordError"):
        desk.sign_in()


def test_a_password_is_changed_to_the_same_one(desk: Desk) -> None:
    mine = desk.sign_in()
    caller = desk.caller(mine)
    desk.play(lambda r: r.change_own_password(caller, PASSWORD, PASSWORD, address=HERE))
    assert desk.lives(mine)


def test_passwords_are_changed_as_often_as_one_likes(desk: Desk) -> None:
    caller = desk.caller(desk.sign_in())

    async def often(reception: Reception) -> None:
        for _ in range(20):
            await reception.change_own_password(caller, PASSWORD, PASSWORD, address=HERE)

    desk.play(often)


@pytest.mark.parametrize("old", ["", "wrong", PASSWORD.upper()])
def test_ones_own_password_needs_the_old_one(desk: Desk, old: str) -> None:
    caller = desk.caller(desk.sign_in())
    with refused(403, "ForbiddenUserError", "Pls input the correct password."):
        desk.play(lambda r: r.change_own_password(caller, old, "new password", address=HERE))
    with refused(400, "InvalidParametersError", "newPassword is too short"):
        desk.play(lambda r: r.change_own_password(caller, PASSWORD, "short", address=HERE))
    assert desk.sign_in().name == "ann"


def test_a_stolen_token_is_no_way_to_guess_the_password(desk: Desk) -> None:
    caller = desk.caller(desk.sign_in())

    async def guess(reception: Reception) -> list[str]:
        codes = []
        for _ in range(7):
            try:
                await reception.change_own_password(caller, "guess", "new one", address=HERE)
            except OpenPaiError as refusal:
                codes.append(refusal.code)
        return codes

    codes = desk.play(guess)
    assert codes == ["ForbiddenUserError"] * 5 + ["TooManyRequestsError"] * 2


def test_two_changes_at_once_do_not_both_hold(desk: Desk) -> None:
    caller = desk.caller(desk.sign_in())
    desk.database.calls = 0
    desk.database.between = lambda c: users.set_password(c, "ann", "the other's", NOW)
    with refused(403, "ForbiddenUserError", "Pls input the correct password."):
        desk.play(lambda r: r.change_own_password(caller, PASSWORD, "new one", address=HERE))


def test_an_admin_sets_a_password_without_the_old_one(desk: Desk) -> None:
    hers, boss = desk.sign_in(), desk.sign_in("boss")
    caller = desk.caller(boss)

    desk.play(lambda r: r.set_password(caller, "ANN", "from the boss"))

    assert not desk.lives(hers)
    assert desk.sign_in(password="from the boss").name == "ann"


def test_an_admin_who_sets_his_own_goes_on_with_his_token(desk: Desk) -> None:
    mine, other = desk.sign_in("boss"), desk.sign_in("boss")
    caller = desk.caller(mine)
    desk.play(lambda r: r.set_password(caller, "boss", "another one"))
    assert desk.lives(mine)
    assert not desk.lives(other)


def test_an_admin_makes_a_user_who_signs_in(desk: Desk) -> None:
    boss = desk.caller(desk.sign_in("boss"))
    made = desk.play(lambda r: r.create_user(boss, NewUser("cy", email="c@d"), "password of cy"))
    assert (made.name, made.email, made.created) == ("cy", "c@d", NOW)
    assert desk.sign_in("cy", "password of cy").name == "cy"


@pytest.mark.parametrize(
    "act",
    [
        lambda r, caller: r.set_password(caller, "ann", "another one"),
        lambda r, caller: r.create_user(caller, NewUser("cy"), "password"),
    ],
)
@pytest.mark.parametrize(
    ("caller", "said"),
    [
        (a_caller(), "Non-admin is not allow"),
        (a_caller("boss", admin=True, kind=Kind.APPLICATION), "Applications are not allowed"),
    ],
)
def test_nobody_else_does(desk: Desk, act: Any, caller: Caller, said: str) -> None:
    with refused(403, "ForbiddenUserError", said):
        desk.play(lambda r: act(r, caller))
    assert desk.database.calls == 0


def test_an_application_changes_no_password(desk: Desk) -> None:
    caller = a_caller(kind=Kind.APPLICATION)
    with refused(403, "ForbiddenUserError", "Applications are not allowed"):
        desk.play(lambda r: r.change_own_password(caller, PASSWORD, "another", address=HERE))


@pytest.mark.parametrize("new", ["short", "x" * 2000, "BOSS"])
def test_a_new_password_keeps_the_rules(desk: Desk, new: str) -> None:
    boss = desk.caller(desk.sign_in("boss"))
    before = len(desk.hashes.checked), desk.hashes.made
    for act in (
        lambda r: r.create_user(boss, NewUser("me"), "a password"),
        lambda r: r.set_password(boss, "boss", new),
        lambda r: r.change_own_password(boss, PASSWORD, new, address=HERE),
        lambda r: r.create_user(boss, NewUser("boss"), new),
    ):
        with refused(400, "InvalidParametersError"):
            desk.play(act)
    assert (len(desk.hashes.checked), desk.hashes.made) == before
