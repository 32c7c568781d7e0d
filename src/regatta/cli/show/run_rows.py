"""A run as one row of `history`, and the record of one of which nothing else is left."""

from __future__ import annotations

from datetime import datetime

from regatta.cli.show.ansi import PHASE_COLOURS, Painted
from regatta.cli.show.table import Cell
from regatta.cli.show.times import age, duration, moment_text, since
from regatta.engines.inventory import RunView

HEADERS = ("NAME", "STATUS", "MODE", "SUBMITTED", "TOOK", "LOGS", "UID")
#: Seconds after which a date says more than an age.
DAY = 86400


def headers(*, namespaces: bool) -> list[str]:
    return [*(["NAMESPACE"] if namespaces else []), *HEADERS]


def row(run: RunView, now: datetime, *, namespaces: bool) -> list[Cell]:
    took = since(run.started_at, run.ended_at or now)
    return [
        *([run.namespace] if namespaces else []),
        run.name,
        Painted(run.phase, PHASE_COLOURS.get(run.phase, "")),
        run.mode or "-",
        _when(run.created_at, now),
        duration(took),
        "removed" if run.removed else "kept",
        run.uid,
    ]


def _when(moment: datetime | None, now: datetime) -> str:
    seconds = since(moment, now)
    if moment is None or seconds is None or seconds < DAY:
        return f"{age(seconds)} ago"
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def record_lines(run: RunView) -> list[str]:
    facts = [
        ("Name", run.name),
        ("Namespace", run.namespace),
        ("UID", run.uid),
        ("Status", run.phase),
        ("Mode", run.mode),
        ("Submitted", moment_text(run.created_at)),
        ("Started", moment_text(run.started_at)),
        ("Ended", moment_text(run.ended_at)),
        ("Took", duration(since(run.started_at, run.ended_at)) if run.started_at else ""),
        ("Reason", run.reason),
        ("Message", run.message.partition("\n")[0]),
        ("Replaced by", run.replaced_by),
        ("Removed", run.removed),
    ]
    return [f"{name + ':':<13}{value}" for name, value in facts if value]
