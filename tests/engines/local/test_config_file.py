"""`config.yaml`: what it says about keeping runs, and what a wrong word means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regatta.controller.retention import DAY, UNBOUNDED, Retention
from regatta.engines.local.config_file import Kept, read_retention

RIGHT = {
    "no file": (None, Retention()),
    "nothing about it": ("engine: local\n", Retention()),
    "some of it": ("retention: {runs: 10}\n", Retention(runs=10)),
    "all of it": (
        "retention:\n  age: 12h\n  runs: 3\n  size: 1.5Gi\n",
        Retention(age=DAY / 2, runs=3, size=3 * 2**29),
    ),
    "no bounds": (
        "retention: {age: unlimited, runs: unlimited, size: unlimited}\n",
        Retention(age=None, runs=None, size=None),
    ),
}

WRONG = {
    "retention: 90d\n": r"retention is '90d'; write a map",
    "retention: {ages: 90d}\n": r"retention\.ages is unknown; it may hold age, runs, size",
    "retention: {age: 90}\n": r"retention\.age is 90; write a time such as 90d",
    "retention: {age: '90'}\n": r"retention\.age is '90'; write a time such as 90d",
    "retention: {age: soon}\n": r"retention\.age is 'soon'",
    "retention: {age: 0d}\n": r"retention\.age is '0d'",
    "retention: {runs: 0}\n": r"retention\.runs is 0; write a whole number above 0, or unlimited",
    "retention: {runs: true}\n": r"retention\.runs is True",
    "retention: {runs: 1.5}\n": r"retention\.runs is 1\.5",
    "retention: {size: 5 GB}\n": r"retention\.size is '5 GB'; write an amount of 1Mi or more",
    "retention: {size: 5}\n": r"size is 5; write an amount of 1Mi or more, such as 5Gi, or unlim",
    "retention: {size: '1023Ki'}\n": r"retention\.size is '1023Ki'; write an amount of 1Mi or",
    "retention: {size: -1}\n": r"retention\.size is -1",
    "retention: {age: 90 parsecs}\n": r"retention\.age is '90 parsecs'",
    "retention: {runs: -5}\n": r"retention\.runs is -5",
    "retentoin: {age: unlimited}\n": r"retentoin is unknown; write retention",
    "Retention: {age: unlimited}\n": r"Retention is unknown; write retention",
    "retention: [\n": r"is not YAML",
    "retention\n": r"is not a map",
}


@pytest.mark.parametrize("case", RIGHT.values(), ids=list(RIGHT))
def test_the_bounds_that_hold(tmp_path: Path, case: tuple[str | None, Retention]) -> None:
    text, bounds = case
    path = tmp_path / "config.yaml"
    if text is not None:
        path.write_text(text)
    assert read_retention(path) == Kept(bounds)


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_word_is_told_with_its_field_and_nothing_goes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    bounds, problem = read_retention(path)
    assert re.search(WRONG[text], problem)
    assert problem.startswith(str(path))
    assert bounds == UNBOUNDED


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("retention: {ages: 1d, runs: -5, size: 5 GB}\n")
    problem = read_retention(path).problem
    assert all(f"retention.{name} is" in problem for name in ("ages", "runs", "size"))
