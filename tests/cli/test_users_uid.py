"""`regatta users uid`: what the isolation would refuse at a submit is refused at the command."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from regatta.server.accounts.users import get_user
from regatta.server.records.team_database import Database
from regatta.server.team.isolating.isolation import Isolation, IsolationSettings
from tests.doors import Regatta, Said
from tests.engines.local.accounts_here import needs_root, place
from tests.server.accounts.people import PASSWORD

__all__ = ["place"]

FREE = "24871"


@pytest.fixture
def own(tmp_path: Path, place: Path) -> Regatta:
    """With two accounts, and a folder for jobs."""
    regatta = Regatta(tmp_path)
    (tmp_path / "home").mkdir()
    users = {"kind": "users", "work": str(place / "work"), "register": str(place / "uids")}
    settings = {"team": {"isolation": users}}
    (tmp_path / "home/config.yaml").write_text(yaml.safe_dump(settings))
    for name in ("ann", "bob"):
        add(regatta, name)
    return regatta


def add(regatta: Regatta, name: str) -> None:
    done = regatta("users", "add", name, "--password-file", "-", stdin=PASSWORD)
    assert done.code == 0, done.err


@pytest.fixture
def uid(own: Regatta) -> Callable[[str, str], Said]:
    return lambda name, number: own("users", "uid", name, number)


def test_a_uid_that_no_job_may_run_as_is_refused(uid: Callable[[str, str], Said]) -> None:
    for number in ("1", "999", "65534", "65535", "2147483648", "9" * 5000):
        done = uid("ann", number)
        assert (done.code, done.out) == (2, ""), number
        assert "from 1000 to 2147483647" in done.err
        assert "or none" in done.err
        assert "regatta describe" not in done.err


def test_a_uid_of_another_account_is_refused(uid: Callable[[str, str], Said]) -> None:
    assert uid("bob", FREE).code == 0
    done = uid("ann", FREE)
    assert (done.code, "bob's" in done.err) == (2, True), done.err


@needs_root
def test_a_group_of_others_with_the_number_is_refused_as_at_a_submit(
    uid: Callable[[str, str], Said],
) -> None:
    subprocess.run(["groupadd", "--gid", "24872", "regattaothers"], check=True)
    try:
        done = uid("ann", "24872")
    finally:
        subprocess.run(["groupdel", "regattaothers"], check=True)
    assert (done.code, "group 24872" in done.err) == (2, True), done.err


@needs_root
def test_a_uid_under_which_another_account_left_its_home_is_refused(
    own: Regatta, uid: Callable[[str, str], Said], place: Path
) -> None:
    assert uid("bob", FREE).code == 0
    _submit(own, place, "bob")
    assert own("users", "remove", "bob").code == 0

    done = uid("ann", FREE)

    assert done.code == 2
    assert f"{place / 'work' / FREE} holds files of another account" in done.err
    assert os.stat(place / "work" / FREE / "home").st_uid == int(FREE)


@needs_root
def test_an_account_gets_the_uid_back_under_which_its_own_home_is(
    own: Regatta, uid: Callable[[str, str], Said], place: Path
) -> None:
    uid("ann", FREE)
    _submit(own, place, "ann")
    assert uid("ann", "none").code == 0
    done = uid("ann", FREE)
    assert (done.code, done.out) == (0, f"jobs of ann run as {FREE}\n"), done.err


@pytest.mark.parametrize("other", ["none", "24873"])
def test_who_gets_another_uid_is_told_whose_the_files_are_now(
    uid: Callable[[str, str], Said], other: str
) -> None:
    first = uid("ann", FREE)
    assert (first.code, "no longer" in first.out) == (0, False), first
    assert "no longer" not in uid("ann", FREE).out
    done = uid("ann", other)
    assert done.code == 0
    assert f"files of uid {FREE}, the home of ann among them, are no longer its own" in done.out
    assert f"`regatta users uid ann {FREE}`" in done.out
    assert "no longer" not in uid("bob", "none").out  # who had none


@needs_root
def test_who_is_a_person_of_this_machine_gets_that_uid_again_and_loses_nothing(
    own: Regatta, uid: Callable[[str, str], Said]
) -> None:
    name, number = "regattauidtest", "24874"
    subprocess.run(["useradd", "--uid", number, "--no-create-home", name], check=True)
    try:
        add(own, name)
        assert uid(name, number).code == 0
        assert uid(name, "none").out == f"jobs of {name} run as a uid that the server chooses\n"
    finally:
        subprocess.run(["userdel", name], check=True)


def _submit(own: Regatta, place: Path, name: str) -> None:
    """As far as the isolation goes: the folders of an account's job."""
    database = Database(f"sqlite:///{next((own.folder / 'home').rglob('team.db'))}")
    try:
        isolation = Isolation(
            IsolationSettings("users", work=place / "work", register=place / "uids"),
            database,
            place / "home/state",
        )
        asyncio.run(isolation.shell_for(database.read_here(get_user, name), "job"))
    finally:
        database.close()
