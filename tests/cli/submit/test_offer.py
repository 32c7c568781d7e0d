"""A file that names only an image: what is offered can be pasted, and runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.doors import Regatta, ps_job, shell_job


def image_only(text: str, *roles: str) -> str:
    """The job with the commands of these roles, or of all, taken out."""
    document = yaml.safe_load(text)
    for name in roles or ("ps", "worker"):
        if name in document["spec"]:
            container = document["spec"][name]["template"]["spec"]["containers"][0]
            del container["command"]
            container["image"] = "example.com/demo:v1"
    return yaml.safe_dump(document)


def offered(said: str) -> list[str]:
    """The words of the one line that stands apart."""
    (line,) = re.findall(r"^ {6}regatta (.*)$", said, re.MULTILINE)
    return shlex.split(line)


@pytest.fixture
def folder(regatta: Regatta, name: str) -> Path:
    """A folder with a space in its name, and a program."""
    made = regatta.folder / f"the {name}"
    made.mkdir()
    (made / "train.py").write_text("import sys; print('trained', *sys.argv[1:])\n")
    return made


def test_the_line_that_is_offered_has_the_persons_options_and_runs(
    regatta: Regatta, name: str, folder: Path
) -> None:
    (folder / "job.yaml").write_text(image_only(shell_job(name)))
    options = ("--env", "A=b c", "--set", "spec.worker.replicas=2")

    refused = regatta("run", str(folder), *options)

    assert refused.code == 2
    assert "spec.worker.template.spec.containers[0].command: missing" in refused.err
    line = offered(refused.err)
    assert line == ["run", str(folder), *options, "--command", "python train.py"]
    ran = regatta(*line)
    assert ran.code == 0, ran.err
    assert ran.out.count("| trained") == 2


@pytest.mark.parametrize("verb", ["submit", "validate", "run --dry-run"])
def test_every_door_to_a_job_offers_it(
    regatta: Regatta, name: str, folder: Path, verb: str
) -> None:
    file = folder / "job.yaml"
    file.write_text(image_only(shell_job(name)))
    said = regatta(*verb.split(), str(file))
    assert said.code == 2
    again = regatta(*offered(said.err))
    assert again.code == 0, again.err


def test_a_role_that_has_a_command_keeps_it(regatta: Regatta, name: str, folder: Path) -> None:
    (folder / "job.yaml").write_text(image_only(ps_job(name, "sleep 600", "true"), "worker"))
    line = offered(regatta("run", str(folder)).err)
    assert line[2:] == ["--role", "worker", "--command", "python train.py"]
    shown = json.loads(regatta(*line, "--dry-run", "-o", "json").out)
    commands = {
        made["metadata"]["name"]: made["spec"]["containers"][0]["command"]
        for made in shown["objects"]
        if made["kind"] == "Pod"
    }
    assert commands == {
        f"{name}-ps-0": ["sh", "-c", "sleep 600"],
        f"{name}-worker-0": ["python", "train.py"],
    }


def test_without_a_program_the_line_shows_what_a_replica_is_told(
    regatta: Regatta, name: str, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(image_only(ps_job(name, "true", "true")))
    refused = regatta("run", str(tmp_path / "job.yaml"))
    assert f"There is no program in {tmp_path}" in refused.err
    ran = regatta(*offered(refused.err))
    assert ran.code == 0, ran.err
    assert "PADDLE_TRAINER_ID=0" in ran.out


def test_of_several_files_each_has_a_line_of_its_own(
    regatta: Regatta, name: str, folder: Path
) -> None:
    files = [folder / "a.yaml", folder / "b.yaml"]
    for file in files:
        file.write_text(image_only(shell_job(name)))
    said = regatta("validate", *map(str, files), "--env", "A=1").err
    lines = [shlex.split(line) for line in re.findall(r"^ {6}regatta (.*)$", said, re.MULTILINE)]
    assert [line[:4] for line in lines] == [["run", str(file), "--env", "A=1"] for file in files]


def test_a_misspelt_command_is_told_beside_the_missing_one(regatta: Regatta, name: str) -> None:
    text = shell_job(name).replace("command:", "comand:")
    said = regatta("run", "-", stdin=text).err
    assert "containers[0].command: missing" in said
    assert re.search(r"warning: .*containers\[0\]\.comand .*did you mean command\?", said)
