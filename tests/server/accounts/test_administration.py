from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, create_engine

from regatta.server.accounts import administration as admin
from regatta.server.accounts.audit import read_audit
from regatta.server.accounts.passwords import Hashes
from regatta.server.accounts.tokens import Kind, find_token, issue
from regatta.server.accounts.users import stored_password
from regatta.server.records.metadata import METADATA
from tests.server.accounts.people import CHEAP, NOW, PASSWORD, refused

HASHES = Hashes(CHEAP)


def add(connection: Connection, name: str, *, boss: bool = False) -> None:
    admin.add_user(connection, HASHES, name, PASSWORD, NOW, admin=boss)


def words(connection: Connection) -> list[str]:
    return [entry.what for entry in reversed(read_audit(connection).entries)]


def test_the_first_admin_is_made_in_an_empty_database(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/empty.db")
    METADATA.create_all(engine)
    with engine.begin() as connection:
        made = admin.add_user(connection, HASHES, "boss", PASSWORD, NOW, admin=True, email="b@c")
        assert (made.admin, made.email) == (True, "b@c")
        assert [group.name for group in admin.list_groups(connection, NOW)] == [
            "admingroup",
            "default",
        ]
    engine.dispose()


def test_a_password_works_and_is_in_no_audit(connection: Connection) -> None:
    add(connection, "ann")
    admin.change_password(connection, HASHES, "ann", "another word", NOW)

    stored = stored_password(connection, "ann")
    assert stored is not None
    assert HASHES.check(stored.password, "another word").right
    entries = read_audit(connection).entries
    assert "another word" not in repr(entries)
    assert PASSWORD not in repr(entries)
    assert {entry.who for entry in entries} == {"regatta"}


def test_a_new_password_ends_sign_ins_and_no_application(connection: Connection) -> None:
    add(connection, "ann")
    ann = admin.list_users(connection)[0]
    session = issue(connection, ann.id, Kind.SIGN_IN, NOW)
    program = issue(connection, ann.id, Kind.APPLICATION, NOW)
    admin.change_password(connection, HASHES, "ann", "another word", NOW)
    assert find_token(connection, session.value, NOW) is None
    assert find_token(connection, program.value, NOW) is not None


def test_every_command_does_its_work_and_leaves_its_words(connection: Connection) -> None:
    add(connection, "boss", boss=True)
    add(connection, "ann")
    assert admin.set_admin(connection, "ann", True, NOW).admin
    assert not admin.set_admin(connection, "ann", False, NOW).admin
    assert admin.disable_user(connection, "ann", NOW).disabled == NOW
    assert admin.enable_user(connection, "ann", NOW).disabled is None
    assert admin.set_unix_uid(connection, "ann", 5000, NOW).unix_uid == 5000
    assert admin.add_group(connection, "devs", NOW, "we").description == "we"
    assert admin.join_group(connection, "ann", "devs", NOW).groups == ("default", "devs")
    assert admin.leave_group(connection, "ann", "devs", NOW).groups == ("default",)
    admin.remove_group(connection, "devs", NOW)
    admin.remove_user(connection, "ANN", NOW)
    assert [user.name for user in admin.list_users(connection)] == ["boss"]
    assert words(connection) == [
        "users add --admin boss",
        "users add ann",
        "users promote ann",
        "users demote ann",
        "users disable ann",
        "users enable ann",
        "users uid ann 5000",
        "groups add devs",
        "groups join devs ann",
        "groups leave devs ann",
        "groups remove devs",
        "users remove ann",
    ]


def test_the_rules_hold_here_too(connection: Connection) -> None:
    add(connection, "boss", boss=True)
    with refused(400, "InvalidParametersError", "at least 6"):
        admin.add_user(connection, HASHES, "ann", "short", NOW)
    with refused(409, "ConflictUserError"):
        add(connection, "BOSS")
    with refused(403, "RemoveAdminError"):
        admin.remove_user(connection, "boss", NOW)
    with refused(403, "ForbiddenUserError", "last admin"):
        admin.set_admin(connection, "boss", False, NOW)
    with refused(400, "InvalidParametersError", "user's name"):
        admin.add_user(connection, HASHES, "annabel", "Annabel", NOW)
    assert words(connection) == ["users add --admin boss"]
