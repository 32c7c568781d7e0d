"""JSON that somebody else wrote, and may have written to do harm: what reading it can raise."""

from __future__ import annotations

import msgspec

#: Not JSON or not of its type; no text; nested deeper than Python goes.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
