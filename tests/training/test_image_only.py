"""Tutorials that are written for an image: each runs here by pasting what its refusal offers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .conftest import REPOSITORY, Regatta

TUTORIALS = sorted(
    [*REPOSITORY.glob("examples/*/job*.yaml"), *REPOSITORY.glob("deploy/examples/*.yaml")]
)
#: What this machine lacks and only a person can say: folders for volumes.
LACKING = {
    "data.yaml": ["--volume", "data={folder}"],
    "elastic.yaml": ["--volume", "checkpoints={folder}"],
}


@pytest.fixture(scope="module")
def regatta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regatta]:
    """One for all of them: its server asks the interpreter about Paddle once."""
    command = Regatta(tmp_path_factory.mktemp("tutorials") / "home")
    yield command
    command.leave()


def without_command(tutorial: Path, folder: Path) -> Path:
    """The file as the images' own authors write it, somewhere else."""
    documents = list(yaml.safe_load_all(tutorial.read_text()))
    spec = next(found for found in documents if found["kind"] == "PaddleJob")["spec"]
    for role in [
        *spec.get("tasks", ()),
        *(spec[name] for name in ("ps", "worker") if name in spec),
    ]:
        container = role["template"]["spec"]["containers"][0]
        del container["command"]
        container["image"] = container["image"].replace("regatta/", "example.com/some/demo-")
    copy = folder / tutorial.name
    copy.write_text(yaml.safe_dump_all(documents))
    return copy


def offered(regatta: Regatta, file: Path, tmp_path: Path) -> list[str]:
    said = [word.format(folder=tmp_path) for word in LACKING.get(file.name, ())]
    refused = regatta("run", file, *said)
    assert refused.returncode == 2
    (line,) = re.findall(r"^ {6}regatta (.*)$", refused.stderr, re.MULTILINE)
    return shlex.split(line)


@pytest.mark.training
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_the_line_that_is_offered_would_start_every_tutorial(
    regatta: Regatta, paddle_python: Path, tmp_path: Path, tutorial: Path
) -> None:
    line = offered(regatta, without_command(tutorial, tmp_path), tmp_path)
    assert "env" not in line, "no program was found"
    would = regatta(*line, "--dry-run")
    assert would.returncode == 0, would.stderr


@pytest.mark.training
@pytest.mark.parametrize(
    "tutorial", sorted(REPOSITORY.glob("deploy/examples/*.yaml")), ids=lambda file: file.name
)
def test_so_would_one_that_has_its_command_and_lies_elsewhere(
    regatta: Regatta, paddle_python: Path, tmp_path: Path, tutorial: Path
) -> None:
    line = offered(regatta, tutorial, tmp_path)
    assert "--command" not in line
    would = regatta("validate", *line[1:])
    assert would.returncode == 0, would.stderr


@pytest.mark.training
@pytest.mark.parametrize(
    "tutorial", ["hello/job.yaml", "simple/job.yaml", "wide_and_deep/job.yaml", "resnet/job.yaml"]
)
def test_a_tutorial_trains_by_the_line_that_is_offered(
    regatta: Regatta, paddle_python: Path, tmp_path: Path, tutorial: str
) -> None:
    file = without_command(REPOSITORY / "examples" / tutorial, tmp_path)
    line = offered(regatta, file, tmp_path)
    ran = regatta(*line)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^job \S+ Completed", ran.stdout, re.MULTILINE)
