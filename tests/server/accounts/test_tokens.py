from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, func, select, text

from regatta.server.accounts import tokens
from regatta.server.accounts.tables import TOKENS
from regatta.server.accounts.tokens import Kind, find_token, issue, list_tokens, revoke
from regatta.server.accounts.users import delete_user, disable_user, enable_user
from regatta.server.records.metadata import METADATA
from tests.server.accounts.people import NOW, a_user, refused

DAY = 86_400_000
OVER = tokens.KEPT_AFTER


def handles(connection: Connection, user_id: int, now: int = NOW) -> list[str]:
    return [token.handle for token in list_tokens(connection, user_id, now)]


def everything(connection: Connection) -> str:
    """Every value of every row of every table."""
    rows = [
        row
        for table in METADATA.sorted_tables
        for row in connection.execute(text(f'SELECT * FROM "{table.name}"'))
    ]
    return "\n".join(map(repr, rows))


def test_a_token_opens_until_it_ends(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    issued = issue(connection, ann.id, Kind.SIGN_IN, NOW, 60)

    assert issued.value.startswith(f"rgt_{issued.handle}_")
    assert issued.expires == NOW + 60_000
    found = find_token(connection, issued.value, NOW + 59_999)
    assert found is not None
    assert (found.handle, found.user_id, found.kind) == (issued.handle, ann.id, Kind.SIGN_IN)
    assert find_token(connection, issued.value, NOW + 60_000) is None


def test_an_applications_token_has_no_end(connection: Connection) -> None:
    issued = issue(connection, a_user(connection, "ann").id, Kind.APPLICATION, NOW, 60)

    assert issued.expires is None
    assert find_token(connection, issued.value, NOW + 1000 * DAY) is not None


def test_no_secret_is_in_the_database(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    issued = [issue(connection, ann.id, kind, NOW) for kind in Kind]
    tokens.note_use(connection, issued[0].handle, NOW)
    revoke(connection, ann.id, issued[1].value, NOW)

    held = everything(connection)

    for one in issued:
        assert one.handle in held
        assert one.value not in held
        assert one.value[-20:] not in held
        assert one.value[21:] not in held


def test_secrets_have_256_bits_and_differ(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    values = [issue(connection, ann.id, Kind.BROWSER, NOW).value for _ in range(50)]

    assert {len(value) for value in values} == {len("rgt_") + 16 + 1 + 43}
    assert len({value[21:] for value in values}) == len({value[4:20] for value in values}) == 50


def forgeries(value: str) -> dict[str, str]:
    return {
        "empty": "",
        "the handle": value[4:20],
        "without a secret": value[:21],
        "another last letter": value[:-2] + ("AA" if not value.endswith("AA") else "BB"),
        "another handle": "rgt_" + "0" * 16 + value[20:],
        "a shorter secret": value[:-1],
        "a longer secret": value + "A",
        "another case": value.swapcase(),
        "a newline": value + "\n",
        "not ASCII": value[:-1] + "é",
        "a JWT": "eyJhbGciOiJIUzI1NiJ9.e30.x",
        "NUL": value[:-1] + "\0",
    }


@pytest.mark.parametrize("forgery", forgeries("rgt_" + "0" * 16 + "_" + "A" * 43))
def test_nothing_but_the_whole_value_opens(connection: Connection, forgery: str) -> None:
    issued = issue(connection, a_user(connection, "ann").id, Kind.SIGN_IN, NOW)

    assert find_token(connection, issued.value, NOW) is not None
    assert find_token(connection, forgeries(issued.value)[forgery], NOW) is None


def test_the_hash_in_the_database_opens_nothing(connection: Connection) -> None:
    issued = issue(connection, a_user(connection, "ann").id, Kind.SIGN_IN, NOW)
    stored = connection.execute(select(TOKENS.c.secret_sha256)).scalar_one()

    assert find_token(connection, f"rgt_{issued.handle}_{stored[:43]}", NOW) is None


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [(None, 86_400), ("", 86_400), (4000, 4000), ("4000", 4000), (60, 60), (604_800, 604_800)],
)
def test_an_expiration_is_a_minute_to_a_week_and_a_day_unless_said(sent: Any, seconds: int) -> None:
    assert tokens.lifetime(sent) == seconds


@pytest.mark.parametrize(
    "sent", [59, 604_801, 0, -1, "soon", "1e4", "1_000", True, 1.5, "9" * 5000]
)
def test_another_expiration_is_refused(sent: Any) -> None:
    with refused(400, "InvalidParametersError", "60 to 604800"):
        tokens.lifetime(sent)


def test_a_list_has_what_lives_newest_first_and_nobody_elses(connection: Connection) -> None:
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    first = issue(connection, ann.id, Kind.APPLICATION, NOW)
    short = issue(connection, ann.id, Kind.SIGN_IN, NOW + 1, 60)
    last = issue(connection, ann.id, Kind.BROWSER, NOW + 2)
    issue(connection, bob.id, Kind.SIGN_IN, NOW)

    assert handles(connection, ann.id) == [last.handle, short.handle, first.handle]
    assert handles(connection, ann.id, NOW + 60_001) == [last.handle, first.handle]


@pytest.mark.parametrize("by", ["handle", "value"])
def test_a_token_is_revoked_by_handle_and_by_value(connection: Connection, by: str) -> None:
    ann = a_user(connection, "ann")
    kept, gone = (issue(connection, ann.id, Kind.APPLICATION, NOW) for _ in range(2))

    assert revoke(connection, ann.id, getattr(gone, by), NOW) == gone.handle

    assert find_token(connection, gone.value, NOW) is None
    assert handles(connection, ann.id) == [kept.handle]


@pytest.mark.parametrize("by", ["handle", "value"])
def test_nobody_revokes_somebody_elses(connection: Connection, by: str) -> None:
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    hers = issue(connection, ann.id, Kind.SIGN_IN, NOW)

    with refused(403, "ForbiddenUserError", "no living token of yours"):
        revoke(connection, bob.id, getattr(hers, by), NOW)

    assert find_token(connection, hers.value, NOW) is not None


@pytest.mark.parametrize("which", ["", "nonsense", "0" * 16, "%", "' OR 1=1 --", "a\0b"])
def test_what_is_no_token_cannot_be_revoked(connection: Connection, which: str) -> None:
    ann = a_user(connection, "ann")
    hers = issue(connection, ann.id, Kind.SIGN_IN, NOW)

    with refused(403, "ForbiddenUserError"):
        revoke(connection, ann.id, which, NOW)
    assert handles(connection, ann.id) == [hers.handle]


def test_a_right_handle_with_a_wrong_secret_revokes_nothing(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    hers = issue(connection, ann.id, Kind.SIGN_IN, NOW)

    with refused(403, "ForbiddenUserError"):
        revoke(connection, ann.id, hers.value[:-3] + "AAA", NOW)
    assert handles(connection, ann.id) == [hers.handle]


def test_a_changed_password_leaves_its_own_token_and_applications(connection: Connection) -> None:
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    own, other = (issue(connection, ann.id, Kind.SIGN_IN, NOW) for _ in range(2))
    browser = issue(connection, ann.id, Kind.BROWSER, NOW)
    application = issue(connection, ann.id, Kind.APPLICATION, NOW)
    bobs = issue(connection, bob.id, Kind.SIGN_IN, NOW)

    assert tokens.revoke_after_password(connection, ann.id, NOW, own.handle) == 2

    for token in (own, application, bobs):
        assert find_token(connection, token.value, NOW) is not None
    for token in (other, browser):
        assert find_token(connection, token.value, NOW) is None


def test_a_disabled_user_has_no_tokens_and_gets_none_back(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    before = [issue(connection, ann.id, kind, NOW) for kind in Kind]

    disable_user(connection, "ann", NOW)
    assert [find_token(connection, token.value, NOW) for token in before] == [None] * 3
    enable_user(connection, "ann")
    assert [find_token(connection, token.value, NOW) for token in before] == [None] * 3


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("end", [disable_user, lambda c, name, _: delete_user(c, name)])
def test_who_is_gone_gets_no_token(connection: Connection, kind: Kind, end: Any) -> None:
    ann = a_user(connection, "ann")
    end(connection, "ann", NOW)
    with refused(401, "UnauthorizedUserError", "Your token is invalid."):
        issue(connection, ann.id, kind, NOW)


def test_use_is_written_once_in_an_hour(connection: Connection) -> None:
    issued = issue(connection, a_user(connection, "ann").id, Kind.APPLICATION, NOW)

    def due(now: int) -> bool:
        found = find_token(connection, issued.value, now)
        assert found is not None
        return found.use_is_old(now)

    assert due(NOW)
    tokens.note_use(connection, issued.handle, NOW)
    assert not due(NOW + tokens.USE_GRAIN - 1)
    assert due(NOW + tokens.USE_GRAIN)


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(TOKENS)).scalar_one()


def test_what_has_been_over_for_a_day_is_purged(connection: Connection) -> None:
    ann = a_user(connection, "ann")
    issue(connection, ann.id, Kind.SIGN_IN, NOW, 60)
    revoke(connection, ann.id, issue(connection, ann.id, Kind.APPLICATION, NOW).handle, NOW)
    kept = issue(connection, ann.id, Kind.APPLICATION, NOW)

    assert tokens.purge(connection, NOW + OVER - 1) == 0
    assert tokens.purge(connection, NOW + OVER) == 1
    assert tokens.purge(connection, NOW + OVER + 60_000) == 1
    assert handles(connection, ann.id) == [kept.handle]


@pytest.mark.parametrize(("later", "left"), [(OVER - 1, 5), (OVER, 4), (OVER + 60_000, 2)])
def test_signing_in_purges_ones_own(connection: Connection, later: int, left: int) -> None:
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    for user in (ann, ann, bob):
        issue(connection, user.id, Kind.SIGN_IN, NOW, 60)
    revoke(connection, ann.id, issue(connection, ann.id, Kind.APPLICATION, NOW).handle, NOW)

    issue(connection, ann.id, Kind.SIGN_IN, NOW + later)

    assert count(connection) == left


def test_a_script_that_signs_in_for_ever_ends_its_own_oldest(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MOST_SIGNED_IN", 3)
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    for kind in (Kind.APPLICATION, Kind.SIGN_IN):
        for _ in range(3):
            issue(connection, bob.id, kind, NOW)
    application = issue(connection, ann.id, Kind.APPLICATION, NOW)
    kinds = (Kind.SIGN_IN, Kind.BROWSER)
    made = [issue(connection, ann.id, kinds[n % 2], NOW + n) for n in range(3)]
    assert len(list_tokens(connection, ann.id, NOW)) == 4
    made += [issue(connection, ann.id, kinds[n % 2], NOW + n) for n in range(3, 5)]

    assert len(list_tokens(connection, bob.id, NOW)) == 6
    living = {token.handle for token in list_tokens(connection, ann.id, NOW)}

    assert living == {application.handle, *(token.handle for token in made[-3:])}


def test_applications_are_not_ended_for_new_ones(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MOST_APPLICATIONS", 2)
    ann, bob = a_user(connection, "ann"), a_user(connection, "bob")
    issue(connection, bob.id, Kind.APPLICATION, NOW)
    issue(connection, ann.id, Kind.SIGN_IN, NOW)
    first, _ = (issue(connection, ann.id, Kind.APPLICATION, NOW) for _ in range(2))

    with refused(403, "ForbiddenUserError", "revoke those"):
        issue(connection, ann.id, Kind.APPLICATION, NOW)
    revoke(connection, ann.id, first.handle, NOW)
    issue(connection, ann.id, Kind.APPLICATION, NOW)
