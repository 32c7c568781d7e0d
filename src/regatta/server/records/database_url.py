"""Where a team's database is: what a setting may say, and how it is spoken of.

A URL may hold a password. What messages and logs show is made here, and never holds one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from regatta.api.errors import BadSetting

RIGHT = "sqlite:////PATH/OF/A/FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
#: Parameters of a PostgreSQL URL that are secrets too.
_SECRET = ("password", "sslpassword")
#: A shorter password is part of many a word, and is looked for only where passwords stand.
_TOLD_APART = 4


@dataclass(frozen=True, slots=True)
class Address:
    """A database's URL, as SQLAlchemy takes it."""

    url: URL

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def path(self) -> Path:
        """Of a SQLite file."""
        return Path(self.url.database or "")

    @property
    def has_password(self) -> bool:
        return bool(self.url.password or any(self.url.query.get(name) for name in _SECRET))

    def __str__(self) -> str:
        """For people: no user, no password, no parameters."""
        if self.is_sqlite:
            return str(self.path)
        where = self.url.host or _first(self.url.query.get("host")) or "this machine"
        port = f":{self.url.port}" if self.url.port else ""
        return f"PostgreSQL {self.url.database or ''} at {where}{port}".replace("  ", " ")

    def without_secrets(self, said: str) -> str:
        """What somebody else said of the connection."""
        secrets = [self.url.password, *(_first(self.url.query.get(name)) for name in _SECRET)]
        for secret in filter(None, map(str, filter(None, secrets))):
            for form in {secret, quote(secret, safe=""), quote_plus(secret)}:
                if len(secret) < _TOLD_APART:
                    place = rf"(:(?={re.escape(form)}@)|password=['\"]?){re.escape(form)}"
                    said = re.sub(place, r"\1***", said)
                else:
                    said = said.replace(form, "***")
        return said


def read_url(said: str) -> Address:
    """Raises BadSetting, which repeats nothing of the URL but its scheme."""
    scheme, found, _ = said.partition("://")
    if not found:
        raise BadSetting(f"the team's database: found no URL; write {RIGHT}")
    if scheme == "postgres":  # as many services hand it out
        said = "postgresql" + said.removeprefix(scheme)
    elif scheme not in ("sqlite", "postgresql"):
        raise BadSetting(f"the team's database: found a URL of {scheme[:40]!r}; write {RIGHT}")
    try:
        # Of two, the first would end the password, and the rest of it would be told as a host.
        url = make_url(said) if scheme == "sqlite" or said.count("@") < 2 else None
    except (ArgumentError, ValueError):
        url = None
    if url is None:
        raise BadSetting(
            f"the team's database: the {scheme} URL cannot be read; write {RIGHT}, with a colon, "
            "slash or @ of a password as %3A, %2F or %40"
        )
    return _postgresql(url) if url.drivername == "postgresql" else _sqlite(url)


def _sqlite(url: URL) -> Address:
    if url.host or url.query or not url.database or url.database == ":memory:":
        raise BadSetting(
            f"the team's database: found {url.render_as_string()!r}, which names no file; write "
            "sqlite:////PATH/OF/A/FILE, with four slashes before the path"
        )
    return Address(url.set(database=str(Path(url.database).absolute())))


def _postgresql(url: URL) -> Address:
    # A host that swallows packets must not hold everybody up for minutes; a name may stand for two
    # addresses, each of which is tried.
    patience = {
        "application_name": "regatta",
        "connect_timeout": "3",
        "keepalives_idle": "15",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "20000",
    }
    query = {**patience, **url.query}
    return Address(url.set(drivername="postgresql+psycopg", query=query))


def _first(value: str | tuple[str, ...] | None) -> str:
    return value[0] if isinstance(value, tuple) else value or ""
