"""Records go when their job's end, and nothing else, is long enough ago."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, insert, select

from regatta.api.errors import BadSetting
from regatta.server.records import records_retention
from regatta.server.records.job_tables import documents, events, gaps, jobs
from regatta.server.records.records_retention import DAY, cutoff, forget_old
from regatta.server.records.team_database import Database
from tests.server.records.rows import NOW, store

LONG_AGO = NOW - 40 * DAY

#: Of records that are kept for 30 days.
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "ended long ago": ({"state": "FAILED", "completed_at": LONG_AGO}, True),
    "ended just within": ({"state": "FAILED", "completed_at": NOW - 30 * DAY}, False),
    "ended just before": ({"state": "STOPPED", "completed_at": NOW - 30 * DAY - 1}, True),
    "began long ago and ended lately": ({"state": "SUCCEEDED", "completed_at": NOW - DAY}, False),
    "began long ago and runs": ({"state": "RUNNING"}, False),
    "began long ago and is stopping": ({"state": "STOPPING"}, False),
    "end not seen, and found out lately": (
        {"state": "UNKNOWN", "completed_at": LONG_AGO, "end_seen": False, "gone_at": NOW - DAY},
        False,
    ),
    "end not seen, and found out long ago": (
        {"state": "UNKNOWN", "completed_at": LONG_AGO, "end_seen": False, "gone_at": LONG_AGO},
        True,
    ),
    "gone long ago, with an end that nobody knows": (
        {"state": "UNKNOWN", "gone_at": LONG_AGO},
        True,
    ),
    "deleted, and the engine has it": ({"state": "STOPPED", "deleted_at": LONG_AGO}, False),
    "deleted, and just gone": (
        {"state": "STOPPED", "deleted_at": LONG_AGO, "gone_at": NOW - DAY + 1},
        False,
    ),
    "deleted, and gone": (
        {"state": "STOPPED", "deleted_at": LONG_AGO, "gone_at": NOW - 2 * DAY},
        True,
    ),
}


def _row(name: str, **values: Any) -> dict[str, Any]:
    blank = {"completed_at": None, "gone_at": None, "deleted_at": None, "end_seen": True}
    began = {"id": name, "name": name, "submit_state": "accepted", "submitted_at": LONG_AGO - DAY}
    return {**blank, **began, **values}


def _left(database: Database) -> set[str]:
    return set(database.read_here(lambda c: c.scalars(select(jobs.c.id)).all()))


def test_of_records_kept_for_thirty_days_exactly_those_go(database: Database) -> None:
    database.run_here(store, [_row(name, **values) for name, (values, _) in CASES.items()])
    going = {name for name, (_, goes) in CASES.items() if goes}
    assert len(database.run_here(forget_old, 30, NOW)) == len(going)
    assert _left(database) == CASES.keys() - going
    assert database.run_here(forget_old, 30, NOW) == []


def test_unless_somebody_says_so_records_are_kept_for_ever(database: Database) -> None:
    database.run_here(store, [_row(name, **values) for name, (values, _) in CASES.items()])
    assert len(database.run_here(forget_old, 0, NOW)) == 1
    assert CASES.keys() - _left(database) == {"deleted, and gone"}


def test_what_hangs_on_a_job_goes_with_it(database: Database) -> None:
    rows = [
        _row(name, state="FAILED", completed_at=at) for name, at in (("a", LONG_AGO), ("b", NOW))
    ]
    database.run_here(store, [{**row, "tags": ("t",)} for row in rows])
    for name in "ab":
        database.run_here(
            lambda c, name: c.execute(insert(documents).values(job_id=name, kind="job", text="x")),
            name,
        )
        database.run_here(
            lambda c, name: c.execute(insert(events).values(job_id=name, engine_id=1, at=1)), name
        )
    database.run_here(forget_old, 30, NOW)
    for table in (documents, events):
        assert database.read_here(lambda c, t: c.scalars(select(t.c.job_id)).all(), table) == ["b"]


def test_gaps_go_when_no_job_of_their_time_is_left(database: Database) -> None:
    for until in (LONG_AGO, NOW):
        database.run_here(
            lambda c, until: c.execute(insert(gaps).values(from_at=1, until_at=until)), until
        )
    database.run_here(forget_old, 0, NOW)
    database.run_here(forget_old, 30, NOW)
    assert database.read_here(lambda c: c.scalars(select(gaps.c.until_at)).all()) == [NOW]


def test_thousands_go_a_few_at_a_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_retention, "AT_ONCE", 4)
    old = [_row(f"{n}", state="FAILED", completed_at=LONG_AGO) for n in range(10)]
    database.run_here(store, old)
    found = [len(database.run_here(forget_old, 1, NOW)) for _ in range(4)]
    assert found == [4, 4, 2, 0]
    assert database.read_here(lambda c: c.scalar(select(func.count()).select_from(jobs))) == 0


def test_less_than_nothing_is_refused() -> None:
    with pytest.raises(BadSetting, match="found -1; write 0 for ever"):
        cutoff(-1, NOW)
