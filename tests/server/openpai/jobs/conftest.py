"""The servers that OpenPAI's clients speak to."""

from __future__ import annotations

from tests.server.openpai.conftest import (
    on_both,
    postgresql,
    pytest_collection_finish,
    server,
    shared,
)

__all__ = ["on_both", "postgresql", "pytest_collection_finish", "server", "shared"]
