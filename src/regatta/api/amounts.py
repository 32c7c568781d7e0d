"""How long and how large, as people write and read it: `1h30m`, `64MiB`."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|w|d|h|m|s|$)")
_UNITS = {
    "w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001,
}  # fmt: skip

#: Clocks and calendars have an end, too.
LONGEST_SECONDS = 100 * 366 * 86400.0


def parse_duration(text: str, *, with_unit: bool = False) -> float:
    """Seconds of `90`, `30s`, `5m`, `1h30m`, `2d`, `1w`. Raises ValueError with the right form.

    A bare number is seconds, but for those who ask for a unit: where something is removed, who
    forgot it meant days.
    """
    parts = _PART.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise ValueError(f"{text!r} is not a duration; write 30s, 5m, 1h30m, 2d or 1w")
    if with_unit and not parts[-1][1]:
        number = parts[-1][0]
        raise ValueError(f"{text!r} has no unit; write {number}d for days, {number}h for hours")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > LONGEST_SECONDS:
        raise ValueError(f"{text!r} is more than a hundred years; write less")
    return seconds


def whole_seconds(text: str) -> int:
    """Of `1h`; 0 where that is no time."""
    try:
        return round(parse_duration(text))
    except ValueError:
        return 0


def readable(octets: float) -> str:
    """Bytes for people: `512B`, `64MiB`, `1.5GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if octets < 1024:
            return f"{octets:.0f}{unit}"
        octets /= 1024
    return f"{octets:.1f}GiB"
