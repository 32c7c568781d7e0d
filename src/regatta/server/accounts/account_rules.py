"""What a name, a password or an e-mail address may be. Pure; each refusal says what would be right.

The rules are OpenPAI's, so that accounts can be moved here: user names of letters, digits and
`_ . -`, group names of letters, digits and `_`, passwords of at least six characters. Six is
little; a longer minimum would refuse passwords that people have there, and the limits on sign-ins
are what stands between six characters and a guesser.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from regatta.server.accounts.tables import LONGEST_NAME
from regatta.server.openpai_errors import invalid_parameters, no_virtual_cluster

#: Every user is in the first, every admin in the second, and both are always there.
DEFAULT_GROUP = "default"
ADMIN_GROUP = "admingroup"
SYSTEM_GROUPS = (DEFAULT_GROUP, ADMIN_GROUP)
DEFAULT_CLUSTER = "default"

#: Words that mean somebody else: a path of the API, nobody, the machine itself, a folder.
RESERVED_NAMES = frozenset(
    {"me", "guest", "anonymous", "nobody", "root", "system", "regatta", ".", ".."}
)
SHORTEST_PASSWORD = 6
LONGEST_PASSWORD = 1024
LONGEST_EMAIL = 256
LONGEST_TEXT = 4096
LARGEST_EXTENSION = 64 * 1024
DEEPEST_EXTENSION = 16
MOST_CLUSTERS = 256
#: 2^32 - 1 means "leave it as it is" to the kernel.
LARGEST_UID = 2**32 - 2

_USER_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_GROUP_NAME = re.compile(r"[A-Za-z0-9_]+")
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
#: Loose: an address is proved by sending to it. What is refused would break a header or a page.
_EMAIL = re.compile(r"[^\s@<>,;\"]+@[^\s@<>,;\"]+")


def key_of(name: str) -> str:
    """By which a name is looked up: `Ann` and `ann` are one user."""
    return name.lower()


def check_user_name(name: str) -> str:
    _check_name("username", name, _USER_NAME, "letters, digits, `_`, `.` and `-`")
    if key_of(name) in RESERVED_NAMES:
        raise invalid_parameters(f"username is {name!r}, which the system keeps; take another")
    return name


def check_group_name(name: str) -> str:
    _check_name("groupname", name, _GROUP_NAME, "letters, digits and `_`")
    return name


def _check_name(field: str, name: str, allowed: re.Pattern[str], said: str) -> None:
    if not isinstance(name, str) or not allowed.fullmatch(name):
        raise invalid_parameters(f"{field} is {_short(name)}; it may have {said}, at least one")
    if len(name) > LONGEST_NAME:
        raise invalid_parameters(
            f"{field} has {len(name)} characters; it may have {LONGEST_NAME} at most"
        )


def password_bytes(password: str) -> bytes:
    """As it is hashed. One keyboard sends an accented letter as one character and another as two:
    they are the same password."""
    return unicodedata.normalize("NFC", password).encode(errors="surrogatepass")


def check_password(
    name: str, password: str, field: str = "password", *, may_be_name: bool = False
) -> str:
    """`name`: whose it is to be. Its characters are never told. `may_be_name`: OpenPAI's admins
    give new accounts their own name as the first password."""
    if not isinstance(password, str) or len(password) < SHORTEST_PASSWORD:
        raise invalid_parameters(
            f"{field} is too short; it must have at least {SHORTEST_PASSWORD} characters"
        )
    if len(password_bytes(password)) > LONGEST_PASSWORD:
        raise invalid_parameters(
            f"{field} is too long; it may have {LONGEST_PASSWORD} bytes at most"
        )
    if not may_be_name and key_of(password) == key_of(name):
        raise invalid_parameters(f"{field} is the user's name; take another")
    return password


def check_email(email: str) -> str:
    if not isinstance(email, str) or (email and not _EMAIL.fullmatch(check_text("email", email))):
        raise invalid_parameters(f"email is {_short(email)}; send one like ann@example.org, or ''")
    if len(email) > LONGEST_EMAIL:
        raise invalid_parameters(
            f"email has {len(email)} characters; it may have {LONGEST_EMAIL} at most"
        )
    return email


def check_text(field: str, text: str) -> str:
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or not can_be_kept(text):
        raise invalid_parameters(
            f"{field} is {_short(text)}; it must be text of {LONGEST_TEXT} characters at most"
        )
    return text


def can_be_kept(text: str) -> bool:
    """PostgreSQL has no NUL in text, and nobody half a character."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_extension(extension: dict[str, Any]) -> dict[str, Any]:
    """What clients keep with a user or a group: theirs, so only its size is looked at."""
    if not isinstance(extension, dict):
        raise invalid_parameters(f"extension is {_short(extension)}; it must be an object")
    _check_depth(extension, DEEPEST_EXTENSION)
    try:
        size = len(json.dumps(extension, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as odd:  # a value JSON has no word for, or half a character
        raise invalid_parameters(f"extension cannot be kept as JSON: {odd}") from None
    if size > LARGEST_EXTENSION:
        raise invalid_parameters(
            f"extension has {size} bytes as JSON; it may have {LARGEST_EXTENSION} at most"
        )
    return extension


def _check_depth(value: Any, left: int) -> None:
    if left < 0:
        raise invalid_parameters(
            f"extension is nested too deep; {DEEPEST_EXTENSION} levels are the most"
        )
    inside = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for one in inside:
            _check_depth(one, left - 1)


def check_group_extension(name: str, extension: dict[str, Any]) -> dict[str, Any]:
    """`acls` is the part that has a meaning here, so it is looked at."""
    check_extension(extension)
    acls = extension.get("acls", {})
    if not isinstance(acls, dict):
        raise invalid_parameters(f"extension.acls is {_short(acls)}; it must be an object")
    admin = acls.get("admin", False)
    if not isinstance(admin, bool):
        raise invalid_parameters(f"extension.acls.admin is {_short(admin)}; it is true or false")
    if "admin" in acls and admin != (key_of(name) == ADMIN_GROUP):
        raise invalid_parameters(
            f"extension.acls.admin is {json.dumps(admin)} for group {name}; {ADMIN_GROUP} makes "
            "admins and no other group does: put users into that one, or take them out"
        )
    for field in ("virtualClusters", "storageConfigs"):
        check_names(f"extension.acls.{field}", acls.get(field, []))
    return extension


def check_clusters(clusters: Sequence[str], known: Collection[str] | None) -> list[str]:
    """`known`: the virtual clusters that there are; None where nobody can tell. Each once, in the
    order that they were sent."""
    for name in check_names("virtualCluster", clusters):
        if known is not None and name not in known:
            raise no_virtual_cluster(name)
    return list(dict.fromkeys(clusters))


def check_names(field: str, names: Any) -> list[str]:
    """Of virtual clusters, or of storage."""
    if not isinstance(names, list | tuple) or len(names) > MOST_CLUSTERS:
        raise invalid_parameters(
            f"{field} is {_short(names)}; it must be a list of {MOST_CLUSTERS} names at most"
        )
    for name in names:
        if not isinstance(name, str) or not _CLUSTER_NAME.fullmatch(name):
            raise invalid_parameters(
                f"{field} has {_short(name)}; a name has letters, digits, `_`, `.` and `-`, "
                "64 at most"
            )
    return list(names)


def check_uid(uid: int) -> int:
    if isinstance(uid, bool) or not isinstance(uid, int) or not 0 < uid <= LARGEST_UID:
        raise invalid_parameters(
            f"unix uid is {_short(uid)}; it must be a number from 1 (0 is root) to {LARGEST_UID}"
        )
    return uid


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
