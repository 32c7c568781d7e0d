"""How many files this process may have open: as many as the system allows it. What it starts for
others gets back what it was given itself, as programs that use `select` break with more."""

from __future__ import annotations

import resource

_given: int | None = None


def allow_more() -> int:
    """How many it may have now."""
    global _given
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        _given = soft
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def given() -> int | None:
    """What it was given, where that is less than what it has now."""
    return _given
