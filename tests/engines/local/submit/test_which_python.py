"""What is said of `python` before a job is queued is what the job then finds."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from regatta.api.errors import PreflightFailed
from regatta.api.problems import Problem
from regatta.engines.base import Shell, Submission
from regatta.engines.local.submit.prepare import check_here
from tests.doors import shell_job

CONFIG = """\
protocolVersion: 2
name: job
type: job
prerequisites: [{type: dockerimage, name: image, uri: some/image}]
taskRoles:
  main:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: [COMMAND]
"""


def programs(folder: Path, *names: str) -> str:
    """A PATH with these alone, and the shells."""
    for name in ("sh", "bash"):
        (folder / name).symlink_to(f"/bin/{name}")
    for name in names:
        (folder / name).symlink_to("/usr/bin/python3")
    return str(folder)


def warnings(text: str, path: str, images: Mapping[str, str] | None) -> tuple[Problem, ...]:
    held = None if images is None else dict(images)
    shell = Shell(directory="/", environment={"PATH": path}, images=held)
    found = check_here(Submission(text=text), shell).warnings
    return tuple(warning for warning in found if "python" in warning.message)


def an_openpai_job(command: str) -> str:
    return CONFIG.replace("COMMAND", f"'{command}'")


@pytest.mark.parametrize("images", [None, {}, {"some/image": "/usr/bin/python3"}])
def test_a_script_whose_python_is_nowhere_is_told_so(
    tmp_path: Path, images: Mapping[str, str] | None
) -> None:
    (tmp_path / "named").mkdir()
    path = programs(tmp_path, "python3")
    if images:  # the folder of the interpreter that it stands for goes before
        (tmp_path / "named/python3").symlink_to("/usr/bin/python3")
        images = {"some/image": str(tmp_path / "named/python3")}
    (warning,) = warnings(an_openpai_job("python --version"), path, images)
    assert warning.path == "taskRoles.main.commands"
    assert "there is none on the job's PATH" in warning.message
    assert "the script will not find it; write python3, which is" in warning.message
    failed = subprocess.run(["bash", "-c", "python --version"], env={"PATH": path}, check=False)
    assert failed.returncode == 127  # as said


def test_a_script_whose_python_is_there_hears_which_one_it_is(tmp_path: Path) -> None:
    path = programs(tmp_path, "python")
    text = an_openpai_job("python --version")
    assert warnings(text, path, None) == ()
    assert warnings(text, path, {"*": "/usr/bin/python3"}) == ()
    (warning,) = warnings(text, path, {})
    assert warning.message.endswith(f"for it: `python` in its script is {tmp_path}/python")
    assert "python3" not in warning.message


@pytest.mark.parametrize(
    "script",
    [
        "echo python",
        "./python x",
        "python3 --version",
        "# python",
        ". ./venv/bin/activate; python x",
        "export PATH=/opt/bin:$PATH; python x",
        "python() { python3; }; python",
        "python-config",
    ],
)
def test_a_script_that_starts_no_python_of_the_path_hears_nothing(
    tmp_path: Path, script: str
) -> None:
    assert warnings(an_openpai_job(script), programs(tmp_path, "python3"), None) == ()


@pytest.mark.parametrize(
    "script",
    ["cd /; python x", "A=1 python x", "if true; then python x; fi", "true && exec python x"],
)
def test_wherever_a_script_starts_it_the_missing_python_is_told(
    tmp_path: Path, script: str
) -> None:
    (warning,) = warnings(an_openpai_job(script), programs(tmp_path, "python3"), None)
    assert "starts `python`" in warning.message


def test_a_plain_line_is_refused_with_the_name_that_is_there(tmp_path: Path) -> None:
    path = programs(tmp_path, "python3")
    with pytest.raises(PreflightFailed) as refused:
        warnings(shell_job("job", "python x.py"), path, None)
    (problem,) = refused.value.problems
    assert f"Write python3, which is {tmp_path}/python3." in problem.message
