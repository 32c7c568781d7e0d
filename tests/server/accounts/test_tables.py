from __future__ import annotations

import pytest
from sqlalchemy import Connection, Table, insert
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateIndex, CreateTable

from regatta.server.accounts.tables import AUDIT, GROUPS, MEMBERSHIPS, TOKENS, USERS
from tests.server.accounts.people import NOW, a_user

TABLES = [USERS, GROUPS, MEMBERSHIPS, TOKENS, AUDIT]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_postgresql_can_be_told_of_each_table_with_every_constraint_named(table: Table) -> None:
    dialect = postgresql.dialect()
    made = str(CreateTable(table).compile(dialect=dialect))
    made += "".join(str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes)

    assert f"CONSTRAINT pk_{table.name} PRIMARY KEY" in made
    assert all(index.name for index in table.indexes)
    assert all(constraint.name for constraint in table.constraints)
    assert len(made) > 100


def test_a_token_is_of_a_known_kind(connection: Connection) -> None:
    row = {
        "handle": "h",
        "secret_sha256": "s",
        "user_id": a_user(connection, "ann").id,
        "created": NOW,
    }
    connection.execute(insert(TOKENS).values(row | {"kind": "sign-in"}))
    with pytest.raises(IntegrityError, match="ck_tokens_kind"):
        connection.execute(insert(TOKENS).values(row | {"handle": "i", "kind": "other"}))
