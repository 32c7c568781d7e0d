"""`config.yaml`: what it says about keeping runs, and how a wrong word is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.errors import BadSetting
from regatta.controller.retention import DAY, Retention
from regatta.engines.local.config_file import read_retention

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
    "retention: {age: soon}\n": r"retention\.age is 'soon'",
    "retention: {age: 0d}\n": r"retention\.age is '0d'",
    "retention: {runs: 0}\n": r"retention\.runs is 0; write a whole number above 0, or unlimited",
    "retention: {runs: true}\n": r"retention\.runs is True",
    "retention: {runs: 1.5}\n": r"retention\.runs is 1\.5",
    "retention: {size: 5 GB}\n": r"retention\.size is '5 GB'; write an amount such as 5Gi",
    "retention: {size: -1}\n": r"retention\.size is -1",
    "retention: [\n": r"is not YAML",
    "retention\n": r"is not a map",
}


@pytest.mark.parametrize("case", RIGHT.values(), ids=list(RIGHT))
def test_the_bounds_that_hold(tmp_path: Path, case: tuple[str | None, Retention]) -> None:
    text, bounds = case
    path = tmp_path / "config.yaml"
    if text is not None:
        path.write_text(text)
    assert read_retention(path) == bounds


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_word_is_refused_with_its_field(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(BadSetting, match=WRONG[text]):
        read_retention(path)
