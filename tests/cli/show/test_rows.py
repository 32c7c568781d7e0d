"""A job as one row of `get`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from regatta.api.load import load_job
from regatta.cli.show.rows import headers, row
from tests.api.builders import a_job

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "names", [("ps-server", "worker"), ("ps", "worker"), ("one", "two")], ids=" ".join
)
def test_every_task_is_counted_also_one_that_is_called_as_a_role(names: tuple[str, str]) -> None:
    job = load_job(
        a_job("two").with_tasks(*({"name": name, "replicas": 1} for name in names)).text()
    ).job

    cells = dict(zip(headers(wide=True), row(job, NOW, wide=True), strict=True))

    assert cells["TASKS"] == " ".join(f"{name}:0/1" for name in names)
    assert cells["WORKER"] == "0/2"
