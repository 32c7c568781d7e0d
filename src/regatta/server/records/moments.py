"""Time as records hold it: whole milliseconds since 1970, in UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import overload


@overload
def millis(moment: datetime) -> int: ...
@overload
def millis(moment: datetime | None) -> int | None: ...
def millis(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    whole = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(whole.timestamp() * 1000)


def now_millis() -> int:
    return time.time_ns() // 1_000_000


def said(moment: int) -> str:
    """For people: RFC 3339, to the second."""
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
