"""Whether a database and an engine belong together: one state folder or cluster, and its records.

Two that do not are easily put together, by a shell without the server's `REGATTA_HOME`. Every job
that lives is then told as `UNKNOWN`, and its name is free, while it runs on elsewhere.
"""

from __future__ import annotations

from regatta.api.errors import JobNotFound, RegattaError
from regatta.engines.base import Engine
from regatta.server.records.job_rows import JobRow, live_rows
from regatta.server.records.team_database import Database

#: Of those that live on record, so many are asked for.
LOOKED_AT = 20


async def about_strange_records(
    database: Database, engine: Engine, engine_name: str, place: str
) -> str | None:
    """A warning where the engine at this place knows none of the jobs that live on record."""
    live = await database.read(live_rows, engine_name, LOOKED_AT)
    try:
        for row in live:
            if await _knows(engine, row):
                return None
    except RegattaError:  # it is away, and nothing can be told
        return None
    if not live:
        return None
    named = ", ".join(f"{row.username}~{row.name}" for row in live[:3])
    return (
        f"of the jobs that live on record, such as {named}, the engine at {place} knows none: this "
        "database may belong to another state folder (REGATTA_HOME) or cluster. If so, stop this "
        "server and start it there; until then those jobs are told as UNKNOWN, and their names "
        "can be taken."
    )


async def _knows(engine: Engine, row: JobRow) -> bool:
    try:
        return bool(await engine.history(row.namespace, uid=row.engine_uid or ""))
    except JobNotFound:
        return False
