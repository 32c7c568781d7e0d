"""What people type before they know the command: each is told what to type instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.cli.main import VERBS, run
from regatta.cli.other_words import OTHER_VERBS
from tests.doors import shell_job

TYPED = {
    "rum j.yaml": "there is no verb 'rum'; did you mean `run`?",
    "apply -f j.yaml": "there is no verb 'apply'; did you mean `run`?",
    "ps": "there is no verb 'ps'; did you mean `get`?",
    "ok.yaml": "there is no verb 'ok.yaml'; did you mean `run ok.yaml`?",
    "restart ok": "there is no verb 'restart'; did you mean `run FILE --replace`?",
    "kill x": "there is no verb 'kill'; did you mean `stop`?",
    "run -f j.yaml": "there is no -f; the job file is named by itself: `regatta run j.yaml`",
    "submit --file=j.yaml": "there is no --file; the job file is named by itself: `regatta submit",
    "run j.yaml --gpus 2": "--set 'spec.worker.template.spec.containers[0].resources.limits[nvidia",
    "run j.yaml k.yaml": "k.yaml is one file too many; `regatta run` takes one, `validate` several",
    "run": "which file? `regatta run` needs a job file, a folder that holds job.yaml, or - for",
    "validate": "which file? `regatta validate` needs a job file",
    "scale": "which job? `regatta scale` needs a name; `regatta get` lists the jobs there are",
    "wait": "which job? `regatta wait` needs a name",
    "logs x --attempt 1 -f": "--attempt shows one try as it was; leave out -f, or it",
    "logs x --tail x": "'x' is not a whole number",
    "delete --finished --older-than 7": "'--older-than': '7' has no unit; write 7d for days",
    "describe job x": "x is one name too many; `regatta describe` takes one, of a job",
}


@pytest.mark.parametrize(("line", "sentence"), TYPED.items())
def test_what_is_no_command_is_told_with_one(
    line: str, sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert sentence in said


def test_other_words_lead_to_verbs_there_are() -> None:
    assert set(OTHER_VERBS.values()) <= set(VERBS)
    assert not set(OTHER_VERBS) & set(VERBS)


@pytest.mark.parametrize(
    ("line", "shown"), [("help", "Verbs:"), ("help run", "Usage: regatta run [OPTIONS] FILE")]
)
def test_help_is_also_a_word(line: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 0
    assert shown in capsys.readouterr().out


def test_the_job_files_that_lie_here_are_named_where_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(shell_job("x"))
    (tmp_path / "values.yaml").write_text("a: 1")
    monkeypatch.chdir(tmp_path)
    assert run(["run"]) == 2
    assert "Here lies one: `regatta run mine.yaml`" in capsys.readouterr().err
    assert run(["validate", "."]) == 2
    assert ". is a folder without a job.yaml. Name the job file itself: mine.yaml" in (
        capsys.readouterr().err
    )


FILES: dict[str, tuple[bytes, str]] = {
    "job.yml": (b"", "job.yml is empty; a job file starts with apiVersion:"),
    "ls": (b"\x7fELF\0\0\xd0", "ls is no text. Name the job file, which is YAML or JSON."),
    "nul": (b"a\0b", "nul is no text. Name the job file"),
    "wide.yaml": (
        shell_job("x").encode("utf-16"),
        "wide.yaml is not UTF-8 text but UTF-16. Save it as UTF-8: iconv -f UTF-16 -t UTF-8 ",
    ),
    "old.yaml": (b"# caf\xe9\n", "old.yaml is not UTF-8 text (byte 5 is 0xe9). Save the file as"),
    "web.yaml": (
        b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
        'found "Deployment", which `kubectl apply` is for. A job file has a document of '
        "apiVersion batch.paddlepaddle.org/v1 and kind PaddleJob",
    ),
    "two.yaml": (
        f"{shell_job('one')}\n---\n{shell_job('two')}".encode(),
        "one file holds one job: put each into a file of its own",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_job_file_is_told_what_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, sentence = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert run(["validate", str(tmp_path / name)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("Job.yaml", "Did you mean {folder}/job.yaml?"),
        ("jbo.yaml", "Did you mean {folder}/job.yaml?"),
        ("job.yml", "Did you mean {folder}/job.yaml?"),
        ("other", "Give the path of a job file"),
        ("gone/job.yaml", "Give the path of a job file"),
    ],
)
def test_a_file_that_is_not_there_may_be_one_that_is(
    asked: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.yaml").write_text(shell_job("x"))
    assert run(["validate", f"{tmp_path}/{asked}"]) == 2
    assert sentence.format(folder=tmp_path) in capsys.readouterr().err


def test_an_address_is_fetched_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "https://example.com/job.yaml"]) == 2
    said = capsys.readouterr().err
    assert "Fetch it first: curl -fL https://example.com/job.yaml | regatta run -" in said
