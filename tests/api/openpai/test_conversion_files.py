"""Whole configs: good ones become PaddleJobs, and each bad one gets the messages beside it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import InvalidConfig, InvalidJob
from regatta.api.load import validate_document
from regatta.api.openpai.conversion import Converted, convert, is_openpai
from regatta.api.openpai.wanted import Setting
from regatta.api.source.yaml import read_documents

FILES = Path(__file__).parent / "files"
GOOD = sorted((FILES / "good").iterdir())
BAD = sorted(path for path in (FILES / "bad").iterdir() if path.suffix != ".txt")
PLACE = Setting(user="ada", default_fs_uri="/srv/files")


def read(path: Path) -> dict[str, Any]:
    [document] = read_documents(path.read_bytes())
    assert isinstance(document.value, dict)
    return document.value


def good(name: str) -> Converted:
    [path] = [path for path in GOOD if path.stem == name]
    return convert(read(path), PLACE)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_config_becomes_a_paddle_job(path: Path) -> None:
    config = read(path)
    before = copy.deepcopy(config)
    assert is_openpai(config)
    converted = convert(config, PLACE)
    assert config == before
    loaded = validate_document(converted.document, strict=True)
    assert loaded.warnings == ()
    assert list(converted.roles) == [task.name for task in loaded.job.spec.tasks]
    assert json.loads(json.dumps(converted.document)) == converted.document
    assert not is_openpai(converted.document)
    assert all(problem.severity == "warning" for problem in converted.warnings)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_config_gets_exactly_the_messages_beside_it(path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        convert(read(path), Setting(user="ada"))
    assert isinstance(caught.value, InvalidJob)
    told = f"{caught.value.openpai_code}\n{caught.value}\n"
    assert told == path.with_suffix(".txt").read_text()


def test_there_are_enough_files_and_no_message_without_its_config() -> None:
    assert len(GOOD) >= 20
    assert len(BAD) >= 40
    assert {path.stem for path in BAD} == {path.stem for path in (FILES / "bad").glob("*.txt")}
