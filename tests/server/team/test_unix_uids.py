"""Which uid of the machine an account is: its own for good, and nobody else's."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import BadSetting, NotPossible
from regatta.engines.base import Shell
from regatta.server.accounts.users import NewUser, User, create_user, delete_user, set_unix_uid
from regatta.server.records.team_database import Database
from regatta.server.team.isolating import isolation as isolation_module
from regatta.server.team.isolating.given_uids import GivenUids
from regatta.server.team.isolating.isolation import (
    Isolation,
    IsolationSettings,
    why_not_uid,
)
from regatta.server.team.isolating.unix_uids import check_uids, find_account, read_uids, take_next
from tests.engines.local.accounts_here import needs_root, place
from tests.server.team.isolations import NOW, UIDS, database, isolate, new_user, shell_for, uid_of

__all__ = ["database", "isolate", "new_user", "place"]

#: Debian's account for nobody at all, and one of the system's.
NOBODY, DAEMON = 65534, 1


@pytest.mark.parametrize(
    ("uids", "words"),
    [
        (range(900, 2000), "those below 1000 are the system's"),
        (range(10), "those below 1000 are the system's"),
        (range(60_000, 70_000), "(nobody) is the system's"),
        (range(2000, 2000), "in which there is none"),
        (range(2000, 2**32), "the last may be"),
    ],
)
def test_a_range_that_is_not_the_accounts_alone_is_refused(uids: range, words: str) -> None:
    with pytest.raises(BadSetting) as refused:
        check_uids(uids, ())
    assert words in str(refused.value)
    assert "uids: is" in str(refused.value)


def test_a_range_that_somebodys_containers_use_is_refused(tmp_path: Path) -> None:
    subuid = tmp_path / "subuid"
    subuid.write_text("# comment\ncarol:231072:65536\nodd line\n")
    with pytest.raises(BadSetting, match=r"231072-296607 are carol's for containers"):
        check_uids(range(200_000, 300_000), [subuid])
    check_uids(range(200_000, 231_072), [subuid])
    check_uids(range(296_608, 300_000), [subuid])


def test_a_range_is_written_as_first_and_last() -> None:
    assert read_uids("200000-299999") == range(200_000, 300_000)
    for wrong in ("200000", "a-b", "-5-10", "1-2-3", ""):
        with pytest.raises(BadSetting, match="write the first and the last"):
            read_uids(wrong)


@needs_root
def test_each_account_gets_a_uid_of_the_range_for_good(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User]
) -> None:
    isolation = isolate()
    ann, bob = new_user("ann"), new_user("bob")
    assert uid_of(isolation, ann) == UIDS.start
    assert uid_of(isolation, bob) == UIDS.start + 1
    assert uid_of(isolation, ann, "again") == UIDS.start
    again = isolate()  # another server
    assert uid_of(again, bob) == UIDS.start + 1
    assert uid_of(again, new_user("carol")) == UIDS.start + 2


@needs_root
def test_accounts_whose_first_jobs_come_at_once_get_one_each(
    isolate: Callable[..., Isolation],
    new_user: Callable[[str], User],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once, most = [], []

    def counted(*args: Any) -> int:
        at_once.append("one")
        most.append(len(at_once))
        uid = take_next(*args)
        at_once.pop()
        return uid

    monkeypatch.setattr(isolation_module, "take_next", counted)
    isolation, users = isolate(), [new_user(f"new-{number}") for number in range(4)]

    async def all_of_them() -> list[Shell]:
        return await asyncio.gather(*(isolation.shell_for(user, user.name) for user in users))

    shells = asyncio.run(all_of_them())
    assert len({shell.run_as.uid for shell in shells if shell.run_as}) == len(users)
    assert most == [1] * len(users)  # each on record before the next looks


def test_a_uid_is_never_given_twice(
    isolate: Callable[..., Isolation],
    new_user: Callable[[str], User],
    database: Database,
    place: Path,
) -> None:
    isolation = isolate()
    assert uid_of(isolation, new_user("ann")) == UIDS.start
    database.run_here(delete_user, "ann")
    shutil.rmtree(place / "work" / str(UIDS.start))  # an admin tidied up; files elsewhere may stay
    assert uid_of(isolate(), new_user("ann")) == UIDS.start + 1


@needs_root
def test_a_range_that_is_used_up_says_so(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User]
) -> None:
    isolation = isolate(uids=range(240_000, 240_001))
    uid_of(isolation, new_user("ann"))
    with pytest.raises(NotPossible, match="none is given twice"):
        uid_of(isolation, new_user("bob"))


@needs_root
def test_what_one_account_left_is_not_the_next_ones(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], database: Database
) -> None:
    isolation = isolate()
    uid = uid_of(isolation, new_user("ann"))
    database.run_here(delete_user, "ann")
    new_user("bob")
    bob = database.run_here(set_unix_uid, "bob", uid)
    with pytest.raises(NotPossible, match="holds files of another account"):
        uid_of(isolation, bob)


@needs_root
@pytest.mark.parametrize("uid", [DAEMON, 999, NOBODY, 65535])
def test_nobody_is_one_of_the_systems(
    isolate: Callable[..., Isolation],
    new_user: Callable[[str], User],
    database: Database,
    uid: int,
) -> None:
    new_user("ann")
    ann = database.run_here(set_unix_uid, "ann", uid)
    with pytest.raises(NotPossible, match=r"one of the system's"):
        uid_of(isolate(), ann)


@needs_root
@pytest.mark.parametrize("name", ["daemon", "mail", "www-data"])
def test_an_account_that_is_called_like_the_systems_is_not_it(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], name: str
) -> None:
    assert uid_of(isolate(), new_user(name)) in UIDS


@needs_root
def test_the_servers_own_uid_is_nobodys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 240_005)
    with pytest.raises(NotPossible, match="the server's own"):
        find_account("ann", 240_005, GivenUids(tmp_path, tmp_path))


def test_a_register_that_cannot_be_used_is_told_to_whoever_needs_it(tmp_path: Path) -> None:
    register = tmp_path / "uids"
    given = GivenUids(register, tmp_path / "work")
    with pytest.raises(NotPossible, match=r"uids, where the machine keeps .+ cannot be used"):
        given.take(240_005)  # nobody has made it
    given.open()
    (register / "240006").touch()
    for ask in (given.take, given.claim, given.why_anothers):
        with pytest.raises(NotPossible, match="an admin of the machine looks at it"):
            ask(240_006)
    assert given.take(240_005)


@needs_root
def test_servers_that_share_a_range_give_no_uid_twice(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], place: Path, tmp_path: Path
) -> None:
    """Two installations on one machine, each with its own database and both with the same range."""
    first, ann, bob = isolate(), new_user("ann"), new_user("bob")
    assert uid_of(first, ann) == UIDS.start
    other_database = Database(f"sqlite:///{tmp_path}/other.db")
    try:
        settings = IsolationSettings(
            "users", work=place / "other/work", uids=UIDS, register=place / "uids"
        )
        second = Isolation(settings, other_database, place / "other/state")
        carl = other_database.run_here(create_user, NewUser(name="carl"), "hash", NOW)
        dora = other_database.run_here(create_user, NewUser(name="dora"), "hash", NOW)

        assert uid_of(second, carl) == UIDS.start + 1
        assert uid_of(first, bob) == UIDS.start + 2
        dora = other_database.run_here(set_unix_uid, "dora", UIDS.start)
        with pytest.raises(NotPossible, match=f"the server whose jobs work in {place}/work"):
            uid_of(second, dora)
        assert "the server whose jobs" in why_not_uid(
            dora, UIDS.start, place / "other/work", place / "uids"
        )
    finally:
        other_database.close()


@needs_root
def test_a_server_whose_work_folder_was_moved_keeps_its_uids(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], place: Path
) -> None:
    ann, bob = new_user("ann"), new_user("bob")
    uid_of(isolate(), ann)
    (place / "work").rename(place / "moved")

    moved = isolate(work=place / "moved")

    assert uid_of(moved, ann) == UIDS.start
    assert uid_of(moved, bob) == UIDS.start + 1
    assert (place / "uids" / str(UIDS.start)).readlink() == place / "moved"


@pytest.fixture
def a_person() -> Iterator[pwd.struct_passwd]:
    """A Unix account with a group besides its own, for the time of a test."""
    name, group = "regattatest", "regattagroup"
    subprocess.run(["groupadd", "--gid", "24777", group], check=True)
    subprocess.run(
        ["useradd", "--uid", "24778", "--no-create-home", "--groups", group, name], check=True
    )
    yield pwd.getpwnam(name)
    subprocess.run(["userdel", name], check=True)
    subprocess.run(["groupdel", group], check=True)


@needs_root
def test_a_person_of_this_machine_is_who_has_the_same_name(
    isolate: Callable[..., Isolation],
    new_user: Callable[[str], User],
    a_person: pwd.struct_passwd,
    database: Database,
) -> None:
    isolation = isolate()
    who = shell_for(isolation, new_user(a_person.pw_name), "job").run_as
    assert who is not None
    assert (who.uid, who.gid, who.name) == (24778, a_person.pw_gid, a_person.pw_name)
    assert 24777 in who.groups
    assert who.home != a_person.pw_dir  # there is no such folder
    # Held by somebody else, it is not shared.
    database.run_here(delete_user, a_person.pw_name)
    new_user("other")
    database.run_here(set_unix_uid, "other", 24778)
    assert uid_of(isolation, new_user(a_person.pw_name)) in UIDS
