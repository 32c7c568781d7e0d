"""The line below a job's log: how far it is, and for how long it will go on."""

from __future__ import annotations

import pytest

from regatta.api.job import Progress
from regatta.cli.follow.status_line import BAR, progress_text

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
