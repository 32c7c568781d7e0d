"""The databases that a team's server is tried on: those of the tests of records."""

from __future__ import annotations

from tests.server.records.conftest import postgresql, pytest_collection_finish, url

__all__ = ["postgresql", "pytest_collection_finish", "url"]
