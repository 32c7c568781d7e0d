"""Whose process a team's job is: accounts that nobody else is, folders that are theirs alone."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import BadSetting, NotPossible
from regatta.api.job import Phase
from regatta.engines.base import LogQuery, Shell
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from regatta.server.accounts.users import NewUser, User, create_user, delete_user, set_unix_uid
from regatta.server.records.team_database import Database
from regatta.server.team.isolating import isolation as isolation_module
from regatta.server.team.isolating.given_uids import GivenUids
from regatta.server.team.isolating.isolation import (
    Isolation,
    IsolationSettings,
    default_work,
    why_not_uid,
)
from regatta.server.team.isolating.unix_uids import check_uids, find_account, read_uids, take_next
from tests.engines.local.accounts_here import home, needs_root, place
from tests.engines.local.jobs import a_job, a_submission, eventually, texts, wait_for
from tests.engines.local.opening import engine, open_engine

__all__ = ["engine", "home", "open_engine", "place"]

NOW = 1_700_000_000_000
UIDS = range(240_000, 240_010)
#: Debian's account for nobody at all, and one of the system's.
NOBODY, DAEMON = 65534, 1


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path}/team.db")
    yield opened
    opened.close()


@pytest.fixture
def new_user(database: Database) -> Callable[[str], User]:
    return lambda name: database.run_here(create_user, NewUser(name=name), "hash", NOW)


@pytest.fixture
def isolate(database: Database, place: Path) -> Callable[..., Isolation]:
    def make(kind: str = "users", **more: object) -> Isolation:
        said = {"work": place / "work", "uids": UIDS, "register": place / "uids", **more}
        settings = IsolationSettings(kind=kind, **said)  # type: ignore[arg-type]
        return Isolation(settings, database, place / "home/state")

    return make


def shell_for(isolation: Isolation, user: User, job_id: str) -> Shell:
    return asyncio.run(isolation.shell_for(user, job_id))


def uid_of(isolation: Isolation, user: User, job_id: str = "job") -> int:
    who = shell_for(isolation, user, job_id).run_as
    assert who is not None
    return who.uid


# -- settings ----------------------------------------------------------------------------------


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


def test_users_needs_root(
    isolate: Callable[..., Isolation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BadSetting, match="users needs root"):
        isolate()


def test_containers_need_a_runtime(isolate: Callable[..., Isolation], tmp_path: Path) -> None:
    nothing = {"PATH": str(tmp_path)}
    with pytest.raises(BadSetting, match="needs podman or docker, which is not on PATH"):
        isolate("container", environment=nothing)
    with pytest.raises(BadSetting, match="it is podman or docker"):
        isolate("container", runtime="lxc")
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    with pytest.raises(BadSetting, match="needs podman, which"):
        isolate("container", environment=nothing, runtime="podman")
    isolate("container", environment=nothing)


def test_containers_cannot_have_folders_within_each_other(
    isolate: Callable[..., Isolation], tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    for name in ("data/inner", "data-x"):
        (tmp_path / name).mkdir(parents=True)
    nested = tuple(str(tmp_path / name) for name in ("data", "data-x", "data/inner"))
    with pytest.raises(BadSetting, match=r"inner is in .*data; a container"):
        isolate("container", environment={"PATH": str(tmp_path)}, folders=nested)
    with pytest.raises(BadSetting, match="is no folder of this machine"):
        isolate("none", folders=("/no/such/folder",))


@pytest.mark.parametrize("python", ["", "~/bin/python", "venv/bin/python"])
def test_an_interpreter_is_named_by_its_full_path(
    isolate: Callable[..., Isolation], python: str
) -> None:
    with pytest.raises(BadSetting, match=r"images: paddle is .*; write the full path"):
        isolate("none", images={"paddle": python})
    isolate("none", images={"paddle": "/opt/bin/python", "*": "python3.11"})


@needs_root
def test_a_work_folder_has_to_be_where_accounts_reach_it_and_nobody_changes_it(
    isolate: Callable[..., Isolation], place: Path
) -> None:
    (place / "home/state").mkdir(parents=True)
    with pytest.raises(BadSetting, match="lie in each other"):
        isolate(work=place / "home/state/work")
    (place / "closed").mkdir(mode=0o700)
    with pytest.raises(BadSetting, match=r"closed, which other accounts may not pass"):
        isolate(work=place / "closed/work")
    before = os.umask(0o077)
    try:
        isolate(work=place / "new/folder/work")
    finally:
        os.umask(before)
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    with pytest.raises(BadSetting, match="nobody else may write to it"):
        isolate(work=place / "open")


def test_the_work_folder_is_beside_the_state_folder_where_accounts_can_reach_it(
    place: Path,
) -> None:
    (place / "closed").mkdir(mode=0o700)
    assert default_work("users", place / "home/state") == place / "home/work"
    assert default_work("users", place / "closed/state") == Path("/var/lib/regatta/work")
    assert default_work("none", place / "closed/state") == place / "closed/work"


def test_two_servers_do_not_share_a_work_folder(
    isolate: Callable[..., Isolation], database: Database, place: Path
) -> None:
    """Each would take the other's accounts and jobs for its own."""
    isolate("none")
    isolate("none")
    settings = IsolationSettings(kind="none", work=place / "work")
    with pytest.raises(BadSetting, match=r"is that of the server whose state folder is .*/state;"):
        Isolation(settings, database, place / "home/other")


