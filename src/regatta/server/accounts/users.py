"""Users in the database: made, read, changed, removed. Who may do that is asked before.

Whether somebody is an admin stands in one place, the user's own row, and his place in `admingroup`
follows from it; as everybody's in `default` does. The last admin who may come in stays one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from regatta.server.accounts import account_rules as rules
from regatta.server.accounts.tables import GROUPS, LONGEST_NAME, MEMBERSHIPS, TOKENS, USERS
from regatta.server.accounts.tokens import revoke_after_password, revoke_all
from regatta.server.openpai_errors import (
    OpenPaiError,
    forbidden,
    invalid_parameters,
    name_of_another,
    no_user,
    remove_admin,
    user_exists,
)
from regatta.server.records.job_rows import owns_jobs


@dataclass(frozen=True, slots=True)
class User:
    id: int
    name: str
    email: str
    admin: bool
    extension: dict[str, Any]
    #: Granted to this user; groups grant others.
    virtual_clusters: tuple[str, ...]
    groups: tuple[str, ...]
    created: int
    disabled: int | None
    unix_uid: int | None


@dataclass(frozen=True, slots=True)
class NewUser:
    name: str
    admin: bool = False
    email: str = ""
    virtual_clusters: Sequence[str] = ()
    extension: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class UserChanges:
    """None: as it is."""

    email: str | None = None
    admin: bool | None = None
    virtual_clusters: Sequence[str] | None = None
    extension: Mapping[str, Any] | None = None
    #: OpenPAI's `patch: false`. Else the keys that are sent are changed, and the others stay.
    replace_extension: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """What signing in looks at."""

    user_id: int
    name: str
    admin: bool
    password: str
    disabled: bool


def create_user(
    connection: Connection,
    new: NewUser,
    password_hash: str,
    now: int,
    known_clusters: Collection[str] | None = None,
) -> User:
    """The password has been looked at (`account_rules.check_password`) by whoever hashed it."""
    rules.check_user_name(new.name)
    values = {
        "name": new.name,
        "name_key": rules.key_of(new.name),
        "password": password_hash,
        "admin": bool(new.admin),
        "email": rules.check_email(new.email),
        "extension": rules.check_extension(dict(new.extension or {})),
        "virtual_clusters": rules.check_clusters(new.virtual_clusters, known_clusters),
        "created": now,
    }
    if _row(connection, new.name) is not None:
        raise user_exists(new.name)
    if owns_jobs(connection, new.name):
        raise name_of_another(new.name)
    try:
        connection.execute(insert(USERS).values(values))
    except IntegrityError:  # somebody was quicker
        raise user_exists(new.name) from None
    return get_user(connection, new.name)


def get_user(connection: Connection, name: str) -> User:
    row = _required(connection, name)
    return _user(row, _memberships(connection, row.id)[row.id])


def spellings_of(connection: Connection, names: Iterable[str]) -> tuple[str, ...]:
    """These names, and with each the one that its account has: records and the audit hold that one,
    whoever asks writes it in any case. One whose account is gone is known as it was alone."""
    asked = [name for name in names if rules.can_be_kept(name)]
    keys = [rules.key_of(name) for name in asked]
    kept = connection.scalars(select(USERS.c.name).where(USERS.c.name_key.in_(keys)))
    return tuple(sorted({*asked, *kept}))


def list_users(connection: Connection) -> list[User]:
    """By name. Sorted here: what a database's locale makes of `a-b` and `a_b` differs."""
    memberships = _memberships(connection)
    rows = sorted(connection.execute(select(USERS)), key=lambda row: str(row.name_key))
    return [_user(row, memberships[row.id]) for row in rows]


def update_user(
    connection: Connection,
    name: str,
    changes: UserChanges,
    known_clusters: Collection[str] | None = None,
) -> User:
    lock_user(connection, name)
    row = _required(connection, name)
    values: dict[str, Any] = {}
    if changes.email is not None:
        values["email"] = rules.check_email(changes.email)
    if changes.virtual_clusters is not None:
        granted = rules.check_clusters(changes.virtual_clusters, known_clusters)
        values["virtual_clusters"] = granted
    if changes.extension is not None:
        before = {} if changes.replace_extension else row.extension
        values["extension"] = rules.check_extension({**before, **changes.extension})
    if changes.admin is not None:
        if row.admin and not changes.admin:
            _keep_an_admin(connection, row, "demoted")
        values["admin"] = bool(changes.admin)
    if values:
        connection.execute(update(USERS).where(USERS.c.id == row.id).values(values))
    return get_user(connection, name)


def delete_user(connection: Connection, name: str) -> User:
    """With tokens and memberships. Jobs and the audit keep the name."""
    lock_user(connection, name)
    user = get_user(connection, name)
    if user.admin:
        raise remove_admin(user.name)
    # Not left to ON DELETE: SQLite does that only on a connection that was told to.
    for table in (TOKENS, MEMBERSHIPS):
        connection.execute(delete(table).where(table.c.user_id == user.id))
    connection.execute(delete(USERS).where(USERS.c.id == user.id))
    return user


