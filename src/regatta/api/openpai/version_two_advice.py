"""What a v2 config may say and cannot have here: one warning each, with what happens instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from regatta.api.checks.suggestions import did_you_mean, listed
from regatta.api.openpai.secret_values import about_numbers, used_in
from regatta.api.openpai.templates import ROOTS, Reference, parts, unread
from regatta.api.openpai.version_two_fields import ConfigDraft
from regatta.api.openpai.version_two_rules import pieces_of, values_of
from regatta.api.problems import Problem
from regatta.api.source.paths import join

#: By the type of a prerequisite: v1's field of a folder, which `shown_as_v2` makes one of.
V1_FOLDERS = {"data": "dataDir", "output": "outputDir", "script": "codeDir"}
_INSTEAD = {
    "hivedScheduler": "the tasks are placed by what they ask for under resourcePerInstance, and "
    "the job has the priority that others have",
    "storages": "no storage is mounted; read data from where every task can reach it",
    "jobStatusChangeNotification": "nobody is written to when the job's state changes",
}


def advise(draft: ConfigDraft) -> Iterator[Problem]:
    extras = (draft.extras and draft.extras.model_extra) or {}
    for key, message in _INSTEAD.items():
        if key in extras and _says_something(key, extras[key]):
            yield _warning(f"extras.{key}", message)
    yield from _about_gang(draft)
    for name, role in draft.roles().items():
        options = role.extra_container_options
        if options and options.infiniband:
            yield _warning(
                join("taskRoles", name) + ".extraContainerOptions.infiniband",
                "no InfiniBand device is given to the tasks",
            )
    if draft.deployments and draft.deployment is None:
        yield _warning(
            "deployments",
            "none of them is used; write the name of one as defaults.deployment",
        )
    yield from _about_references(draft)
    yield from _about_folders(draft)
    texts = [piece.text for name in draft.roles() for piece in pieces_of(name, draft)]
    for item in draft.prerequisites or ():
        if item and item.auth and item.type == "dockerimage":
            texts += [item.auth.username or "", item.auth.password or ""]
    yield from about_numbers(used_in(texts), draft.secrets or {})


def _about_references(draft: ConfigDraft) -> Iterator[Problem]:
    """What leads nowhere stays as it is written, and bash would stumble over it."""
    told: set[str] = set()
    for name, role in draft.roles().items():
        values = values_of(role, draft)
        for piece in pieces_of(name, draft):
            for written, root, steps in unread(piece.text, values):
                if f"{piece.path} {written}" in told:
                    continue
                told.add(f"{piece.path} {written}")
                known = [*ROOTS] if steps is None else list(values.get(root) or ())
                meant = did_you_mean(root if steps is None else steps[0], known)
                yield _warning(
                    piece.path,
                    f"{written} refers to nothing, so bash gets it as it is; "
                    f"{meant}{f'There are: {listed(known)}' if known else 'nothing is defined'}",
                )


def _about_folders(draft: ConfigDraft) -> Iterator[Problem]:
    """Such as those that v2's door shows of a v1 config: there the folders had a meaning."""
    for name, role in draft.roles().items():
        texts = (piece.text for piece in pieces_of(name, draft))
        used = {part.root for text in texts for part in parts(text) if isinstance(part, Reference)}
        for kind, field in V1_FOLDERS.items():
            if kind not in used and draft.prerequisite(getattr(role, kind), kind):
                yield _warning(
                    join("taskRoles", name) + f".{kind}",
                    f"no command of the role refers to it (as <% ${kind}.uri %>), and nothing is "
                    f"copied or made for it; what {field} does needs a v1 config",
                )


def _says_something(key: str, value: Any) -> bool:
    if key == "jobStatusChangeNotification" and isinstance(value, dict):
        return any(value.values())
    return value is not None


def _about_gang(draft: ConfigDraft) -> Iterator[Problem]:
    retried = {name: role.task_retry_count or 0 for name, role in draft.roles().items()}
    if not draft.gang:
        yield _warning(
            "extras.gangAllocation",
            "found false: all tasks of a job start together here, whatever it says"
            + (
                f"; each starts again by itself when it fails, and all of them together at most "
                f"{retries_of(draft)} times, the largest of jobRetryCount and every taskRetryCount"
                if any(retried.values())
                else ""
            ),
        )
        return
    for name, count in retried.items():
        if count:
            yield _warning(
                join("taskRoles", name) + ".taskRetryCount",
                "it has no effect unless extras.gangAllocation is false: the whole job starts "
                "again, as often as jobRetryCount says",
            )


def retries_of(draft: ConfigDraft) -> int:
    own = draft.job_retry_count or 0
    if draft.gang:
        return own
    return max(own, *(role.task_retry_count or 0 for role in draft.roles().values()))


def _warning(path: str, message: str) -> Problem:
    return Problem(path, message, "warning")
