"""The names that authors gave to the roles of their jobs, read for a list of these."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from regatta.api.job import decode_job
from regatta.server.openpai.jobs.job_answers import names_the_engines
from regatta.server.openpai.jobs.telling.role_plans import names_in
from regatta.server.records.job_rows import JobRow, documents_of
from regatta.server.records.team_database import Database

#: How many documents are read at once, and how many characters of them for one list.
AT_ONCE, MOST_READ = 100, 32 * 1024 * 1024

#: By job, and by what the engine calls a role.
RoleNames = Mapping[str, Mapping[str, str]]


async def role_names(database: Database, rows: Sequence[JobRow]) -> RoleNames:
    """Of those that have something to say for which they must be known: few, or somebody fills
    lists with jobs of a megabyte, and then the last of them are told as the engine does."""
    ids = [row.id for row in rows if names_the_engines(row)]
    names: dict[str, Mapping[str, str]] = {}
    read = 0
    for start in range(0, len(ids), AT_ONCE):
        texts = await database.read(documents_of, ids[start : start + AT_ONCE], "job")
        names.update(zip(texts, await asyncio.to_thread(_names_in, texts.values()), strict=True))
        read += sum(map(len, texts.values()))
        if read > MOST_READ:
            break
    return names


def _names_in(texts: Iterable[str]) -> list[Mapping[str, str]]:
    return [names_in(decode_job(text)) for text in texts]
