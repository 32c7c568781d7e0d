"""A run as a row of `history`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from regatta.cli.show.run_rows import row
from regatta.engines.inventory import RunView

NOW = datetime(2026, 1, 9, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=7), "7s ago"),
        (timedelta(hours=23), "23h ago"),
        (timedelta(days=2), f"{(NOW - timedelta(days=2)).astimezone():%Y-%m-%d %H:%M}"),
    ],
)
def test_after_a_day_it_has_its_date(ago: timedelta, shown: str) -> None:
    run = RunView(namespace="n", name="a", uid="u", phase="Completed", created_at=NOW - ago)
    assert row(run, NOW, namespaces=False)[3] == shown
