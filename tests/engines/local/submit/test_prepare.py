"""The checks of a submission that need no engine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regatta.api.errors import InvalidJob, PreflightFailed
from regatta.engines.base import Shell, Submission
from regatta.engines.local.submit.prepare import check_here
from tests.doors import shell_job

NUL = {
    "shell.environment.HOME": Shell(environment={"HOME": "a\0b"}),
    "shell.directory": Shell(directory="/\0"),
    "shell.python": Shell(python="py\0thon"),
    "shell.volumes.data": Shell(volumes={"data": "/\0"}),
}


@pytest.mark.parametrize("place", NUL)
def test_a_shell_that_no_process_could_have_is_refused_with_its_place(place: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        check_here(Submission(text=shell_job("demo")), NUL[place])
    (problem,) = refused.value.problems
    assert (problem.path, "NUL character" in problem.message) == (place, True)


def test_a_check_starts_nothing_and_needs_no_state(tmp_path: Path) -> None:
    shell = Shell(directory=str(tmp_path), environment={"PATH": os.environ["PATH"]})
    checked = check_here(Submission(text=shell_job("demo", "touch started")), shell)
    assert checked.job.name == "demo"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("python", ["/nope", "./nope", "no-such-python"])
def test_an_interpreter_that_is_not_there_is_refused_whoever_would_run_it(python: str) -> None:
    shell = Shell(python=python, environment={"PATH": os.environ["PATH"]})
    with pytest.raises(PreflightFailed) as refused:
        check_here(Submission(text=shell_job("demo", "python train.py")), shell)
    (problem,) = refused.value.problems
    assert problem.message.startswith(f"--python {python}: there is no such program")
