"""What a v2 config may not be, and what its author should know: one function per rule.

Rules see the draft, in which whatever was malformed is absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from regatta.api.checks.names import about_label
from regatta.api.checks.suggestions import did_you_mean, listed, shown, shown_key
from regatta.api.openpai import plugins, secret_values
from regatta.api.openpai.reading import (
    LONGEST_NAME,
    about_unknown,
    check_ports,
    check_size,
)
from regatta.api.openpai.templates import rendered
from regatta.api.openpai.version_two_fields import (
    ConfigDraft,
    DeploymentDraft,
    PrerequisiteDraft,
    TaskRoleDraft,
    Texts,
)
from regatta.api.problems import Problem
from regatta.api.secrets import MASK
from regatta.api.source.limits import MAX_STRING
from regatta.api.source.paths import join

_NAME = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_WORD = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
TYPES = ("dockerimage", "script", "output", "data")
_COMMON = ("protocolVersion", "name", "type", "version", "contributor", "description")
_OF_IMAGE = (*_COMMON, "uri", "auth")


def check(draft: ConfigDraft) -> Iterator[Problem]:
    for rule in _RULES:
        yield from rule(draft)


def _check_identity(draft: ConfigDraft) -> Iterator[Problem]:
    if draft.protocol_version is None:
        yield Problem("protocolVersion", "missing; write 2")
    if draft.name is None:
        yield Problem("name", "missing; write a name of letters, digits, - and _")
    yield from _check_common("", draft)
    if draft.type != "job":
        found = "missing" if draft.type is None else f"found {shown(draft.type)}"
        yield Problem("type", f"{found}; write job")
    cluster = draft.defaults and draft.defaults.virtual_cluster
    if cluster and (message := about_label(cluster, "a virtual cluster")):
        yield Problem("defaults.virtualCluster", message)


def _check_common(path: str, said: ConfigDraft | PrerequisiteDraft) -> Iterator[Problem]:
    """What a job and each of its prerequisites say of themselves."""
    protocol, name, version = said.protocol_version, said.name, said.version
    if protocol is not None and (type(protocol) not in (int, str) or str(protocol) != "2"):
        yield Problem(join(path, "protocolVersion"), f"found {shown(protocol)}; write 2")
    if name is not None and not _NAME.fullmatch(name):
        wrong = f"found {shown(name)}; a name has letters, digits, - and _"
        yield Problem(join(path, "name"), wrong)
    elif name is not None and len(name) > LONGEST_NAME:
        wrong = f"found {shown(name)}; a name has at most {LONGEST_NAME} characters"
        yield Problem(join(path, "name"), wrong)
    if version is not None and type(version) not in (str, int, float):
        yield Problem(join(path, "version"), f"found {shown(version)}; write text or a number")


# Prerequisites


def _check_prerequisites(draft: ConfigDraft) -> Iterator[Problem]:
    seen: dict[tuple[str | None, str], str] = {}
    if draft.prerequisites == []:
        yield Problem("prerequisites", "found an empty list; write at least one dockerimage")
    for i, item in enumerate(draft.prerequisites or ()):
        path = f"prerequisites[{i}]"
        if item is None:
            yield Problem(path, "found nothing; write a prerequisite, or remove the item")
            continue
        yield from _check_prerequisite(path, item, draft)
        if item.name is None:
            yield Problem(f"{path}.name", "missing; task roles refer to it by its name")
            continue
        if item.type in TYPES and (item.type, item.name) in seen:
            yield Problem(
                f"{path}.name",
                f"Duplicate {item.type} prerequisites {shown_key(item.name)}. "
                f"{seen[item.type, item.name]} is called so already; call this one otherwise",
            )
        seen.setdefault((item.type, item.name), path)


def _check_prerequisite(
    path: str, item: PrerequisiteDraft, draft: ConfigDraft
) -> Iterator[Problem]:
    yield from _check_common(path, item)
    if item.type not in TYPES:
        found = "missing" if item.type is None else f"found {shown(item.type)}"
        hint = did_you_mean(item.type, TYPES)
        yield Problem(f"{path}.type", f"{found}; {hint}Allowed: {listed(TYPES, 'or')}")
    if item.type == "dockerimage":
        yield from _check_image(path, item, draft)
    elif item.type == "data" and item.uri is not None and not _are_texts(item.uri):
        yield Problem(f"{path}.uri", f"found {shown(item.uri)}; write a list of addresses")
    elif item.type in ("script", "output") and not isinstance(item.uri, str | None):
        yield Problem(f"{path}.uri", f"found {shown(item.uri)}; write one address, as text")
    for i, name in enumerate(item.require or ()):
        yield from _check_reference(f"{path}.require[{i}]", name, draft)


def _check_image(path: str, item: PrerequisiteDraft, draft: ConfigDraft) -> Iterator[Problem]:
    written = item.model_dump(by_alias=True, exclude_unset=True)
    for key in written:
        if key not in _OF_IMAGE:
            yield Problem(join(path, key), about_unknown(key, _OF_IMAGE))
    if item.uri is None:
        yield Problem(f"{path}.uri", "missing; write the image's name")
    elif not isinstance(item.uri, str) or not re.fullmatch(r"\S+", item.uri):
        yield Problem(f"{path}.uri", f"found {shown(item.uri)}; write an image's name, as text")
    auth, secrets = item.auth, _secrets(draft)
    if auth is not None and auth.password == MASK:
        yield Problem(f"{path}.auth.password", secret_values.WRITE_AGAIN.format("password"))
    for key in ("username", "password", "registryuri"):
        text = getattr(auth, key, None)
        if text and secrets is not None:
            yield from secret_values.check_use(plugins.Piece(f"{path}.auth.{key}", text), secrets)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _check_reference(
    path: str, name: str | None, draft: ConfigDraft, kind: str | None = None
) -> Iterator[Problem]:
    if draft.prerequisite(name, kind) is not None:
        return
    of_kind = dict.fromkeys(
        item.name
        for item in draft.prerequisites or ()
        if item and item.name and kind in (None, item.type)
    )
    of_that = f" of type {kind}" if kind else ""
    there = f"There is none{of_that}; write one below prerequisites"
    if of_kind:
        there = f"{f'Those{of_that}' if kind else 'There are'}: {listed(of_kind)}"
    yield Problem(
        path,
        f"Prerequisite {shown_key(name or '')} does not exist. {_meant(name, of_kind)}{there}",
    )


def _meant(name: str | None, known: Iterable[str]) -> str:
    """`did_you_mean`, after the sentence that OpenPAI's scripts look for."""
    hint = did_you_mean(name, known)
    return hint[:1].upper() + hint[1:]


