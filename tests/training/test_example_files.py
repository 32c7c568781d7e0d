"""Every example is whole: its parts are there, its job file is valid and names what exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.job import Job, Mode
from regatta.api.load import load_job

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("hello", "simple", "wide_and_deep", "resnet")
JOB_FILES = sorted(EXAMPLES.glob("*/job*.yaml"))


def test_every_example_is_named_here() -> None:
    assert {file.parent.name for file in JOB_FILES} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_a_job_file_an_image_and_a_page_about_it(name: str) -> None:
    missing = [
        part
        for part in ("job.yaml", "Dockerfile", "README.md")
        if not (EXAMPLES / name / part).is_file()
    ]
    assert missing == []


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_job_file_is_valid_without_a_warning(file: Path) -> None:
    loaded = load_job(file.read_text(), source=str(file), strict=True)
    assert loaded.warnings == ()


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_the_programs_of_a_job_file_lie_beside_it_and_in_its_image(file: Path) -> None:
    job = load_job(file.read_text(), source=str(file)).job
    programs = {word for word in _words(job) if word.endswith((".py", ".sh"))}
    copied = [
        word
        for line in (file.parent / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY")
        for word in line.split()[1:-1]
    ]
    assert programs == {program for program in programs if (file.parent / program).is_file()}
    assert programs <= set(copied)
    assert [name for name in copied if not (file.parent / name).is_file()] == []


@pytest.mark.parametrize(
    ("job_file", "mode"),
    [
        ("hello/job.yaml", Mode.CUSTOM),
        ("simple/job.yaml", Mode.COLLECTIVE),
        ("wide_and_deep/job.yaml", Mode.PS),
        ("resnet/job.yaml", Mode.COLLECTIVE),
        ("resnet/job-launch.yaml", Mode.COLLECTIVE),
    ],
)
def test_a_job_files_mode_follows_from_its_roles(job_file: str, mode: Mode) -> None:
    assert load_job((EXAMPLES / job_file).read_text()).job.spec.mode is mode


@pytest.mark.parametrize("name", ["simple", "wide_and_deep", "resnet"])
def test_an_image_has_the_paddle_that_the_tests_run(name: str) -> None:
    tested = (EXAMPLES.parent / "requirements" / "paddle.in").read_text().splitlines()
    pins = [line for line in tested if not line.startswith("#")]
    assert (EXAMPLES / name / "requirements.txt").read_text().splitlines() == pins


def _words(job: Job) -> list[str]:
    return [
        word
        for role in job.spec.roles().values()
        for container in role.template["spec"]["containers"]
        for word in (*container.get("command", ()), *container.get("args", ()))
    ]
