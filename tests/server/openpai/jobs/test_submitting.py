"""What is looked at in a config before it is handed in."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.problems import Problem
from regatta.server.openpai.jobs.submitting import WARNING, storages_named, warning_header

PLUGINS = "com.microsoft.pai.runtimeplugin"


@pytest.mark.parametrize(
    ("extras", "names"),
    [
        ({}, []),
        ({"storages": []}, []),
        ({"storages": None}, []),
        ({"storages": [{"name": "x"}, {"name": "y", "mountPath": "/y"}]}, ["x", "y"]),
        ({"storages": ["x", {"mountPath": "/y"}, {"name": 3}, {"name": ""}]}, []),
        ({"storages": {"name": "x"}}, []),
        (
            {
                PLUGINS: [
                    {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["x"]}}
                ]
            },
            ["x"],
        ),
        ({PLUGINS: [{"plugin": "ssh", "parameters": {"storageConfigNames": ["x"]}}, "odd"]}, []),
        ({PLUGINS: [{"plugin": "teamwise_storage"}]}, []),
    ],
)
def test_storages_are_those_that_have_a_name(extras: dict[str, Any], names: list[str]) -> None:
    assert list(storages_named(extras)) == names


def test_what_is_true_of_several_roles_is_said_once_in_a_line() -> None:
    same = Problem("prerequisites[0].uri", "names no\ninterpreter", "warning")
    other = Problem("extras", "größer", "warning")

    header = warning_header([same, other, same])

    assert header[WARNING].count("names no interpreter") == 1
    assert header[WARNING].count("; ") == 1
    assert header[WARNING].isascii()
    assert warning_header([]) == {}
