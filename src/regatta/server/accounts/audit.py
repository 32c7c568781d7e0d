"""Who did what, from where, and what came of it: written once, read newest first.

No secret comes in. Of a path only the path is kept, without its query, and whatever stands where a
token stands in OpenPAI's API is masked, as is anything that looks like a token of ours anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Connection, Row, delete, insert, select

from regatta.server.accounts.account_rules import key_of
from regatta.server.accounts.tables import AUDIT, LONGEST_NAME
from regatta.server.accounts.users import spellings_of

MOST_ENTRIES = 1000
MASK = "***"
_LONGEST = {"who": LONGEST_NAME, "what": 512, "job": 512, "address": 64, "result": 512}

#: Ours, of which the handle may be told; and the three parts of a JWT, which old clients may send.
_OURS = re.compile(r"(rgt_[0-9a-f]{16})_(?:[A-Za-z0-9_-]+|\*{3})")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?")
_TOKEN_PATH = re.compile(r"(/tokens?/)([^/?\s]+)", re.IGNORECASE)
_WORDS_THERE = frozenset({"application", "check"})
_HANDLE = re.compile(r"[0-9a-f]{16}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Entry:
    at: int
    #: A user's name; empty for whoever is not known. A name that nobody has is not written: people
    #: type passwords into the wrong field.
    who: str
    #: `PUT /api/v2/jobs/ann~first/executionType`, or a command's words.
    what: str
    #: `ann~first`, or empty.
    job: str = ""
    address: str = ""
    #: A code, a sentence, or empty where all went well.
    result: str = ""
    status: int = 200
    #: Given by the database.
    id: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """`before` asks for the next one; None where this was the last."""

    entries: list[Entry]
    before: int | None


def write_audit(connection: Connection, entry: Entry) -> None:
    texts = {name: masked(getattr(entry, name))[:longest] for name, longest in _LONGEST.items()}
    connection.execute(insert(AUDIT).values(at=entry.at, status=entry.status, **texts))


def read_audit(
    connection: Connection,
    *,
    who: str | None = None,
    job: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> Page:
    """The newest first; `who` and the owner of `job` in any case. A page is asked for by what came
    last on the one before, so entries that are written meanwhile move nothing."""
    limit = max(1, min(limit, MOST_ENTRIES))
    wanted = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit + 1)
    if who is not None:
        wanted = wanted.where(AUDIT.c.who.in_(map(masked, spellings_of(connection, [who]))))
    if job is not None:
        owner, sign, name = job.partition("~")
        owners = spellings_of(connection, [owner])
        wanted = wanted.where(AUDIT.c.job.in_(masked(one + sign + name) for one in owners))
    if before is not None:
        wanted = wanted.where(AUDIT.c.id < before)
    entries = [_entry(row) for row in connection.execute(wanted)]
    more = len(entries) > limit
    return Page(entries[:limit], entries[limit - 1].id if more else None)


def forget_audit(connection: Connection, before: int) -> int:
    """What is older than a time; how many."""
    return connection.execute(delete(AUDIT).where(AUDIT.c.at < before)).rowcount


def request_line(method: str, path: str) -> str:
    """`what`, for a request. A query may hold anything, so it is left out."""
    return f"{method} {masked(path.partition('?')[0])}"


def masked(text: str) -> str:
    """Without tokens, and on one line."""
    text = _TOKEN_PATH.sub(_mask_segment, text)
    text = _OURS.sub(rf"\1_{MASK}", text)
    text = _JWT.sub(MASK, text)
    return _CONTROL.sub(" ", text)


def _mask_segment(found: re.Match[str]) -> str:
    before, segment = found.groups()
    plain = unquote(segment)
    if key_of(plain) in _WORDS_THERE or _HANDLE.fullmatch(plain):
        return before + plain
    ours = _OURS.match(plain)
    return before + (f"{ours.group(1)}_{MASK}" if ours else MASK)


def _entry(row: Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        at=row.at,
        who=row.who,
        what=row.what,
        job=row.job,
        address=row.address,
        result=row.result,
        status=row.status,
    )
