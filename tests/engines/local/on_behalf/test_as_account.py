"""A submission is looked at by the account that hands it in, and by nobody who may more."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import InvalidJob, PreflightFailed, RegattaError
from regatta.engines.blocking import Blocking
from regatta.engines.local.on_behalf import as_account as asking
from tests.engines.local.accounts_here import (
    ANN,
    as_account,
    home,
    needs_root,
    place,
    work_of,
)
from tests.engines.local.jobs import a_job, a_submission, alive

__all__ = ["home", "place"]

pytestmark = needs_root


@pytest.fixture
def told(place: Path) -> Path:
    """Where every account can leave a word."""
    folder = place / "told"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def a_training(command: list[str]) -> dict[str, Any]:
    job = a_job("job")
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = command
    return job


def an_interpreter(place: Path, *lines: str) -> Path:
    """A program that is called python, and whatever its author wanted."""
    folder = place / "bin"
    folder.mkdir(mode=0o755)
    file = folder / "python"
    file.write_text("\n".join(("#!/bin/sh", *lines, "")))
    file.chmod(0o755)
    return file


def dry_run(engine: Blocking, document: dict[str, Any], place: Path, **more: Any) -> Any:
    return engine.preview(*a_submission(document, **as_account(place, ANN, **more)))


def refusal(engine: Blocking, document: dict[str, Any], place: Path, **more: Any) -> RegattaError:
    with pytest.raises((InvalidJob, PreflightFailed)) as refused:
        dry_run(engine, document, place, **more)
    return refused.value


def only_problem(error: RegattaError) -> tuple[str, str]:
    problems = [problem for problem in error.problems if problem.severity == "error"]
    assert len(problems) == 1, problems
    return problems[0].path, problems[0].message


def test_a_hostile_python_of_a_dry_run_runs_as_who_submits_it(
    engine: Blocking, place: Path, told: Path
) -> None:
    python = an_interpreter(
        place,
        f"id -u >{told}/uid; id -G >{told}/groups; grep NoNewPrivs /proc/self/status >{told}/nnp",
        f"env >{told}/env; cat {place}/home/*/regatta.db >{told}/database",
        'echo \'{"version": "2.6.2", "has_servers": true, "protobuf": 3}\'',
    )
    script = work_of(place, ANN) / "train.py"
    script.write_text("import paddle\n")
    os.chown(script, ANN, ANN)
    dry_run(engine, a_training([str(python), "train.py"]), place)
    assert (told / "uid").read_text() == f"{ANN}\n"
    assert (told / "uid").stat().st_uid == ANN
    assert (told / "groups").read_text() == f"{ANN}\n"
    assert (told / "nnp").read_text().split() == ["NoNewPrivs:", "1"]
    assert (told / "database").read_bytes() == b""
    assert stat.S_IMODE((told / "uid").stat().st_mode) == 0o600
    assert f"HOME={work_of(place, ANN)}" in (told / "env").read_text().splitlines()
    for name, value in os.environ.items():
        if name.startswith(("PYTEST", "VIRTUAL_ENV", "SSH")):
            assert f"{name}={value}" not in (told / "env").read_text()


def test_what_it_leaves_running_is_ended(engine: Blocking, place: Path, told: Path) -> None:
    """However it hides: in a session of its own, with nothing of its environment, as an orphan."""
    python = an_interpreter(
        place,
        f"setsid env -i sh -c 'echo $$ >{told}/pid; exec sleep 600' >/dev/null 2>&1 &",
        f"while ! test -s {told}/pid; do sleep 0.01; done",
    )
    dry_run_of = a_training([str(python), "-c", "import paddle"])
    refusal(engine, dry_run_of, place)
    pid = int((told / "pid").read_text())
    assert not alive(pid)


def test_a_python_that_answers_nonsense_is_told_of(engine: Blocking, place: Path) -> None:
    python = an_interpreter(place, "head -c 100000 /dev/zero | tr '\\0' x; echo; echo '[1, {]'")
    path, message = only_problem(refusal(engine, a_training([str(python), "-m", "paddle"]), place))
    assert path.endswith("worker")
    assert "unexpected answer" in message


def test_a_python_that_never_answers_is_given_up(
    engine: Blocking, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SECONDS", 0.5)
    python = an_interpreter(place, "exec sleep 600")
    error = refusal(engine, a_training([str(python), "-m", "paddle"]), place)
    assert "it took too long" in str(error)


def test_an_interpreter_is_asked_once_an_account(
    engine: Blocking, place: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_known", {})
    python = an_interpreter(
        place,
        f"echo asked >>{told}/asked",
        'echo \'{"version": "2.6.2", "has_servers": true, "protobuf": 3}\'',
    )
    for _ in range(2):
        dry_run(engine, a_training([str(python), "-m", "paddle"]), place)
    assert (told / "asked").read_text() == "asked\n"
    assert set(asking._known) == {ANN}


@pytest.fixture
def closed(place: Path) -> Path:
    """A folder with code that is for root alone."""
    folder = place / "closed"
    (folder / "inner").mkdir(parents=True)
    (folder / "train.py").write_text("import paddle\n")
    folder.chmod(0o700)
    return folder


def is_closed(path: Path) -> str:
    return f"{path} cannot be read by u{ANN}, as whom the job runs; have its owner open it, with"


def test_a_script_that_the_account_cannot_reach_is_told_with_what_is_closed(
    engine: Blocking, place: Path, closed: Path
) -> None:
    script = str(closed / "train.py")
    _, message = only_problem(refusal(engine, a_training(["python3", script]), place))
    assert message.startswith(f"the script {script!r}: {is_closed(closed)}")
    closed.chmod(0o711)
    (closed / "train.py").chmod(0o600)
    _, message = only_problem(refusal(engine, a_training(["python3", script]), place))
    assert message.startswith(f"the script {script!r}: {is_closed(closed / 'train.py')}")


@pytest.mark.parametrize("inner", ["", "inner", "../link"])
def test_a_working_folder_that_the_account_cannot_enter_is_told_with_what_is_closed(
    engine: Blocking, place: Path, closed: Path, inner: str
) -> None:
    (place / "link").symlink_to(closed / "inner")
    job = a_training(["sh", "train.py"])
    folder = os.path.normpath(closed / inner)
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["workingDir"] = folder
    path, message = only_problem(refusal(engine, job, place))
    assert path == "spec.worker.template.spec.containers[0].workingDir"
    assert message.startswith(is_closed(closed))
    assert f"`chown {ANN} {closed}`" in message
    assert str(work_of(place, ANN)) in message


def test_a_script_hears_of_the_python_that_its_account_does_not_find(
    engine: Blocking, place: Path
) -> None:
    """One that is for root alone is none."""
    programs = an_interpreter(place).parent
    for name in ("sh", "python3"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    (programs / "python").chmod(0o700)
    environment = {"PATH": str(programs)}
    job = a_training(["sh", "-c", "true; python --version"])
    (warning,) = dry_run(engine, job, place, environment=environment).warnings
    assert warning.path == "spec.worker.template.spec.containers[0].command"
    assert f"will not find it; write python3, which is {programs}/python3" in warning.message
    (programs / "python").chmod(0o755)
    assert dry_run(engine, job, place, environment=environment).warnings == ()


def test_a_program_that_only_root_may_run_is_not_executable(engine: Blocking, place: Path) -> None:
    program = place / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    _, message = only_problem(refusal(engine, a_training([str(program)]), place))
    assert "is not executable" in message


@pytest.mark.parametrize("mode", [0o700, 0o711])
def test_a_volume_that_the_account_cannot_read_is_refused_by_field(
    engine: Blocking, place: Path, mode: int
) -> None:
    data = place / "data"
    data.mkdir()
    data.chmod(mode)
    job = a_job("job")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "data", "hostPath": {"path": str(data)}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    path, message = only_problem(refusal(engine, job, place))
    assert path == "spec.worker.template.spec.volumes[0].hostPath.path"
    assert message == f"{data} cannot be read by u{ANN}, as whom the job runs"


@pytest.mark.parametrize("through_link", [False, True])
def test_a_volume_beyond_the_allowed_folders_is_refused_by_field(
    engine: Blocking, place: Path, through_link: bool
) -> None:
    for name in ("allowed", "outside"):
        (place / name).mkdir(mode=0o755)
    (place / "allowed/link").symlink_to(place / "outside")
    (place / "allowed/inner").mkdir(mode=0o755)
    wanted = place / ("allowed/link" if through_link else "outside")
    job = a_job("job", "true")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "data", "hostPath": {"path": str(wanted)}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    folders = (str(place / "allowed"),)
    path, message = only_problem(refusal(engine, job, place, folders=folders))
    assert path == "spec.worker.template.spec.volumes[0].hostPath.path"
    assert "is not one of the folders that the server allows, nor in one: " in message
    assert message.endswith(str(place / "allowed"))
    assert str(place / "outside") in message
    pod["volumes"][0]["hostPath"]["path"] = str(place / "allowed/inner")
    assert dry_run(engine, job, place, folders=folders).job.name == "job"


def test_an_image_without_an_interpreter_is_warned_of(engine: Blocking, place: Path) -> None:
    images = {"paddle:2.6.2": "/usr/bin/python3"}
    job = a_training(["python", "-c", "print()"])
    warned = dry_run(engine, job, place, images=images).warnings
    assert [problem.path for problem in warned] == ["spec.worker.template.spec.containers[0].image"]
    assert "is unused" in warned[0].message
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["image"] = "paddle:2.6.2"
    assert dry_run(engine, job, place, images=images).warnings == ()


def test_a_preview_shows_where_its_replicas_would_write(engine: Blocking, place: Path) -> None:
    seen = dry_run(engine, a_job("job"), place).environment["job-worker-0"]
    assert seen["PADDLE_LOG_DIR"].startswith(str(work_of(place, ANN).parent / "runs"))
    assert seen["USER"] == f"u{ANN}"
