"""What is looked at in a config before it is handed in."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.server.openpai.jobs.submitting import storages_named

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
