"""A job config of OpenPAI's becomes one PaddleJob document, and what must go beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import msgspec

from regatta.api.errors import InvalidConfig, InvalidJob
from regatta.api.openpai import version_one, version_two
from regatta.api.openpai.paddlejob import (
    document_of,
    labels_of,
    marks_of,
    registry_secret,
    secret_name,
)
from regatta.api.openpai.wanted import Registry, Setting
from regatta.api.problems import Problem
from regatta.api.secrets import JobSecret
from regatta.api.source.limits import check_plain
from regatta.api.source.paths import lineage, split

_OURS = ("apiVersion", "kind")


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """No secret stands in `document`, `config`, `extras` or `warnings`."""

    #: The PaddleJob, as it would stand in a file.
    document: dict[str, Any]
    name: str
    user: str
    virtual_cluster: str
    #: A task's name in the document → the role's in the config.
    roles: dict[str, str]
    #: What the Secret `<metadata.name>-secrets` must hold, by key; empty where there need be none.
    secrets: dict[str, str]
    #: What the Secret `<metadata.name>-registry` must hold.
    registries: tuple[Registry, ...]
    warnings: tuple[Problem, ...]
    #: As it was written, with secrets masked.
    config: dict[str, Any]
    protocol: Literal[1, 2]
    extras: dict[str, Any]
    #: The folder that tasks write in and that has to be their account's own; empty: there is none.
    own_output: str
    #: A path in the document → the one in the config; see `where`.
    marks: dict[str, str]

    def where(self, path: str) -> str:
        """The author's field that a place of the document comes from; itself where none does."""
        return next((self.marks[at] for at in lineage(path) if at in self.marks), path)

    def says(self, field: str) -> bool:
        """Whether the author wrote this field of the config, and more than nothing."""
        value: Any = self.config
        for step in split(field):
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return False
        return value is not None

    def told(self, problem: Problem) -> Problem:
        """What somebody found in the document, at the field that its author wrote."""
        return replace(problem, path=self.where(problem.path))

    def __repr__(self) -> str:  # secrets are in no log
        return f"Converted({self.user}~{self.name})"


def is_openpai(document: object) -> bool:
    """Whether this is one of OpenPAI's configs, right or wrong."""
    if not isinstance(document, dict) or any(key in document for key in _OURS):
        return False
    return (
        "jobName" in document
        or "protocolVersion" in document
        or isinstance(document.get("taskRoles"), dict | list)
    )


def protocol_of(document: dict[str, Any]) -> Literal[1, 2]:
    if "protocolVersion" in document:
        return 2
    if "jobName" in document:
        return 1
    return 2 if isinstance(document.get("taskRoles"), dict) else 1


def renamed(document: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The config of a job of another name; None: of its own."""
    field = "jobName" if protocol_of(document) == 1 else "name"
    return document if name is None else {**document, field: name}


def secrets_of(converted: Converted) -> tuple[JobSecret, ...]:
    """What must go beside the job, for its processes and for whoever pulls its images."""
    name = converted.document["metadata"]["name"]
    found = []
    if converted.secrets:
        found.append(JobSecret(name=secret_name(name), data=converted.secrets))
    if converted.registries:
        auths = {
            entry.registry: {"username": entry.username, "password": entry.password}
            for entry in converted.registries
        }
        found.append(
            JobSecret(
                name=registry_secret(name),
                data={".dockerconfigjson": json.dumps({"auths": auths})},
                type="kubernetes.io/dockerconfigjson",
            )
        )
    return tuple(found)


def convert(document: dict[str, Any], setting: Setting) -> Converted:
    """Raises InvalidConfig with every problem at once, each at the field that its author wrote."""
    protocol = protocol_of(document)
    try:
        check_plain(document)
    except InvalidJob as odd:
        raise InvalidConfig(list(odd.problems), protocol) from odd
    read = version_one.wanted if protocol == 1 else version_two.wanted
    wanted = read(document, setting)
    _, labels = labels_of(wanted)
    return Converted(
        document=document_of(wanted),
        name=wanted.name,
        user=wanted.user,
        virtual_cluster=wanted.virtual_cluster,
        roles={label: role for role, label in labels.items()},
        secrets=wanted.secrets,
        registries=wanted.registries,
        warnings=wanted.warnings,
        config=wanted.config,
        protocol=protocol,
        extras=wanted.extras,
        own_output=wanted.own_output,
        marks=marks_of(wanted),
    )
