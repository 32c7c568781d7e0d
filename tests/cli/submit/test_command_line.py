"""From a command line to a submission and the shell that it was said in."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from regatta.cli.outcomes import Stop
from regatta.cli.settings import Settings
from regatta.cli.submit.command_line import read_options, submission_options
from regatta.engines.base import Shell, Submission
from regatta.engines.inventory import Traits


class Engine:
    def __init__(self, takes_shell: bool) -> None:
        self._traits = Traits(takes_shell=takes_shell)

    def traits(self) -> Traits:
        return self._traits


def read(
    monkeypatch: pytest.MonkeyPatch, *words: str, takes_shell: bool = True
) -> tuple[Submission, Shell | None]:
    command = click.command()(submission_options(lambda **options: options))
    monkeypatch.setattr(Settings, "engine", lambda _: Engine(takes_shell))
    options = command.main(list(words), standalone_mode=False)
    return read_options(Settings(), options)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.yaml").write_text("kind: PaddleJob\n")
    return "jobs/job.yaml"


def test_a_file_that_cannot_be_read_is_told_before_any_server_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Settings] = []
    command = click.command()(submission_options(lambda **options: options))
    monkeypatch.setattr(Settings, "engine", asked.append)
    options = command.main([str(tmp_path / "job.yaml")], standalone_mode=False)

    with pytest.raises(Stop, match="cannot be read: No such file"):
        read_options(Settings(), options)

    assert asked == []


def test_a_submission_says_what_and_nothing_of_where(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission, _ = read(monkeypatch, file, "--name", "n", "--env", "A=1", "--set", "x=2")

    assert submission.text == "kind: PaddleJob\n"
    assert (submission.source, submission.name) == (file, "n")
    assert (submission.env, submission.sets) == ({"A": "1"}, ("x=2",))


def test_every_submission_has_a_key_of_its_own(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {read(monkeypatch, file)[0].key for _ in range(5)}

    assert len(keys) == 5
    assert all(len(key) == 32 for key in keys)


def test_an_engine_that_takes_a_shell_gets_all_of_it(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/some/bin")

    _, shell = read(monkeypatch, file, "--volume", "data=d", "--python", "./py", "--no-preflight")

    assert shell is not None
    assert shell.directory == str(tmp_path / "jobs")
    assert shell.environment["PATH"] == "/some/bin"
    assert shell.volumes == {"data": str(tmp_path / "d")}
    assert shell.python == str(tmp_path / "py")
    assert (shell.runtime, shell.no_gpu, shell.no_preflight) == ("none", False, True)


def test_a_container_runtime_gets_its_settings_of_the_shell(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONTAINERS_CONF", "DOCKER_HOST", "XDG_RUNTIME_DIR", "SOMETHING_ELSE"):
        monkeypatch.setenv(name, "set")

    _, plain = read(monkeypatch, file)
    _, shell = read(monkeypatch, file, "--runtime", "podman")

    assert plain is not None
    assert shell is not None
    added = set(shell.environment) - set(plain.environment)
    assert {"CONTAINERS_CONF", "DOCKER_HOST", "XDG_RUNTIME_DIR"} <= added
    assert "SOMETHING_ELSE" not in added


def test_an_engine_that_takes_none_gets_none(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, shell = read(monkeypatch, file, takes_shell=False)

    assert shell is None


SAID = {
    "--volume": (["--volume", "data=/d"], Shell(volumes={"data": "/d"})),
    "--python": (["--python", "python3"], Shell(python="python3")),
    "--workdir": (["--workdir", "/w"], Shell(directory="/w")),
    "--runtime": (["--runtime", "docker"], Shell(runtime="docker")),
    "--no-gpu": (["--no-gpu"], Shell(no_gpu=True)),
    # Not refused: on a team's server the author of a job may say so.
    "--no-preflight": (["--no-preflight"], Shell(no_preflight=True)),
}


@pytest.mark.parametrize("option", SAID)
def test_what_a_person_says_of_a_shell_reaches_the_engine_that_judges_it(
    file: str, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    words, said = SAID[option]

    _, shell = read(monkeypatch, file, *words, takes_shell=False)

    assert shell == said
