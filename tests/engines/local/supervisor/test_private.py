"""Secrets are put into the processes that refer to them, and only there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.local.supervisor.private import Masks, fill
from regatta.engines.local.supervisor.spawn import CannotStart


def a_spec(file: Path, *secrets: dict[str, list[str]]) -> dict[str, Any]:
    processes = [{"env": {"A": "a"}, "secrets": refers} for refers in secrets]
    return {"init": processes[:1], "containers": processes[1:], "secrets_file": str(file)}


def test_each_process_gets_what_it_refers_to(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"j-secrets": {"x": "one", "y": "two"}}))
    spec = a_spec(file, {"S": ["j-secrets", "x"]}, {}, {"T": ["j-secrets", "y"]})

    given = fill(spec)

    assert given == ["one", "two"]
    told = [process["env"] for process in (*spec["init"], *spec["containers"])]
    assert told == [{"A": "a", "S": "one"}, {"A": "a"}, {"A": "a", "T": "two"}]


def test_a_run_without_secrets_asks_for_no_file(tmp_path: Path) -> None:
    spec = {"init": [], "containers": [{"env": {"A": "a"}}]}

    fill(spec)

    assert spec["containers"] == [{"env": {"A": "a"}}]


@pytest.mark.parametrize("content", [None, "{}", '{"j-secrets": {"y": "z"}}', "no json"])
def test_what_is_no_longer_there_is_told_without_a_word_of_it(
    content: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "secrets.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(CannotStart) as refused:
        fill(a_spec(file, {"S": ["j-secrets", "x"]}))

    assert refused.value.reason == "SecretsGone"
    assert refused.value.message == "S: the job's secrets are no longer there"


PEM = "-----BEGIN KEY-----\nMIIEvQ\n}\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("secrets", "words", "told"),
    [
        ([], b"as it is", b"as it is"),
        (["s3cret"], b"sh: /x/s3cret: s3cret?", b"sh: /x/***: ***?"),
        (["abc", "abcdef"], b"abcdef abc", b"*** ***"),
        (["k\xc3\xa9y".encode("latin-1").decode()], "kéy".encode(), b"***"),
        ([PEM], PEM.encode(), b"***"),
        ([PEM], b"read MIIEvQ {}", b"read *** {}"),
        ([""], b"nothing to hide", b"nothing to hide"),
    ],
)
def test_a_secret_is_masked_in_what_is_said_of_an_end(
    secrets: list[str], words: bytes, told: bytes
) -> None:
    assert Masks(secrets).hide(words, cut=False) == told


def test_of_one_that_was_cut_nothing_stays() -> None:
    secret = "0123456789abcdef"
    masks = Masks([secret])
    for size in range(1, len(secret)):
        cut = secret[-size:].encode() + b" is wrong"
        assert masks.hide(cut, cut=True) == b" is wrong"
        assert masks.hide(cut, cut=False) == cut
