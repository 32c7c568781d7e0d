from __future__ import annotations

from tests.daemon.conftest import fresh

__all__ = ["fresh"]
