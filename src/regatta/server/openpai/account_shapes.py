"""What OpenPAI's clients are told of accounts: the shapes of the answers."""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.server.accounts.user_groups import Group, openpai_group, openpai_user
from regatta.server.accounts.users import User


class Message(msgspec.Struct, frozen=True):
    message: str


class ServerAbout(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    version: str
    launcher_type: str
    authn_method: str


class SignInAbout(msgspec.Struct, frozen=True):
    authn_type: str
    loginURI: str
    loginURIMethod: str


class OldSignedIn(msgspec.Struct, frozen=True):
    """Of v1."""

    token: str
    user: str
    admin: bool
    hasGitHubPAT: bool = False


class SignedInNow(msgspec.Struct, frozen=True):
    token: str
    user: str
    admin: bool


class TokenHandles(msgspec.Struct, frozen=True):
    tokens: tuple[str, ...]


class ApplicationToken(msgspec.Struct, frozen=True):
    token: str
    application: bool = True


class CheckedToken(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in seconds, as in the tokens that OpenPAI hands out."""

    username: str
    application: bool
    iat: int
    exp: int | None = None


class UserInfo(msgspec.Struct, frozen=True):
    username: str
    email: str
    grouplist: list[str]
    admin: bool
    virtualCluster: list[str]
    storageConfig: list[str]
    extension: dict[str, Any]


class GroupInfo(msgspec.Struct, frozen=True):
    groupname: str
    description: str
    externalName: str
    extension: dict[str, Any]


class GroupMember(msgspec.Struct, frozen=True):
    username: str
    clusterAdmin: bool


ANSWERS = (
    *(Message, ServerAbout, SignInAbout, OldSignedIn, SignedInNow, TokenHandles, ApplicationToken),
    *(CheckedToken, UserInfo, GroupInfo, GroupMember),
)


def user_info(user: User, groups: list[Group], clusters: tuple[str, ...]) -> UserInfo:
    return UserInfo(**openpai_user(user, groups, clusters))


def group_info(group: Group) -> GroupInfo:
    return GroupInfo(**openpai_group(group))
