"""Jobs of accounts that share a machine: each with its own rights, and no way to the others."""

from __future__ import annotations

from pathlib import Path

from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from tests.engines.local.accounts_here import ANN, as_account, home, needs_root, place
from tests.engines.local.jobs import a_job, submit, texts, wait_for

__all__ = ["home", "place"]

pytestmark = needs_root


def said_by(engine: Blocking, name: str) -> list[str]:
    return texts(engine.logs("default", name, LogQuery()))


def test_smoke(engine: Blocking, place: Path) -> None:
    script = (
        "id -u; id -G; pwd; env; grep -E 'NoNew|Cap' /proc/self/status; echo hi >/dev/stderr; umask"
    )
    submit(engine, a_job("first", script), **as_account(place, ANN))
    wait_for(engine, "first", Phase.COMPLETED)
    print("\n".join(said_by(engine, "first")))
    assert 0
