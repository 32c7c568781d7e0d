"""What a setting may say of a team's database, and that nothing repeats its password."""

from __future__ import annotations

import pytest

from regatta.api.errors import BadSetting
from regatta.server.records.database_url import read_url

SECRET = "hunter2/@:"

WRONG = {
    "no URL at all": ("/var/lib/records", "found no URL"),
    "another database": ("mysql://u:hunter2@h/d", "found a URL of 'mysql'"),
    "another driver": ("postgresql+asyncpg://u:hunter2@h/d", "'postgresql\\+asyncpg'"),
    "a port that is none": ("postgresql://u:hunter2@h:port/d", "postgresql URL cannot be read"),
    "an @ in the password": ("postgresql://u:hunter2@x@h:1/d", "as %3A, %2F or %40"),
    "an @ and a slash in it": ("postgresql://u:hunter2@x/y@h:1/d", "as %3A, %2F or %40"),
    "a slash in the password": ("postgresql://u:hunter2/x@h:1:2/d", "as %3A, %2F or %40"),
    "a SQLite without a file": ("sqlite://", "names no file"),
    "a SQLite in memory": ("sqlite:///:memory:", "names no file"),
    "a SQLite with two slashes": ("sqlite://var/records", "four slashes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_database_is_refused_with_what_is_right_and_without_its_password(
    case: str,
) -> None:
    said, expected = WRONG[case]
    with pytest.raises(BadSetting, match=expected) as refused:
        read_url(said)
    assert "sqlite:////" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


SPOKEN = {
    "sqlite:////var/lib/team/records.sqlite": "/var/lib/team/records.sqlite",
    "postgresql://u:hunter2@db.example:5433/team": "PostgreSQL team at db.example:5433",
    "postgres://u:hunter2@db.example/team?sslmode=require": "PostgreSQL team at db.example",
    "postgresql:///team?host=/run/pg&password=hunter2": "PostgreSQL team at /run/pg",
    "postgresql:///team": "PostgreSQL team at this machine",
}


@pytest.mark.parametrize("said", SPOKEN)
def test_a_database_is_spoken_of_without_user_and_password(said: str) -> None:
    assert str(read_url(said)) == SPOKEN[said]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2%2F%40%3A@h/d",
        "postgresql://u@h/d?password=hunter2%2F%40%3A",
        "postgresql://u@h/d?sslpassword=hunter2%2F%40%3A",
    ],
)
def test_what_a_driver_said_loses_the_password_in_every_form(url: str) -> None:
    address = read_url(url)
    said = f"could not use {SECRET}, nor hunter2%2F%40%3A"
    assert address.without_secrets(said) == "could not use ***, nor ***"


def test_what_a_url_says_of_patience_wins_over_ours() -> None:
    assert read_url("postgresql://h/d?connect_timeout=60").url.query["connect_timeout"] == "60"
    assert read_url("postgresql://h/d").url.query["connect_timeout"] == "3"


def test_a_password_that_is_part_of_words_is_masked_only_where_passwords_stand() -> None:
    said = "database b is busy: postgresql://u:b@h/d, password=b"
    masked = "database b is busy: postgresql://u:***@h/d, password=***"
    assert read_url("postgresql://u:b@h/d").without_secrets(said) == masked
