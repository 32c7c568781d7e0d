"""How long, for people: ages as kubectl writes them, and durations as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s|$)")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001}


def now() -> datetime:
    return datetime.now(UTC)


def since(moment: datetime | None, until: datetime | None = None) -> float | None:
    return None if moment is None else ((until or now()) - moment).total_seconds()


def age(seconds: float | None) -> str:
    """`5s`, `3m20s`, `45m`, `5h12m`, `30h`, `4d`: fewer units the longer it is."""
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d"


def duration(seconds: float | None) -> str:
    """How long something took: tenths while it is short."""
    if seconds is None:
        return "-"
    return f"{seconds:.1f}s" if seconds < 10 else age(seconds)


def parse_duration(text: str) -> float:
    """Seconds of `90`, `30s`, `5m`, `1h30m`, `2d`. Raises ValueError with the right form."""
    parts = _PART.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise ValueError(f"{text!r} is not a duration; write 30s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def size(octets: float | None) -> str:
    if octets is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if octets < 1024:
            return f"{octets:.0f}{unit}"
        octets /= 1024
    return f"{octets:.1f}GiB"
