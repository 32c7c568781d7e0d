"""What Alembic runs: the steps that are missing, on the connection that it was handed.

`team_database` opens the transaction and holds the lock, so that all steps happen or none, and only
one server takes them.
"""

from __future__ import annotations

from alembic import context

from regatta.server.records.metadata import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # SQLite cannot change most of a table in place.
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
