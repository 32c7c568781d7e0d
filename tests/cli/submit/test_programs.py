"""Which program a file that names only an image may have meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.cli.submit.programs import folders_of, paddle_beside, program_of

REPOSITORY = Path(__file__).parents[3]
PROGRAMS: dict[str, tuple[dict[str, str], list[str], str]] = {
    "train.py before others": ({"model.py": "", "train.py": ""}, [], "python train.py"),
    "one of the role's name": ({"train.py": "", "worker.sh": ""}, [], "sh worker.sh"),
    "the only program": ({"fit.py": "", "test_fit.py": ""}, [], "python fit.py"),
    "a script": ({"run.sh": ""}, [], "sh run.sh"),
    "two that may be it": ({"a.py": "", "b.py": ""}, [], ""),
    "none": ({"notes.txt": ""}, [], ""),
    "what the Dockerfile starts": (
        {"Dockerfile": 'FROM a\nCMD ["python", "-u", "fit.py"]\n', "fit.py": "", "x.py": ""},
        [],
        "python -u fit.py",
    ),
    "of its last stage": (
        {"Dockerfile": "FROM a\nCMD x\nFROM b\nENTRYPOINT python \\\n fit.py\n", "fit.py": ""},
        ["--lr", "1"],
        "python fit.py --lr 1",
    ),
    "a module that lies beside the Dockerfile": (
        {"Dockerfile": "CMD python -m fit.cli", "fit/cli.py": "", "x.py": ""},
        [],
        "python -m fit.cli",
    ),
    "a Dockerfile whose program is elsewhere": ({"Dockerfile": "CMD python fit.py"}, [], ""),
    "then what lies there": ({"Dockerfile": "CMD python fit.py", "x.py": ""}, [], "python x.py"),
    "a Dockerfile of another image": (
        {"Dockerfile": 'ENTRYPOINT ["sh", "-c"]\nCMD ["true"]', "train.py": ""},
        ["--lr", "1"],
        "python train.py --lr 1",
    ),
    "nothing but that": ({"Dockerfile": 'ENTRYPOINT ["env"]\nCMD ["--help"]'}, [], ""),
    "args that are a whole command": ({"train.py": ""}, ["sh", "-c", "x"], "sh -c x"),
    "args that are a program": ({"fit.py": "", "x.py": ""}, ["fit.py"], "python fit.py"),
    "args for the program": ({"train.py": ""}, ["--lr", "1"], "python train.py --lr 1"),
}


@pytest.mark.parametrize(("files", "args", "line"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_folders_program_is_found(
    tmp_path: Path, files: dict[str, str], args: list[str], line: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert " ".join(program_of(tmp_path, "worker", args, "example.com/demo:v1")) == line


@pytest.mark.parametrize(
    ("image", "start", "line"),
    [
        ("example.com/demo-fit-it:v1", "env -u X", "env -u X"),
        ("example.com/fit_it", "env -u X", "env -u X"),
        ("example.com/fit", "env -u X", ""),
        ("example.com/fit_it", "no-such-program", ""),
    ],
)
def test_a_dockerfile_without_a_script_is_that_of_an_image_with_its_folders_name(
    tmp_path: Path, image: str, start: str, line: str
) -> None:
    folder = tmp_path / "fit-it"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM a\nCMD {start}\n")
    assert " ".join(program_of(folder, "worker", [], image)) == line


@pytest.mark.parametrize(
    "image", ["wide-and-deep", "example.com:5000/x/demo-wide-and-deep:v1", "wide_and_deep@sha256:0"]
)
def test_a_folder_of_the_images_name_is_found_near_the_file_and_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str
) -> None:
    made = tmp_path / "examples" / "wide_and_deep"
    made.mkdir(parents=True)
    (tmp_path / "deploy" / "examples").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert made in folders_of(image, tmp_path / "deploy" / "examples")
    assert made in folders_of(image, Path("/nowhere"))
    assert next(folders_of(image, tmp_path)) == tmp_path


def test_paddle_is_looked_for_only_where_a_program_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    python = tmp_path / ".venv-p" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / ".venv-p" / "lib" / "python3.9" / "site-packages" / "paddle").mkdir(parents=True)
    (tmp_path / "train.py").write_text("import paddle")
    (tmp_path / "plain.py").write_text("print()")
    assert paddle_beside(["python", "train.py"], tmp_path) == python
    assert paddle_beside(["python", "-m", "paddle.distributed.launch", "x"], tmp_path) == python
    assert paddle_beside(["python", "plain.py"], tmp_path) is None
    assert paddle_beside(["env"], tmp_path) is None


def test_the_operators_image_is_not_what_a_file_in_the_repositorys_root_means() -> None:
    assert program_of(REPOSITORY, "worker", [], "regatta/resnet:latest") == []
    places = folders_of("regatta/resnet:latest", REPOSITORY)
    found = (program_of(place, "worker", [], "regatta/resnet:latest") for place in places)
    assert next(filter(None, found)) == ["python", "train.py"]
