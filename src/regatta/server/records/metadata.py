"""The one `MetaData` of a team's database, and what its columns are made of.

Tables stand in the modules that use them; all hang on `METADATA`, so that one comparison says
whether the migrations lead where the code expects to be.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Integer, MetaData, Text
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

#: Every constraint has a name that follows from what it holds: a migration can only drop by name.
METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: A number that counts up by itself: SQLite does so only for a plain INTEGER.
Serial = BigInteger().with_variant(Integer(), "sqlite")
#: A moment, in whole milliseconds since 1970.
Millis = BigInteger()


class Words(TypeDecorator[str]):
    """Text that sorts and compares alike everywhere: by code point, whatever a server's locale.

    What neither database nor both could keep (NUL, half a surrogate pair) becomes U+FFFD: a
    replica may print anything, and a record must not fail for it."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TEXT(collation="C"))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


def storable(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = "".join(
            "\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text
        )
    return text
