"""The line below a job's log: how far it is, and for how long it will go on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from regatta.api.job import Job, JobStatus, Phase, Progress
from regatta.cli.follow.status_line import BAR, Screen, progress_text, status_text
from regatta.cli.show.ansi import Paint
from tests.controller.builders import a_job

FULL = "█" * BAR
HALF = "█" * (BAR // 2) + "░" * (BAR - BAR // 2)

LINES = {
    "the time left is told": (
        Progress(step=5, total=10, eta_seconds=90),
        f"{HALF}  50% 5/10  90s left",
    ),
    "an unknown pace tells none": (Progress(step=5, total=10), f"{HALF}  50% 5/10"),
    "without a total only the step counts": (Progress(step=5, eta_seconds=9), "step 5"),
    "numbers worth seeing come last": (
        Progress(step=5, metrics={"loss": 0.123456}),
        "step 5  loss 0.1235",
    ),
    "the last step fills the bar": (Progress(step=10, total=10), f"{FULL} 100% 10/10"),
    "a step beyond the total is no share of it": (
        Progress(step=181, total=5, metrics={"loss": 0.5}),
        "step 181, more than its total of 5  loss 0.5",
    ),
}


@pytest.mark.parametrize(("progress", "text"), LINES.values(), ids=LINES)
def test_progress_in_one_line(progress: Progress, text: str) -> None:
    assert progress_text(progress) == text


def _half_way() -> Job:
    progress = Progress(step=5, total=10, eta_seconds=90)
    return replace(
        a_job().with_workers(1).obj(), status=JobStatus(phase=Phase.RUNNING, progress=progress)
    )


@pytest.mark.parametrize("width", range(45, 100))
def test_in_a_narrow_terminal_the_bar_gives_way_and_the_numbers_stay(width: int) -> None:
    text = status_text(_half_way(), datetime.now(UTC), Paint(False), width)
    assert len(text) < width
    assert text.endswith("50% 5/10  90s left")


@pytest.mark.parametrize(
    ("columns", "rows_above"), [(100, 0), (60, 0), (59, 1), (30, 1), (29, 2), (20, 2)]
)
def test_a_status_that_a_narrower_terminal_broke_into_rows_is_erased_whole(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
    rows_above: int,
) -> None:
    screen = Screen(live=True)
    screen.status(Paint(True)("x" * 60, "red"))
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.clear()
    up = f"\x1b[{rows_above}A" if rows_above else ""
    assert capsys.readouterr().out == f"\r{up}\x1b[J"
