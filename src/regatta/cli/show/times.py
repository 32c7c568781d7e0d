"""How long and how large, for people: ages as kubectl writes them."""

from __future__ import annotations

from datetime import UTC, datetime

from regatta.api.amounts import readable


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


def moment_text(moment: datetime | None) -> str:
    """When it was, and how long ago; empty where it was not."""
    if moment is None:
        return ""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S} ({age(since(moment))} ago)"


def duration(seconds: float | None) -> str:
    """How long something took: tenths while it is short."""
    if seconds is None or seconds < 0:  # its clock was set back meanwhile
        return "-"
    return f"{seconds:.1f}s" if seconds < 10 else age(seconds)


def size(octets: float | None) -> str:
    return "-" if octets is None else readable(octets)