def test_none_says_what_it_does_not_keep(isolate: Callable[..., Isolation]) -> None:
    (said,) = isolate("none").remarks()
    promised = "every member's job runs as root" if os.geteuid() == 0 else "read each other's files"
    assert promised in said


@needs_root
def test_the_others_have_nothing_to_say(isolate: Callable[..., Isolation]) -> None:
    assert isolate("users").remarks() == ()


def test_an_interpreter_that_is_not_there_is_told_at_the_start(
    isolate: Callable[..., Isolation],
) -> None:
    said = isolate("none", images={"a": "/no/such/python", "b": sys.executable}).remarks()[-1]
    assert said.startswith("images: a stands for /no/such/python, which is no program")


# -- uids --------------------------------------------------------------------------------------


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


# -- shells ------------------------------------------------------------------------------------


@needs_root
def test_a_shell_is_of_the_settings_alone(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], place: Path
) -> None:
    isolation = isolate(
        environment={"PATH": "/opt/bin", "HTTP_PROXY": "http://127.0.0.1:1", "TZ": "UTC"},
        images={"paddle": "/opt/paddle/bin/python"},
        folders=("/tmp",),
    )
    shell = shell_for(isolation, new_user("ann"), "ann~first")
    folder = place / "work" / str(UIDS.start)
    assert shell.directory == str(folder / "jobs/ann~first")
    assert shell.environment == {"PATH": "/opt/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
    assert shell.given == {"HTTP_PROXY": "http://127.0.0.1:1"}
    assert shell.images == {"paddle": "/opt/paddle/bin/python"}
    assert (shell.python, shell.runtime, shell.folders) == (None, "none", ("/tmp",))
    assert shell.runs == str(folder / "runs")
    found = Path(shell.directory).stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (UIDS.start, 0o700)
    assert (Path(shell.library) / "regatta/progress.py").stat().st_mode & 0o004
    for above in (folder, folder / "jobs", folder / "runs"):
        assert above.stat().st_uid == 0
        assert not above.stat().st_mode & 0o022


def test_a_container_sees_no_folder_that_the_settings_do_not_name(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    isolation = isolate("container", environment={"PATH": str(tmp_path)})
    shell = shell_for(isolation, new_user("ann"), "first")
    assert (shell.runtime, shell.folders, shell.run_as) == ("docker", (), None)
    assert shell.environment["PATH"] == str(tmp_path)
    assert os.path.isdir(shell.runs)


@pytest.mark.parametrize("kind", ["none", pytest.param("users", marks=needs_root)])
def test_a_jobs_folder_goes_with_it(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], place: Path, kind: str
) -> None:
    isolation = isolate(kind)
    ann = new_user("ann")
    victim = place / "victim"
    (victim / "inner").mkdir(parents=True)
    folders = [
        Path(shell_for(isolation, ann, name).directory) for name in ("one", "preview-two", "three")
    ]
    for folder in folders:
        (folder / "link").symlink_to(victim)
        (folder / "deep/er").mkdir(parents=True)
        (folder / "deep").chmod(0)
    assert isolation.forget("one") is None
    assert isolation.forget("never-was") is None
    assert [folder.exists() for folder in folders] == [False, True, True]
    assert isolation.forget_previews() == []
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert (victim / "inner").is_dir()


@pytest.mark.parametrize("odd", ["", "..", "a/b", "../x", "*", ".hidden", "a" * 300])
def test_a_job_cannot_be_called_another_place(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], odd: str
) -> None:
    isolation = isolate("none")
    with pytest.raises(ValueError, match="names no folder"):
        shell_for(isolation, new_user("ann"), odd)
    with pytest.raises(ValueError, match="names no folder"):
        isolation.forget(odd)


# -- with an engine ----------------------------------------------------------------------------


@needs_root
def test_two_accounts_jobs_run_beside_each_other(
    isolate: Callable[..., Isolation],
    new_user: Callable[[str], User],
    engine: Blocking,
    home: Home,
) -> None:
    isolation = isolate(images={"*": "/usr/bin/python3"}, environment={"TOLD": "by settings"})
    bobs = shell_for(isolation, new_user("bob"), "bobs")
    anns = shell_for(isolation, new_user("ann"), "anns")
    hold(engine, "bobs", "echo mine >secret; touch ready; sleep 600", bobs)
    eventually((Path(bobs.directory) / "ready").exists, "bob's job")
    script = (
        f"id -u; echo $TOLD; echo $HOME; cat {bobs.directory}/secret; ls {home.path}; "
        "python3 -c 'import regatta; regatta.progress(1, total=2); print(1)'; touch $HOME/kept"
    )
    hold(engine, "anns", script, anns)
    wait_for(engine, "anns", Phase.COMPLETED)
    said = texts(engine.logs("default", "anns", LogQuery()))
    assert anns.run_as is not None
    assert said[:3] == [str(UIDS.start + 1), "by settings", anns.run_as.home]
    assert [line for line in said[3:] if "Permission denied" in line] == said[3:5]
    assert said[5:] == ["1"]
    progress = engine.get("default", "anns").status.progress
    assert progress is not None
    assert progress.step == 1
    engine.delete("default", "anns")
    eventually(lambda: not list(Path(anns.runs).iterdir()), "the end of what it wrote")
    assert isolation.forget("anns") is None


def hold(engine: Blocking, name: str, script: str, shell: Shell) -> None:
    submission, _ = a_submission(a_job(name, script))
    engine.submit(submission, shell)
