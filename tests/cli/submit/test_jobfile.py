"""What is given in the place of a job file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.doors import Regatta, shell_job


def paste(regatta: Regatta, said: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The one line that stands apart, in a shell."""
    (line,) = re.findall(r"^ {6}(\S.*)$", said, re.MULTILINE)
    command = " ".join(regatta.command())
    return subprocess.run(
        ["bash", "-c", f'regatta() {{ {command} "$@"; }}; {line}'],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=regatta.environment,
    )


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("train it.py", "print('it works')"),
        ("Train.sh", "echo it works"),
        ("train", "#!/bin/sh\necho it works"),
    ],
)
@pytest.mark.parametrize("beside", ["", "a job file"])
def test_a_program_is_told_from_a_job_file_with_the_line_that_runs_it(
    regatta: Regatta, tmp_path: Path, name: str, program: str, text: str, beside: str
) -> None:
    (tmp_path / program).write_text(text)
    (tmp_path / program).chmod(0o755)
    if beside:
        (tmp_path / "job.yaml").write_text(shell_job(name))

    said = regatta("run", str(tmp_path / program))

    assert said.code == 2
    assert f"{tmp_path / program} is a program, not a job file" in said.err
    ran = paste(regatta, said.err, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "| it works" in ran.stdout
