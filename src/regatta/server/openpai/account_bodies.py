"""What clients send about accounts, read and checked: JSON, or a form where OpenPAI takes one.

A field that nobody knows is refused, as OpenPAI does: it would be dropped, and whoever misspelt it
would be told that all went well. What a name or a password may be is checked by whoever stores it
(`accounts/account_rules`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from regatta.api.checks.suggestions import did_you_mean, listed, shown_key
from regatta.server.accounts.account_rules import (
    LONGEST_EMAIL,
    LONGEST_PASSWORD,
    LONGEST_TEXT,
    SHORTEST_PASSWORD,
)
from regatta.server.accounts.tables import LONGEST_NAME
from regatta.server.openpai.whole_body import whole_body
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
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """What a client sends: these fields and no others."""


class SignInBody(Body):
    username: str
    password: str
    #: Seconds.
    expiration: int | str | None = None


class NewUserBody(Body, rename="camel"):
    username: _UserName
    password: _NewPassword
    admin: bool = False
    email: _Email = ""
    virtual_cluster: list[str] = []
    extension: dict[str, Any] = {}


class UserData(Body, rename="camel"):
    username: _UserName
    email: _Email | UnsetType = UNSET
    virtual_cluster: list[str] | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    password: _NewPassword | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class UserUpdateBody(Body):
    data: UserData
    patch: bool = False


class OwnData(Body, rename="camel"):
    username: _UserName
    email: _Email | UnsetType = UNSET
    new_password: _NewPassword | UnsetType = UNSET
    old_password: str | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class OwnUpdateBody(Body):
    data: OwnData
    patch: bool = False


class PasswordBody(Body, rename="camel"):
    new_password: _NewPassword
    old_password: str = ""


class EmailBody(Body):
    email: _Email


class AdminBody(Body):
    admin: bool


class ClustersBody(Body, rename="camel"):
    virtual_cluster: list[str]


class ExtensionBody(Body):
    extension: dict[str, Any]


class GroupNameBody(Body):
    groupname: _GroupName


class GroupListBody(Body):
    grouplist: list[str]


class NewGroupBody(Body, rename="camel"):
    groupname: _GroupName
    description: _Text = ""
    external_name: _Text = ""
    extension: dict[str, Any] = {}


class GroupData(Body, rename="camel"):
    groupname: _GroupName
    description: _Text | UnsetType = UNSET
    external_name: _Text | UnsetType = UNSET
    extension: dict[str, Any] | UnsetType = UNSET


class GroupUpdateBody(Body):
    data: GroupData
    patch: bool = False


class OldUserBody(Body):
    """`PUT /api/v1/user`: `modify` is false where the user is to be made."""

    username: _UserName
    password: _NewPassword | None = None
    #: Not sent: as it is, and of somebody new, no.
    admin: bool | UnsetType = UNSET
    modify: bool = False


class UserNameBody(Body):
    username: _UserName


class OldClustersBody(Body, rename="camel"):
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
    sent = await whole_body(request)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        fields: Any
        if content_type == _FORM:
            fields = dict(parse_qsl(sent.decode("utf-8", "replace"), keep_blank_values=True))
        else:
            fields = msgspec.json.decode(sent or b"{}")
        return msgspec.convert(fields, kind, strict=content_type != _FORM)
    except msgspec.ValidationError as wrong:
        found, where = _WHERE.fullmatch(str(wrong)).groups()  # type: ignore[union-attr]
        if unknown := _UNKNOWN.fullmatch(found):
            raise invalid_parameters(_no_such_field(kind, fields, where, unknown[1])) from None
        field = f"{where}: " if where else ""
        raise invalid_parameters(f"{field}{found[:1].lower()}{found[1:]}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as odd:
        raise invalid_parameters(f"the body cannot be read as JSON: {odd}") from None


def _no_such_field(kind: Any, sent: Any, where: str | None, name: str) -> str:
    """`where`: inside of which field, as `data`. What was sent besides was not meant by it."""
    path = where.split(".") if where else []
    for part in path:
        inside = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        kind, sent = inside[part], sent[part]
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    meant = did_you_mean(name, [field for field in known if field not in sent])
    shown = ".".join([*path, shown_key(name)])
    return f"{shown}: unknown field; {meant}Known here: {listed(known)}"
