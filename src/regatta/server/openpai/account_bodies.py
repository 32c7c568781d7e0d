"""What clients send about accounts, read and checked: JSON, or a form where OpenPAI takes one.

What is not known is left alone, as OpenPAI does; what a name or a password may be is checked by
whoever stores it (`accounts/account_rules`).
"""

from __future__ import annotations

import re
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from regatta.server.openpai_errors import invalid_parameters

T = TypeVar("T")

_FORM = "application/x-www-form-urlencoded"
#: How msgspec ends its sentences: where in the body it was.
_WHERE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)


class SignInBody(msgspec.Struct):
    username: str
    password: str
    #: Seconds.
    expiration: int | str | None = None


class NewUserBody(msgspec.Struct, rename="camel"):
    username: str
    password: str
    admin: bool = False
    email: str = ""
    virtual_cluster: list[str] = []
    extension: dict[str, Any] = {}


class UserData(msgspec.Struct, rename="camel"):
    username: str
    email: str | UnsetType = UNSET
    virtual_cluster: list[str] | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    password: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class UserUpdateBody(msgspec.Struct):
    data: UserData
    patch: bool = False


class OwnData(msgspec.Struct, rename="camel"):
    username: str
    email: str | UnsetType = UNSET
    new_password: str | UnsetType = UNSET
    old_password: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class OwnUpdateBody(msgspec.Struct):
    data: OwnData
    patch: bool = False


class PasswordBody(msgspec.Struct, rename="camel"):
    new_password: str
    old_password: str = ""


class EmailBody(msgspec.Struct):
    email: str


class AdminBody(msgspec.Struct):
    admin: bool


class ClustersBody(msgspec.Struct, rename="camel"):
    virtual_cluster: list[str]


class ExtensionBody(msgspec.Struct):
    extension: dict[str, Any]


class GroupNameBody(msgspec.Struct):
    groupname: str


class GroupListBody(msgspec.Struct):
    grouplist: list[str]


class NewGroupBody(msgspec.Struct, rename="camel"):
    groupname: str
    description: str = ""
    external_name: str = ""
    extension: dict[str, Any] = {}


class GroupData(msgspec.Struct, rename="camel"):
    groupname: str
    description: str | UnsetType = UNSET
    external_name: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class GroupUpdateBody(msgspec.Struct):
    data: GroupData
    patch: bool = False


class OldUserBody(msgspec.Struct):
    """`PUT /api/v1/user`: `modify` is false where the user is to be made."""

    username: str
    password: str | None = None
    admin: bool = False
    modify: bool = False


class UserNameBody(msgspec.Struct):
    username: str


class OldClustersBody(msgspec.Struct, rename="camel"):
    #: With commas between them.
    virtual_clusters: str


BODIES = (
    *(SignInBody, NewUserBody, UserUpdateBody, OwnUpdateBody, PasswordBody, EmailBody, AdminBody),
    *(ClustersBody, ExtensionBody, GroupNameBody, GroupListBody, NewGroupBody, GroupUpdateBody),
    *(OldUserBody, UserNameBody, OldClustersBody),
)


def said(value: T | UnsetType) -> T | None:
    """None where it was not sent."""
    return None if isinstance(value, UnsetType) else value


async def read_body(request: Request, kind: type[T]) -> T:
    """Raises OpenPaiError (400) that names the field."""
    sent = await request.body()
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if content_type == _FORM:
            fields = parse_qsl(sent.decode("utf-8", "replace"), keep_blank_values=True)
            return msgspec.convert(dict(fields), kind, strict=False)
        return msgspec.json.decode(sent or b"{}", type=kind)
    except msgspec.ValidationError as wrong:
        found, where = _WHERE.fullmatch(str(wrong)).groups()  # type: ignore[union-attr]
        field = f"{where}: " if where else ""
        raise invalid_parameters(f"{field}{found[:1].lower()}{found[1:]}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as odd:
        raise invalid_parameters(f"the body cannot be read as JSON: {odd}") from None