# Task roles


def _check_roles(draft: ConfigDraft) -> Iterator[Problem]:
    if not draft.task_roles:
        found = "missing" if draft.task_roles is None else "found an empty map"
        yield Problem("taskRoles", f"{found}; write at least one task role, by its name")
        return
    counts = (role.tasks for role in draft.roles().values())
    yield from check_size("taskRoles", len(draft.task_roles), "instances", counts)
    for name, role in draft.task_roles.items():
        path = join("taskRoles", name)
        if not _WORD.fullmatch(name):
            yield Problem(
                path,
                f"found {shown(name)}; a task role's name has letters, digits and _, and no digit "
                "first",
            )
        if role is None:
            yield Problem(path, "found nothing; write the role's fields below its name")
        else:
            yield from _check_role(path, role, draft)


def _check_role(path: str, role: TaskRoleDraft, draft: ConfigDraft) -> Iterator[Problem]:
    if role.docker_image is None:
        yield Problem(f"{path}.dockerImage", "missing; name a prerequisite of type dockerimage")
    else:
        yield from _check_reference(
            f"{path}.dockerImage", role.docker_image, draft, kind="dockerimage"
        )
    for kind in ("data", "output", "script"):
        if (name := getattr(role, kind)) is not None:
            yield from _check_reference(f"{path}.{kind}", name, draft, kind)
    for i, name in enumerate(role.prerequisites or ()):
        yield from _check_reference(f"{path}.prerequisites[{i}]", name, draft)
    yield from _check_resources(f"{path}.resourcePerInstance", role)
    yield from _check_commands(f"{path}.commands", role.commands)
    if completion := role.completion:
        for field, count in (
            ("minFailedInstances", completion.min_failed_instances),
            ("minSucceededInstances", completion.min_succeeded_instances),
        ):
            if count is not None and count > role.tasks:
                yield Problem(
                    f"{path}.completion.{field}",
                    f"found {count}, above instances, which is {role.tasks}; it can never happen",
                    "warning",
                )


def _check_resources(path: str, role: TaskRoleDraft) -> Iterator[Problem]:
    found = role.resource_per_instance
    if found is None:
        yield Problem(path, "missing; write cpu, memoryMB and gpu below it")
        return
    amounts = {"cpu": found.cpu, "memoryMB": found.memory_mb, "gpu": found.gpu}
    for key, amount in amounts.items():
        if amount is None:
            yield Problem(f"{path}.{key}", "missing; write a whole number")
    ports = found.ports or {}
    for label, count in ports.items():
        if not _WORD.fullmatch(label):
            yield Problem(
                join(f"{path}.ports", label),
                f"found {shown(label)}; a label has letters, digits and _, and no digit first",
            )
        elif count is None:
            yield Problem(f"{path}.ports.{label}", "found nothing; write how many ports, such as 1")
    yield from check_ports(f"{path}.ports", {label: count or 1 for label, count in ports.items()})


def _check_commands(path: str, commands: Texts) -> Iterator[Problem]:
    if commands is None:
        yield Problem(path, "missing; write a list of commands, at least one")
    elif not any(command and command.strip() for command in commands):
        found = "an empty list" if not commands else "only empty commands"
        yield Problem(path, f"found {found}; write at least one command")


