"""A v1 config as a v2 one: what v2's door shows of a job that came through v1's."""

from __future__ import annotations

import shlex
from typing import Any

from regatta.api.openpai.retries import MOST_RETRIES
from regatta.api.openpai.templates import as_text
from regatta.api.openpai.version_one import DEFAULT_SHM_MB
from regatta.api.openpai.version_two_advice import V1_FOLDERS
from regatta.api.secrets import MASK

_NAME = "default"
#: v2's scripts end at the first command that fails, and v1's go on.
_GO_ON = "set +euo pipefail"


def as_v2(config: dict[str, Any]) -> dict[str, Any]:
    """`config` is one that `convert` took. Secrets are masked, as in every v2 config."""
    envs = config.get("jobEnvs") or {}
    folders = {kind: config[key] for kind, key in V1_FOLDERS.items() if config.get(key)}
    roles = [role for role in config["taskRoles"] if role is not None]
    shown: dict[str, Any] = {
        "protocolVersion": 2,
        "name": config["jobName"],
        "type": "job",
        "prerequisites": [
            _image(config),
            *(
                {"type": kind, "name": _NAME, "uri": [uri] if kind == "data" else uri}
                for kind, uri in folders.items()
            ),
        ],
        "jobRetryCount": _retries(config.get("retryCount") or 0),
        "taskRoles": {role["name"]: _role(role, list(folders)) for role in roles},
        "defaults": {"virtualCluster": config.get("virtualCluster") or "default"},
    }
    if envs:
        exports = [f"export {key}={shlex.quote(as_text(value))}" for key, value in envs.items()]
        shown["parameters"] = dict(envs)
        shown["deployments"] = [
            {
                "name": _NAME,
                "taskRoles": {role["name"]: {"preCommands": exports} for role in roles},
            }
        ]
        shown["defaults"]["deployment"] = _NAME
    if config.get("authFile"):
        shown["secrets"] = MASK
    if config.get("extras"):
        shown["extras"] = dict(config["extras"])
    return shown


def _retries(count: int) -> int:
    """v2 has no word for without end, and the most that there may be comes near it."""
    return MOST_RETRIES if count < 0 else count


def _image(config: dict[str, Any]) -> dict[str, Any]:
    image = {"type": "dockerimage", "name": _NAME, "uri": config["image"]}
    if not config.get("authFile"):
        return image
    auth = {key: f"<% $secrets.registry.{key} %>" for key in ("username", "password")}
    return {**image, "auth": auth}


def _role(role: dict[str, Any], folders: list[str]) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "cpu": role.get("cpuNumber") or 1,
        "memoryMB": role.get("memoryMB") or 100,
        "gpu": role.get("gpuNumber") or 0,
    }
    if role.get("portList"):
        resources["ports"] = {p["label"]: p.get("portNumber") or 1 for p in role["portList"]}
    return {
        "instances": role.get("taskNumber") or 1,
        "completion": {
            "minFailedInstances": role.get("minFailedTaskCount", 1),
            "minSucceededInstances": role.get("minSucceededTaskCount"),
        },
        "dockerImage": _NAME,
        **dict.fromkeys(folders, _NAME),
        "extraContainerOptions": {"shmMB": role.get("shmMB") or DEFAULT_SHM_MB},
        "resourcePerInstance": resources,
        "commands": [_GO_ON, role["command"]],
    }
