from __future__ import annotations

from typing import Any

import pytest

from regatta.server.accounts import account_rules as rules
from tests.server.accounts.people import refused

SYSTEMS = ("me", "guest", "anonymous", "nobody", "root", "system", "regatta", ".", "..")


@pytest.mark.parametrize("name", ["ann", "Ann", "a.b-c_d", "7", "a" * 64, "-x", "admin"])
def test_names_of_users_are_openpais(name: str) -> None:
    assert rules.check_user_name(name) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "username is '';"),
        ("a b", "letters, digits"),
        ("ann\n", "letters, digits"),
        ("a~b", "letters, digits"),
        ("a/b", "letters, digits"),
        ("änn", "letters, digits"),
        ("a" * 65, "64 at most"),
        ("ROOT", "the system keeps"),
        *((name, f"username is {name!r}, which the system keeps") for name in SYSTEMS),
        (None, "letters, digits"),
    ],
)
def test_other_names_are_refused_with_what_is_right(name: Any, said: str) -> None:
    with refused(400, "InvalidParametersError", said):
        rules.check_user_name(name)


@pytest.mark.parametrize("name", ["a.b", "a-b", "", "a" * 65])
def test_names_of_groups_have_letters_digits_and_underscores(name: str) -> None:
    with refused(400, "InvalidParametersError", "groupname"):
        rules.check_group_name(name)


@pytest.mark.parametrize("password", ["sixsix", "x" * 1024, "a b c d e f", "пароль"])
def test_six_characters_are_a_password(password: str) -> None:
    assert rules.check_password("ann", password) == password


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("short", "at least 6"),
        ("", "at least 6"),
        ("x" * 1025, "1024 bytes"),
        ("п" * 513, "1024 bytes"),
        ("Annabella", "user's name"),
        (None, "at least 6"),
    ],
)
def test_a_password_that_will_not_do_is_refused_and_not_told(password: Any, said: str) -> None:
    with refused(400, "InvalidParametersError", said) as _:
        rules.check_password("annabella", password)


def test_half_a_character_is_a_password_like_any_other() -> None:
    assert rules.password_bytes("\ud800") == b"\xed\xa0\x80"


def test_an_accent_typed_in_two_ways_is_one_password() -> None:
    assert rules.password_bytes("caf\u00e9") == rules.password_bytes("cafe\u0301")


@pytest.mark.parametrize("email", ["", "ann@example.org", "a@" + "b" * 254])
def test_an_address_or_nothing_is_an_email(email: str) -> None:
    assert rules.check_email(email) == email


@pytest.mark.parametrize(
    "email", ["ann", "a@b\nBcc: all@x", "a b@c", "@", "a@" + "b" * 255, 7, 0, None, "a\0@b"]
)
def test_what_would_break_a_header_is_no_email(email: Any) -> None:
    with refused(400, "InvalidParametersError", "email"):
        rules.check_email(email)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "extension",
    [
        [],
        None,
        "x",
        {"a": float("nan")},
        {"a": object()},
        {"a": "\ud800"},
        {"a": "x" * (65_536 - len('{"a": ""}') + 1)},
        nested(17),
        {"a": [nested(16)]},
        nested(5000),
    ],
    ids=["list", "null", "text", "nan", "object", "half", "large", "deep", "list in it", "abyss"],
)
def test_an_extension_is_an_object_of_a_size_that_can_be_kept(extension: Any) -> None:
    with refused(400, "InvalidParametersError", "extension"):
        rules.check_extension(extension)


@pytest.mark.parametrize(
    "extension",
    [
        {},
        {"sshKeys": [{"title": "a", "value": "ssh-rsa A"}]},
        {"a": "x" * (65_536 - len('{"a": ""}'))},
        nested(16),
    ],
    ids=["empty", "keys", "large", "deep"],
)
def test_an_extension_is_the_clients_own(extension: Any) -> None:
    assert rules.check_extension(extension) == extension


@pytest.mark.parametrize(
    ("group", "acls", "said"),
    [
        ("devs", {"admin": True}, "admingroup makes"),
        ("admingroup", {"admin": False}, "admingroup makes"),
        ("devs", {"admin": "yes"}, "true or false"),
        ("devs", [], "must be an object"),
        ("devs", {"virtualClusters": "default"}, "list"),
        ("devs", {"storageConfigs": ["a/b"]}, "letters, digits"),
    ],
)
def test_what_a_group_grants_is_looked_at(group: str, acls: Any, said: str) -> None:
    with refused(400, "InvalidParametersError", said):
        rules.check_group_extension(group, {"acls": acls})


def test_a_virtual_cluster_must_be_there_where_that_is_known() -> None:
    assert rules.check_clusters(["a", "b", "a"], None) == ["a", "b"]
    assert rules.check_clusters(["a"], {"a"}) == ["a"]
    with refused(400, "NoVirtualClusterError", "Virtual cluster b is not found."):
        rules.check_clusters(["a", "b"], {"a"})


@pytest.mark.parametrize("clusters", [["a" * 65], [str(n) for n in range(257)], "a", [1], [""]])
def test_names_of_clusters_are_few_and_short(clusters: Any) -> None:
    with refused(400, "InvalidParametersError", "virtualCluster"):
        rules.check_clusters(clusters, None)


def test_as_many_and_as_long_as_that_will_do() -> None:
    clusters = ["a" * 64, *(str(n) for n in range(255))]
    assert rules.check_clusters(clusters, None) == clusters
    assert rules.check_text("description", "x" * 4096)
    with refused(400, "InvalidParametersError", "description"):
        rules.check_text("description", "x" * 4097)
    assert rules.check_uid(2**32 - 2)


@pytest.mark.parametrize("uid", [0, -1, 2**32 - 1, True, "5"])
def test_nobodys_replicas_run_as_root(uid: Any) -> None:
    with refused(400, "InvalidParametersError", "unix uid"):
        rules.check_uid(uid)
