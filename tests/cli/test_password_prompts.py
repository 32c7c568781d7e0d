"""Where a password comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.errors import BadSetting
from regatta.cli.password_prompts import read_password_file, same_twice

PASSWORD = "correct horse"


@pytest.mark.parametrize("text", ["secret word", "secret word\n", "secret word\r\n"])
def test_a_password_file_is_its_first_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text, newline="")
    assert read_password_file(tmp_path / "f") == "secret word"


def test_a_file_that_will_not_do_is_named_and_its_content_is_not(tmp_path: Path) -> None:
    file = tmp_path / "f"
    with pytest.raises(BadSetting, match=r"--password-file .*/f cannot be read: .*No such file"):
        read_password_file(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting, match="cannot be read"):
        read_password_file(file)
    file.write_text("secret\nword\n")
    with pytest.raises(BadSetting, match="has several lines") as told:
        read_password_file(file)
    assert "secret" not in str(told.value)


def test_what_is_typed_twice_must_be_the_same() -> None:
    assert same_twice(PASSWORD, PASSWORD) == PASSWORD
    with pytest.raises(BadSetting, match="differ") as told:
        same_twice(PASSWORD, PASSWORD + "x")
    assert PASSWORD not in str(told.value)
