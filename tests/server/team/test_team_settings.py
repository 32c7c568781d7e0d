"""`team:` in `config.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import BadSetting
from regatta.server.accounts.rate_limits import Rate, Rates
from regatta.server.accounts.visibility import Visibility
from regatta.server.team.isolating.isolation import IsolationSettings
from regatta.server.team.isolating.isolation_settings import isolation_of
from regatta.server.team.team_settings import (
    TeamSettings,
    about_share,
    read_team_settings,
    share_of,
    team_database_url,
)

FILE = Path("/etc/config.yaml")


def test_a_file_that_says_nothing_means_the_usual() -> None:
    assert read_team_settings(FILE, None) == TeamSettings()


def test_every_setting_is_read() -> None:
    said = {
        "database": "postgresql://db/regatta",
        "visibility": "group",
        # YAML reads a bare `off` as false.
        "rates": {"submits": False, "signInName": "5/2min"},
        "keepDays": 30,
        "auditDays": 0,
        "signIn": "openpai",
        "defaultFsUri": "/data",
        "virtualClusters": ["gpu"],
        "publicUrls": ["https://train.example.org"],
        "isolation": {"kind": "users"},
    }
    assert read_team_settings(FILE, said) == TeamSettings(
        database="postgresql://db/regatta",
        visibility=Visibility.GROUP,
        rates=Rates(submits=Rate(0, 1.0), sign_in_name=Rate(5, 120.0)),
        keep_days=30,
        audit_days=0,
        tells_unknown_users=True,
        default_fs_uri="/data",
        virtual_clusters=("default", "gpu"),
        public_urls=("https://train.example.org",),
        isolation={"kind": "users"},
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("own", "team is 'own'; write a map"),
        ({"visible": "own"}, "team.visible is unknown; it may hold database, visibility"),
        ({"visibility": "some"}, "team.visibility is 'some'; write own, group or all"),
        ({"rates": "off"}, "team.rates is 'off'; write a map"),
        ({"rates": {"submit": "1/s"}}, "there is no rate 'submit'; there are requests, lists"),
        ({"rates": {"submits": "many"}}, "submits is 'many'; write a number, a slash"),
        ({"keepDays": -1}, "team.keepDays is -1; write a number of days"),
        ({"keepDays": True}, "team.keepDays is True"),
        ({"signIn": "both"}, "team.signIn is 'both'; write alike or openpai"),
        ({"virtualClusters": ["a b"]}, "team.virtualClusters: it has 'a b'"),
        ({"publicUrls": "https://a"}, "team.publicUrls is 'https://a'; write a list"),
        ({"publicUrls": ["a.example"]}, "team.publicUrls is ['a.example']; write a list of URLs"),
        ({"publicUrls": ["https://a/b"]}, "write a list of URLs without a path, such as"),
        ({"isolation": "users"}, "team.isolation is 'users'; write a map"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_right(said: Any, told: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read_team_settings(FILE, said)
    assert str(FILE) in str(refused.value)
    assert told in str(refused.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(BadSetting, match=r"team\.a is unknown.*team\.keepDays is 'x'"):
        read_team_settings(FILE, {"a": 1, "keepDays": "x"})


def test_without_a_word_the_database_is_beside_the_servers_files() -> None:
    assert team_database_url(Path("/srv"), TeamSettings()) == "sqlite:////srv/team.db"
    named = TeamSettings(database="postgresql://db")
    assert team_database_url(Path("/srv"), named) == "postgresql://db"


def test_isolation_is_read_and_the_command_line_goes_first() -> None:
    said = {
        "kind": "none",
        "work": "/srv/work",
        "uids": "300000-300009",
        "folders": ["/data"],
        "images": {"paddle:2.6": "/opt/paddle/bin/python"},
        "runtime": "podman",
        "environment": {"LANG": "C"},
    }
    assert isolation_of(said, "container", "127.0.0.1") == IsolationSettings(
        kind="container",
        work=Path("/srv/work"),
        uids=range(300000, 300010),
        folders=("/data",),
        images={"paddle:2.6": "/opt/paddle/bin/python"},
        runtime="podman",
        environment={"LANG": "C"},
    )
    assert isolation_of(said, None, "127.0.0.1").kind == "none"


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::"])
def test_beyond_this_machine_it_must_be_said_whose_processes_they_are(host: str) -> None:
    assert isolation_of({}, None, "127.0.0.1", root=False).kind == "none"
    with pytest.raises(BadSetting, match="add --isolation users"):
        isolation_of({}, None, host)
    assert isolation_of({}, "none", host).kind == "none"


def test_as_root_it_must_be_said_on_loopback_too() -> None:
    with pytest.raises(BadSetting, match=r"started as root.* add --isolation users, container or"):
        isolation_of({}, None, "127.0.0.1", root=True)
    assert isolation_of({"kind": "none"}, None, "127.0.0.1", root=True).kind == "none"
    assert isolation_of({}, "none", "127.0.0.1", root=True).kind == "none"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"kinds": 1}, "team.isolation.kinds is unknown; it may hold kind, work"),
        ({"kind": "user"}, "team.isolation.kind is 'user'; write users, container, none"),
        ({"uids": "9-1"}, "team.isolation.uids is '9-1'; write the first and the last"),
        ({"uids": 5}, "team.isolation.uids is 5"),
        ({"folders": "/data"}, "team.isolation.folders is '/data'; write a list"),
        ({"images": ["a"]}, "team.isolation.images is"),
        ({"work": "work"}, "team.isolation.work is 'work'; write the full path of a folder"),
    ],
)
def test_what_is_wrong_with_isolation_is_named(said: dict[str, Any], told: str) -> None:
    with pytest.raises(BadSetting) as refused:
        isolation_of(said, None, "127.0.0.1", root=False, file=Path("/srv/config.yaml"))
    assert f"/srv/config.yaml: {told}" in str(refused.value)


def test_a_share_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    for there in (str(tmp_path), f"file://{tmp_path}"):
        assert share_of(there, file) == tmp_path
        assert about_share(tmp_path) == ()
    for elsewhere in ("", "hdfs://cluster/x"):
        assert share_of(elsewhere, file) is None
    assert about_share(None) == ()
    (said,) = about_share(share_of(str(tmp_path / "none"), file))
    assert f"names {tmp_path}/none, which is no folder of this machine now" in said
    with pytest.raises(BadSetting, match=r"team.defaultFsUri is 'share'; write a path that begins"):
        share_of("share", file)
