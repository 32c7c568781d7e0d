"""OpenPAI's operations on accounts: what each is to people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.server.accounts.people import PASSWORD
from tests.server.team.authorisation.asks import Ask, For, Place, Table
from tests.server.team.authorisation.world import OWNER, World


def a_user(world: World) -> dict[str, str]:
    return {"user": world.a_user()}


def a_group(world: World) -> dict[str, str]:
    return {"group": world.a_group()}


def a_token(world: World) -> dict[str, str]:
    return {"token": world.a_token(OWNER)}


def _json(**body: Any) -> Callable[[Place], dict[str, Any]]:
    """Texts may have braces."""

    def filled(value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            return {key: filled(one, place) for key, one in value.items()}
        return value.format(**place) if isinstance(value, str) else value

    return lambda place: {"body": filled(body, place)}


def _admins(sends: Callable[[Place], dict[str, Any]], **more: Any) -> tuple[Ask, ...]:
    return (Ask(whom=For.ADMINS, ok=201, sends=sends, **more),)


def _own(sends: Callable[[Place], dict[str, Any]]) -> tuple[Ask, ...]:
    """Of one's own account, or anybody's by an admin."""
    return (Ask(whom=For.THE_USER, ok=201, sends=sends, spends=a_user, spends_owner=True),)


_EVERYBODY, _PERSONS = (Ask(whom=For.EVERYBODY),), (Ask(whom=For.PERSONS),)
_SIGNS_IN = (
    Ask(
        whom=For.EVERYBODY,
        sends=lambda _: {"form": {"username": "bystander", "password": PASSWORD}},
    ),
)
SIGNING_IN: Table = {
    ("GET", "/api/v1"): _EVERYBODY,
    ("GET", "/api/v2/info"): _EVERYBODY,
    ("GET", "/api/v1/authn/info"): _EVERYBODY,
    ("GET", "/api/v2/authn/info"): _EVERYBODY,
    ("POST", "/api/v1/token"): _SIGNS_IN,
    ("POST", "/api/v2/authn/basic/login"): _SIGNS_IN,
    ("DELETE", "/api/v2/authn/basic/logout"): (Ask(whom=For.PERSONS, spends_token=True),),
    ("GET", "/api/v2/tokens"): _PERSONS,
    ("POST", "/api/v2/tokens/application"): _PERSONS,
    ("GET", "/api/v2/tokens/check"): (Ask(whom=For.THE_SIGNED_IN),),
    ("DELETE", "/api/v2/tokens/{token}"): (Ask(whom=For.THE_HOLDER, spends=a_token),),
}


def _users(users: str) -> Table:
    one = users + "/{user}"
    new = {"username": "{newuser}", "password": PASSWORD}
    return {
        ("GET", users): (Ask(whom=For.ADMINS),),
        ("POST", users): _admins(_json(**new)),
        ("PUT", users): _admins(
            _json(data={"username": "{user}", "email": "a@example.com"}, patch=True),
            spends=a_user,
        ),
        ("GET", users + "/me"): (Ask(whom=For.PERSONS),),
        ("GET", one): (Ask(whom=For.THE_USER),),
        ("DELETE", one): (Ask(whom=For.ADMINS, spends=a_user),),
        ("PUT", users + "/me"): (
            Ask(
                whom=For.PERSONS,
                ok=201,
                sends=_json(data={"username": "{me}", "email": "m@example.com"}, patch=True),
            ),
        ),
        ("PUT", one + "/group"): _admins(_json(groupname="crew"), spends=a_user),
        ("DELETE", one + "/group"): _admins(_json(groupname="crew"), spends=a_user),
        ("PUT", one + "/grouplist"): _admins(_json(grouplist=["crew"]), spends=a_user),
        ("PUT", one + "/password"): _own(_json(newPassword="another one", oldPassword=PASSWORD)),
        ("PUT", one + "/email"): _own(_json(email="b@example.com")),
        ("PUT", one + "/admin"): _admins(_json(admin=True), spends=a_user),
        ("PUT", one + "/virtualcluster"): _admins(_json(virtualCluster=["default"]), spends=a_user),
        ("PUT", one + "/extension"): _own(_json(extension={"colour": "blue"})),
    }


def _groups(groups: str) -> Table:
    one = groups + "/{group}"
    changes = _json(data={"groupname": "{group}", "description": "changed"}, patch=True)
    return {
        ("GET", groups): _PERSONS,
        ("GET", one): _PERSONS,
        ("GET", one + "/userlist"): (Ask(whom=For.ADMINS),),
        ("POST", groups): _admins(_json(groupname="{newuser}")),
        ("PUT", groups): _admins(changes, spends=a_group),
        ("DELETE", one): (Ask(whom=For.ADMINS, ok=201, spends=a_group),),
    }


_OLD = "/api/v1/user"
ACCOUNTS: Table = {
    **SIGNING_IN,
    **_users("/api/v2/users"),
    **_users("/api/v2/user"),
    **_groups("/api/v2/groups"),
    **_groups("/api/v2/group"),
    ("GET", _OLD + "/{user}"): (Ask(whom=For.THE_USER),),
    ("PUT", _OLD): (
        *_admins(_json(username="{newuser}", password=PASSWORD)),
        *_admins(_json(username="{user}", admin=True, modify=True), spends=a_user),
    ),
    ("DELETE", _OLD): _admins(_json(username="{user}"), spends=a_user),
    ("PUT", _OLD + "/{user}/virtualClusters"): _admins(
        _json(virtualClusters="default"), spends=a_user
    ),
}
