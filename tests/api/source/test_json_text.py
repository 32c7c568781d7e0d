"""JSON as people write it means what they meant, and is told of where it stops being JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from regatta.api.errors import InvalidJob
from regatta.api.load import load_job
from regatta.api.source.json_text import about_json, read_json
from regatta.api.source.yaml import read_documents

LOOSE: dict[str, tuple[str, Any]] = {
    "plain": ('{"a": [1, "b"]}', {"a": [1, "b"]}),
    "comments to the line's end": ('{"a": 1, // one\n"b": 2} // two', {"a": 1, "b": 2}),
    "comments in stars": ('{/* x\n*/"a": /* y */ 1}', {"a": 1}),
    "a comma too many": ('{"a": [1, 2,], }', {"a": [1, 2]}),
    "both together": ('{"a": [1, // one\n], // end\n}', {"a": [1]}),
    "no comment in a text": ('{"a": "http://x /* y */ ,]",}', {"a": "http://x /* y */ ,]"}),
    "a line that breaks in a text": ('{"a": "one\n  two"}', {"a": "one\n  two"}),
    "tabs": ('{\n\t"a":\t1}', {"a": 1}),
    "quotes in a text": ('{"a": "\\"//\\"", // x\n"b": 1}', {"a": '"//"', "b": 1}),
    "YAML in braces": ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
}


@pytest.mark.parametrize(("text", "value"), LOOSE.values(), ids=LOOSE)
def test_loose_json_is_read(text: str, value: Any) -> None:
    (document,) = read_documents(text)
    assert document.value == value


PLACES = """
{ // a comment
  "jobName": "x", "image": "a, {b}: [c]",
  "taskRoles": [
    {"name": "one",
     "ports": [1,
               [2]], /* and
     so on */
     "command": "first
second"},
    {
      "a \\"b\\"": {"c": null}, "d": [],
    },
  ]
}
"""


def test_each_place_of_json_has_the_line_of_its_name() -> None:
    (document,) = read_documents(PLACES)
    assert {path: mark.line for path, mark in document.marks.items()} == {
        "jobName": 3,
        "image": 3,
        "taskRoles": 4,
        "taskRoles[0]": 5,
        "taskRoles[0].name": 5,
        "taskRoles[0].ports": 6,
        "taskRoles[0].ports[0]": 6,
        "taskRoles[0].ports[1]": 7,
        "taskRoles[0].ports[1][0]": 7,
        "taskRoles[0].command": 9,
        "taskRoles[1]": 11,
        'taskRoles[1][a "b"]': 12,
        'taskRoles[1][a "b"].c': 12,
        "taskRoles[1].d": 12,
    }


def test_json_in_one_line_has_no_lines() -> None:
    (document,) = read_documents('{"a": [1, {"b": 2}]}\n')
    assert document.marks == {}


def test_what_is_wrong_in_json_is_told_with_its_line() -> None:
    text = '{"jobName": "x", "image": "y",\n "taskRoles": [{"name": "a",\n  "comand": "true"}]}'
    with pytest.raises(InvalidJob) as caught:
        load_job(text)
    assert ("taskRoles[0].comand", 3) in [(one.path, one.line) for one in caught.value.problems]


WRONG = {
    "a missing comma": ('{\n"a": 1\n"b": 2}', 3, "a comma is missing before this"),
    "a missing colon": ('{\n"a" 1}', 2, "a colon is missing"),
    "a name without quotes": ('{\n"a": 1,\n b: "x" y}', 3, "a name in double quotes"),
    "a text without an end": ('{\n"a": "x\n}', 2, "a text begins here and never ends"),
    "a bracket too many": ('{"a": 1}\n}', 2, "once too often"),
    "the wrong bracket": ('{"a": [1,\n2}', 2, "a comma is missing"),
    "after a comment": ('{ // x\n/* y\n*/ "a": 1\n"b": 2}', 4, "a comma is missing"),
}


@pytest.mark.parametrize(("text", "line", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_json_is_told_where_it_stops_being_one(text: str, line: int, said: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        read_documents(text)
    (problem,) = caught.value.problems
    assert problem.line == line, problem
    assert said in problem.message


def test_a_name_that_stands_twice_is_told_with_both_lines() -> None:
    with pytest.raises(InvalidJob, match="line 3"):
        read_documents('{\n"a": 1,\n"a": 2}')


SLOW = {
    "comments between values": '{"a": 1,' + "/**/" * 100_000 + '"b": 2}',
    "comments before a name": '{"a": [1,' + "/**/" * 100_000 + "]}",
    "a text without an end": '{"' + '\\"' * 400_000,
    "and a backslash at the end": '{"' + '\\"' * 400_000 + "\\",
    "comments without an end": "{" + "/*" * 400_000,
    "commas before those": "{" + ",/*" * 300_000,
    "commas in a comment": "{/*" + "," * 900_000,
    "commas": "{" + ", " * 400_000,
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_how_long_it_takes_grows_with_its_length_alone(text: str) -> None:
    """One of these held a whole server for hours, the other ones for longer than that."""
    about_json(text)
    with suppress(ValueError, RecursionError):
        read_json(text)


def test_a_comment_that_never_ends_is_none() -> None:
    with pytest.raises(ValueError, match=r"Expecting value|Extra data"):
        read_json('{"a": 1} /* b')
