"""Configs for tests: `v1(command="ls")`, `v2(commands=["ls"])` in place of walls of JSON."""

from __future__ import annotations

from typing import Any

from regatta.api.openpai.conversion import Converted, convert
from regatta.api.openpai.wanted import Setting
from regatta.controller.environment.references import expand

PLACE = Setting(user="ada", default_fs_uri="/srv/files")


def v1(
    command: str = "true", *, role: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    one = {"name": "main", "command": command, **(role or {})}
    return {"jobName": "job", "image": "team/x", "taskRoles": [one], **fields}


def v2(
    *commands: str, role: dict[str, Any] | None = None, image: Any = None, **fields: Any
) -> dict[str, Any]:
    one = {
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
        "commands": list(commands or ["true"]),
        **(role or {}),
    }
    first = {"type": "dockerimage", "name": "image", "uri": "team/x", **(image or {})}
    prerequisites = [first, *fields.pop("prerequisites", [])]
    return {
        "protocolVersion": 2,
        "name": "job",
        "type": "job",
        "prerequisites": prerequisites,
        "taskRoles": {"main": one},
        **fields,
    }


def converted(config: dict[str, Any], setting: Setting = PLACE) -> Converted:
    return convert(config, setting)


def task(config: dict[str, Any], number: int = 0, setting: Setting = PLACE) -> dict[str, Any]:
    found: dict[str, Any] = convert(config, setting).document["spec"]["tasks"][number]
    return found


def container(config: dict[str, Any], setting: Setting = PLACE) -> dict[str, Any]:
    found: dict[str, Any] = task(config, setting=setting)["template"]["spec"]["containers"][0]
    return found


def variables(config: dict[str, Any], setting: Setting = PLACE) -> dict[str, str]:
    """The literal ones, as the process sees them."""
    env = container(config, setting)["env"]
    return {each["name"]: expand(each["value"], {}) for each in env if "value" in each}


def words(config: dict[str, Any], setting: Setting = PLACE) -> list[str]:
    """What starts the process, as Kubernetes hands it over, whatever variables there are."""
    return [expand(word, {"x": "WRONG"}) for word in container(config, setting)["command"]]


def warnings(config: dict[str, Any], setting: Setting = PLACE) -> dict[str, str]:
    return {problem.path: problem.message for problem in convert(config, setting).warnings}