# Deployments


def _check_deployments(draft: ConfigDraft) -> Iterator[Problem]:
    if draft.deployments == []:
        yield Problem("deployments", "found an empty list; write a deployment, or leave it out")
    seen: dict[str, str] = {}
    for i, item in enumerate(draft.deployments or ()):
        path = f"deployments[{i}]"
        if item is None:
            yield Problem(path, "found nothing; write a deployment, or remove the item")
            continue
        if item.name is None:
            yield Problem(f"{path}.name", "missing; defaults.deployment refers to it by its name")
        elif item.name in seen:
            yield Problem(
                f"{path}.name",
                f"Duplicate deployments {shown_key(item.name)}. {seen[item.name]} is called so "
                "already; call this one otherwise",
            )
        if item.name is not None:
            seen.setdefault(item.name, path)
        yield from _check_deployment(path, item, list(draft.task_roles or {}))
    chosen = draft.defaults and draft.defaults.deployment
    if chosen and chosen not in seen:
        there = f"There are: {listed(seen)}" if seen else "Write it below deployments"
        yield Problem(
            "defaults.deployment",
            f"Default deployment {shown_key(chosen)} does not exist. {_meant(chosen, seen)}{there}",
        )


def _check_deployment(path: str, item: DeploymentDraft, roles: list[str]) -> Iterator[Problem]:
    for name in item.task_roles or {}:
        if name not in roles:
            yield Problem(
                join(f"{path}.taskRoles", name),
                f"there is no task role {shown(name)}; {did_you_mean(name, roles)}There are: "
                f"{listed(roles)}",
            )


# Secrets


def _secrets(draft: ConfigDraft) -> dict[str, Any] | None:
    """None where what is written is no map: that is told, and its uses need not be."""
    if draft.secrets is None:
        return {}
    return draft.secrets if isinstance(draft.secrets, dict) else None


def _check_secrets(draft: ConfigDraft) -> Iterator[Problem]:
    yield from secret_values.check_shape(draft.secrets)
    secrets = _secrets(draft)
    if secrets is None:
        return
    told: set[Problem] = set()
    for name in draft.roles():
        for piece in pieces_of(name, draft):
            for problem in secret_values.check_use(piece, secrets):
                if problem not in told:  # a deployment's command may be that of several roles
                    told.add(problem)
                    yield problem


def _check_lengths(draft: ConfigDraft) -> Iterator[Problem]:
    """Before anything of that length is made: a short text may refer to a long one often."""
    for name, role in draft.roles().items():
        size, values = 0, values_of(role, draft)
        for piece in pieces_of(name, draft):
            for part in rendered(piece.text, values):
                size += len(part if isinstance(part, str) else part.written)
                if size >= MAX_STRING:
                    break
        if size >= MAX_STRING:
            yield Problem(
                join("taskRoles", name) + ".commands",
                f"with what its references stand for it has more than the {MAX_STRING:,} "
                "characters that Linux gives a program as one word; keep it in a file",
            )


def pieces_of(name: str, draft: ConfigDraft) -> list[plugins.Piece]:
    """All that a role runs, in order, each command with its place."""
    role = (draft.task_roles or {})[name]  # not all of them anew for each
    assert role is not None
    before, after = plugins.around(name, role, draft)
    chosen = draft.deployment
    extra = (chosen.task_roles or {}).get(name) if chosen else None
    if chosen is not None and extra is not None:
        number = next(i for i, item in enumerate(draft.deployments or ()) if item is chosen)
        place = join(f"deployments[{number}].taskRoles", name)
        before = [*before, *_pieces(f"{place}.preCommands", extra.pre_commands)]
        after = [*_pieces(f"{place}.postCommands", extra.post_commands), *after]
    return [*before, *_pieces(join("taskRoles", name) + ".commands", role.commands), *after]


def values_of(role: TaskRoleDraft, draft: ConfigDraft) -> dict[str, Any]:
    """What the templates of a role's commands refer to."""
    values: dict[str, Any] = {"parameters": draft.parameters or {}}
    for kind in ("script", "output", "data"):
        chosen = draft.prerequisite(getattr(role, kind), kind)
        if chosen is not None:
            values[kind] = chosen.model_dump(by_alias=True, exclude_unset=True, exclude={"auth"})
    return values


def _pieces(path: str, commands: Iterable[str | None] | None) -> list[plugins.Piece]:
    return [plugins.Piece(f"{path}[{i}]", text or "") for i, text in enumerate(commands or ())]


_RULES: tuple[Callable[[ConfigDraft], Iterator[Problem]], ...] = (
    _check_identity,
    _check_prerequisites,
    _check_roles,
    _check_deployments,
    plugins.check,
    _check_secrets,
    _check_lengths,
)
