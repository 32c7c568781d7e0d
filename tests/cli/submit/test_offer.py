"""A file that names only an image: what is offered can be pasted, and runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
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
    assert "spec.worker.template.spec.containers[0].command (line 11): missing" in refused.err
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
    assert "containers[0].command (line 11): missing" in said
    assert re.search(r"warning: .*containers\[0\]\.comand .*did you mean command\?", said)


# A file that has a command, for an image


def for_an_image(name: str, *command: str, **container: object) -> str:
    """A job of one worker, whose image is called demo-fit."""
    document = yaml.safe_load(shell_job(name))
    (first,) = document["spec"]["worker"]["template"]["spec"]["containers"]
    del first["command"]
    first |= {"image": "example.com/demo-fit:v1", **container}
    if command:
        first["command"] = list(command)
    return yaml.safe_dump(document)


def with_a_paddle(place: Path) -> Path:
    """The interpreter of an environment that has something called paddle."""
    packages = place / ".venv-p" / "lib" / "python3" / "site-packages"
    (packages / "paddle").mkdir(parents=True)
    (packages / "paddle" / "__init__.py").write_text("__version__ = '2.6.2'\n")
    (packages / "paddle" / "base.py").write_text("core = None\n")
    python = place / ".venv-p" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder `jobs` for the job files, beside one with the image's name that has a program."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit" / "train.py").write_text("print('trained')\n")
    return tmp_path


def pasted(regatta: Regatta, file: Path, *options: str) -> list[str]:
    """What the line that is offered adds; it is tried as well."""
    refused = regatta("validate", str(file), *options)
    assert refused.code == 2
    line = offered(refused.err)
    assert line[: 2 + len(options)] == ["run", str(file), *options]
    again = regatta("validate", *line[1:])
    assert again.code == 0, again.err
    return line[2 + len(options) :]


def as_typed(regatta: Regatta, path: Path) -> str:
    return min(os.path.relpath(path, regatta.folder), str(path), key=len)


STARTS: dict[str, tuple[dict[str, object], list[str]]] = {
    "a script that lies by the image's name": ({"command": ["python", "train.py"]}, []),
    "one that a plain shell line starts": ({"command": ["sh", "-c", "python train.py"]}, []),
    "args that are options": (
        {"args": ["--epochs", "3"]},
        ["--command", "python train.py --epochs 3"],
    ),
    "the path of a script in the image": (
        {"command": ["python", "-u", "/opt/paddle/train.py"], "args": ["--lr", "1"]},
        ["--command", "python -u train.py --lr 1"],
    ),
    "a program of the image": (
        {"command": ["/opt/paddle/train.py", "--lr", "1"]},
        ["--command", "python train.py --lr 1"],
    ),
    "a Python of the image": (
        {"command": ["/opt/conda/bin/python3.8", "train.py"]},
        ["--command", "python train.py"],
    ),
}


@pytest.mark.parametrize(("container", "command"), STARTS.values(), ids=STARTS)
def test_what_a_file_starts_is_found_near_by_the_images_name(
    regatta: Regatta, name: str, place: Path, container: dict[str, object], command: list[str]
) -> None:
    file = place / "jobs" / "job.yaml"
    file.write_text(for_an_image(name, **container))
    assert pasted(regatta, file) == [*command, "--workdir", as_typed(regatta, place / "fit")]


def test_the_folder_and_the_python_come_in_one_line(
    regatta: Regatta, name: str, place: Path
) -> None:
    python = with_a_paddle(place)
    (place / "fit" / "train.py").write_text("import paddle\n")
    file = place / "jobs" / "job.yaml"
    file.write_text(for_an_image(name, "python", "train.py"))
    folder = ["--workdir", as_typed(regatta, place / "fit")]
    assert pasted(regatta, file) == [*folder, "--python", as_typed(regatta, python)]
    assert pasted(regatta, file, *folder) == ["--python", as_typed(regatta, python)]


def test_a_script_of_the_images_that_lies_beside_the_file_needs_no_folder(
    regatta: Regatta, name: str, folder: Path
) -> None:
    file = folder / "job.yaml"
    file.write_text(for_an_image(name, "python", "/opt/paddle/train.py"))
    assert pasted(regatta, file) == ["--command", "python train.py"]


@pytest.mark.parametrize("container", [{"command": ["python", "fit.py"]}, {"workingDir": "/no"}])
def test_a_script_that_is_nowhere_gets_no_line(
    regatta: Regatta, name: str, place: Path, container: dict[str, object]
) -> None:
    file = place / "jobs" / "job.yaml"
    file.write_text(for_an_image(name, **({"command": ["python", "train.py"]} | container)))
    refused = regatta("validate", str(file))
    assert refused.code == 2
    assert not re.findall(r"^ {6}regatta", refused.err, re.MULTILINE)


@pytest.mark.parametrize("command", [(), ("python", "train.py")])
def test_gpus_that_this_machine_has_not_are_left_out_in_the_line(
    regatta: Regatta, name: str, place: Path, command: tuple[str, ...]
) -> None:
    file = place / "jobs" / "job.yaml"
    asked = {"limits": {"nvidia.com/gpu": 100_000}}
    file.write_text(for_an_image(name, *command, resources=asked))
    assert pasted(regatta, file)[-1] == "--no-gpu"


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def with_data(name: str) -> str:
    text = for_an_image(name, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    document = yaml.safe_load(text)
    document["spec"]["worker"]["template"]["spec"]["volumes"] = [CLAIM]
    return yaml.safe_dump(document)


def test_a_folder_with_a_volumes_name_is_put_for_it(
    regatta: Regatta, name: str, place: Path
) -> None:
    file = place / "jobs" / "job.yaml"
    file.write_text(with_data(name))
    (place / "fit" / "data").mkdir()
    assert pasted(regatta, file)[-2:] == [
        "--volume",
        f"data={as_typed(regatta, place / 'fit' / 'data')}",
    ]


def test_where_none_has_it_the_line_says_what_to_replace(
    regatta: Regatta, name: str, place: Path
) -> None:
    file = place / "jobs" / "job.yaml"
    file.write_text(with_data(name))
    refused = regatta("validate", str(file)).err
    assert "With a command, and a folder of yours in place of DIR, it runs" in refused
    line = [word.replace("=DIR", f"={place}") for word in offered(refused)]
    assert f"data={place}" in line
    again = regatta("validate", *line[1:])
    assert again.code == 0, again.err
