"""How long and how large, as people write and read it: `1h30m`, `64MiB`."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s|$)")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001}


def parse_duration(text: str) -> float:
    """Seconds of `90`, `30s`, `5m`, `1h30m`, `2d`. Raises ValueError with the right form."""
    parts = _PART.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise ValueError(f"{text!r} is not a duration; write 30s, 5m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def readable(octets: float) -> str:
    """Bytes for people: `512B`, `64MiB`, `1.5GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if octets < 1024:
            return f"{octets:.0f}{unit}"
        octets /= 1024
    return f"{octets:.1f}GiB"
