"""What clients send about accounts, read and checked: JSON, or a form where OpenPAI takes one.

What is not known is left alone, as OpenPAI does; what a name or a password may be is checked by
whoever stores it (`accounts/account_rules`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from regatta.server.accounts.account_rules import (
    LONGEST_EMAIL,
    LONGEST_PASSWORD,
    LONGEST_TEXT,
    SHORTEST_PASSWORD,
)
from regatta.server.accounts.tables import LONGEST_NAME
from regatta.server.openpai_errors import invalid_parameters

T = TypeVar("T")


def _described(**schema: Any) -> msgspec.Meta:
    """For `openapi.json` alone: whoever stores it has a sentence for each mistake."""
    return msgspec.Meta(extra_json_schema=schema)


_UserName = Annotated[str, _described(pattern="^[A-Za-z0-9_.-]+$", maxLength=LONGEST_NAME)]
_GroupName = Annotated[str, _described(pattern="^[A-Za-z0-9_]+$", maxLength=LONGEST_NAME)]
_NewPassword = Annotated[str, _described(minLength=SHORTEST_PASSWORD, maxLength=LONGEST_PASSWORD)]
_Email = Annotated[
    str, _described(pattern=r'^([^\s@<>,;"]+@[^\s@<>,;"]+)?$', maxLength=LONGEST_EMAIL)
]
_Text = Annotated[str, _described(maxLength=LONGEST_TEXT)]

_FORM = "application/x-www-form-urlencoded"
#: How msgspec ends its sentences: where in the body it was.
_WHERE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)


class SignInBody(msgspec.Struct):
    username: str
    password: str
    #: Seconds.
    expiration: int | str | None = None


class NewUserBody(msgspec.Struct, rename="camel"):
    username: _UserName
    password: _NewPassword
    admin: bool = False
    email: _Email = ""
    virtual_cluster: list[str] = []
    extension: dict[str, Any] = {}


class UserData(msgspec.Struct, rename="camel"):
    username: _UserName
    email: _Email | UnsetType = UNSET
    virtual_cluster: list[str] | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    password: _NewPassword | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class UserUpdateBody(msgspec.Struct):
    data: UserData
    patch: bool = False


class OwnData(msgspec.Struct, rename="camel"):
    username: _UserName
    email: _Email | UnsetType = UNSET
    new_password: _NewPassword | UnsetType = UNSET
    old_password: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class OwnUpdateBody(msgspec.Struct):
    data: OwnData
    patch: bool = False


class PasswordBody(msgspec.Struct, rename="camel"):
    new_password: _NewPassword
    old_password: str = ""


class EmailBody(msgspec.Struct):
    email: _Email


class AdminBody(msgspec.Struct):
    admin: bool


class ClustersBody(msgspec.Struct, rename="camel"):
    virtual_cluster: list[str]


class ExtensionBody(msgspec.Struct):
    extension: dict[str, Any]


class GroupNameBody(msgspec.Struct):
    groupname: _GroupName


class GroupListBody(msgspec.Struct):
    grouplist: list[str]


class NewGroupBody(msgspec.Struct, rename="camel"):
    groupname: _GroupName
    description: _Text = ""
    external_name: _Text = ""
    extension: dict[str, Any] = {}


class GroupData(msgspec.Struct, rename="camel"):
    groupname: _GroupName
    description: _Text | UnsetType = UNSET
    external_name: _Text | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class GroupUpdateBody(msgspec.Struct):
    data: GroupData
    patch: bool = False


class OldUserBody(msgspec.Struct):
    """`PUT /api/v1/user`: `modify` is false where the user is to be made."""

    username: _UserName
    password: _NewPassword | None = None
    admin: bool = False
    modify: bool = False


class UserNameBody(msgspec.Struct):
    username: _UserName


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