def disable_user(connection: Connection, name: str, now: int) -> User:
    """Nobody comes in as this user any more: every token ends, those of applications as well, and
    enabling brings none of them back."""
    lock_user(connection, name)
    row = _required(connection, name)
    if row.admin:
        _keep_an_admin(connection, row, "disabled")
    connection.execute(
        update(USERS).where(USERS.c.id == row.id, USERS.c.disabled.is_(None)).values(disabled=now)
    )
    revoke_all(connection, row.id, now)
    return get_user(connection, name)


def enable_user(connection: Connection, name: str) -> User:
    row = _required(connection, name)
    connection.execute(update(USERS).where(USERS.c.id == row.id).values(disabled=None))
    return get_user(connection, name)


def set_unix_uid(connection: Connection, name: str, uid: int | None) -> User:
    """As whom this user's replicas run; of no two users the same."""
    row = _required(connection, name)
    if uid is not None:
        holder = connection.execute(
            select(USERS.c.name).where(USERS.c.unix_uid == rules.check_uid(uid))
        ).scalar_one_or_none()
        if holder is not None and holder != row.name:
            raise invalid_parameters(
                f"unix uid {uid} is user {holder}'s; give {row.name} one of its own"
            )
    connection.execute(update(USERS).where(USERS.c.id == row.id).values(unix_uid=uid))
    return get_user(connection, name)


def stored_password(connection: Connection, name: str, *, lock: bool = False) -> Stored | None:
    """`lock`: it stays so until the transaction ends."""
    row = _row(connection, name, lock=lock)
    if row is None:
        return None
    return Stored(row.id, row.name, row.admin, row.password, row.disabled is not None)


def set_password(
    connection: Connection,
    name: str,
    password_hash: str,
    now: int,
    *,
    keep: str | None = None,
    replacing: str | None = None,
) -> bool:
    """Ends the user's other sign-ins; `keep` is the handle of the token that asked for it.

    False where the password is not the one that was looked at (`replacing`, its hash): somebody
    changed it meanwhile."""
    lock_user(connection, name)
    row = _required(connection, name)
    changed = update(USERS).where(USERS.c.id == row.id)
    if replacing is not None:
        changed = changed.where(USERS.c.password == replacing)
    if connection.execute(changed.values(password=password_hash)).rowcount == 0:
        return False
    revoke_after_password(connection, row.id, now, keep)
    return True


def renew_hash(connection: Connection, user_id: int, before: str, after: str) -> None:
    """The same password, hashed as it would be today."""
    connection.execute(
        update(USERS)
        .where(USERS.c.id == user_id, USERS.c.password == before)
        .values(password=after)
    )


def lock_user(connection: Connection, name: str) -> None:
    """Against others who change the same user until the transaction ends; and the admins with it,
    or two who demote each other at once would leave none. All in one order, so that nobody waits in
    a circle. This matters to PostgreSQL: SQLite has one writer in any case."""
    key = rules.key_of(name) if rules.can_be_kept(name) else ""
    connection.execute(
        select(USERS.c.id)
        .where(or_(USERS.c.admin.is_(True), USERS.c.name_key == key))
        .order_by(USERS.c.id)
        .with_for_update()
    ).all()


def user_by_id(connection: Connection, user_id: int) -> User | None:
    row = connection.execute(select(USERS).where(USERS.c.id == user_id)).one_or_none()
    return _user(row, _memberships(connection, user_id)[user_id]) if row is not None else None


def _keep_an_admin(connection: Connection, row: Row[Any], becomes: str) -> None:
    admins = connection.execute(
        select(USERS.c.id).where(USERS.c.admin.is_(True), USERS.c.disabled.is_(None))
    ).scalars()
    if set(admins) <= {row.id}:
        raise _last_admin(row.name, becomes)


def _last_admin(name: str, becomes: str) -> OpenPaiError:
    return forbidden(f"{name} is the last admin and cannot be {becomes}; make another one first.")


def _required(connection: Connection, name: str) -> Row[Any]:
    row = _row(connection, name)
    if row is None:
        raise no_user(name[:LONGEST_NAME])
    return row


def _row(connection: Connection, name: str, *, lock: bool = False) -> Row[Any] | None:
    if not rules.can_be_kept(name):  # nobody is called that, and PostgreSQL cannot be asked
        return None
    wanted = select(USERS).where(USERS.c.name_key == rules.key_of(name))
    return connection.execute(wanted.with_for_update() if lock else wanted).one_or_none()


def _memberships(connection: Connection, user_id: int | None = None) -> dict[int, list[str]]:
    joined = select(MEMBERSHIPS.c.user_id, GROUPS.c.name).join(
        GROUPS, GROUPS.c.id == MEMBERSHIPS.c.group_id
    )
    if user_id is not None:
        joined = joined.where(MEMBERSHIPS.c.user_id == user_id)
    found: dict[int, list[str]] = defaultdict(list)
    for member, group in sorted(connection.execute(joined), key=_by_group):
        found[member].append(group)
    return found


def _by_group(membership: Row[int, str]) -> str:
    return rules.key_of(membership[1])


def _user(row: Row[Any], groups: list[str]) -> User:
    system = rules.SYSTEM_GROUPS if row.admin else (rules.DEFAULT_GROUP,)
    return User(
        id=row.id,
        name=row.name,
        email=row.email,
        admin=row.admin,
        extension=row.extension,
        virtual_clusters=tuple(row.virtual_clusters),
        groups=(*system, *groups),
        created=row.created,
        disabled=row.disabled,
        unix_uid=row.unix_uid,
    )
