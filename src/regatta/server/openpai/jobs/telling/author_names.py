"""What brain and engines say of a job, in the names that its author gave. Pure.

An engine knows a job of OpenPAI's, its roles and its tasks by host names
(`api/openpai/dns_names`), and those stand in the texts on record. Whoever wrote the config never
saw them, nor the fields that ours were made from it: they read of `ps_server[0]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from regatta.controller.judge import NOT_AGAIN
from regatta.controller.policies.restart import NOT_COUNTED
from regatta.server.openpai.jobs.telling.role_plans import names_by_label
from regatta.server.records.job_rows import JobRow
from regatta.server.records.job_story import JobStory

#: No part of a longer name, path or host name.
_BEFORE, _AFTER = r"(?<![\w./~-])", r"(?![\w/~-]|\.\w)"
#: What is for typing into a shell means the engine's own names.
_TYPED = r"`[^`\n]*`"
_FIELDS = {
    NOT_AGAIN: "such an end is never retried",
    NOT_COUNTED: "not counted as one of its retries",
}


class AuthorNames(msgspec.Struct, frozen=True, kw_only=True):
    #: What the engine calls the job; what its author does.
    engine_name: str
    name: str
    #: The same of its roles.
    roles: Mapping[str, str]

    def told(self, text: str) -> str:
        """The engine's names in it become the author's; where they are part of something else they
        stay."""
        for ours, theirs in _FIELDS.items():
            text = text.replace(ours, theirs)
        return _pattern(self.engine_name, _by_length(self.roles), _derived(self.roles)).sub(
            self._told, text
        )

    def _told(self, found: re.Match[str]) -> str:
        label = found["label"] or found["alone"]
        if label:
            return f"{self.roles[label]}[{found['index'] or found['number']}]"
        return self.name if found["job"] else found[0]

    def task_of(self, text: str) -> tuple[str, int] | None:
        """The one task that it is about, by the engine's name of its role; None where it names
        several, or none. A cluster's events of a pod begin with its name without the job's."""
        labels = _by_length(self.roles)
        about = {
            (found["label"], int(found["index"]))
            for found in _pattern(self.engine_name, labels, ()).finditer(text)
            if found["label"]
        }
        if begin := _beginning(labels).match(text):
            about.add((begin["label"], int(begin["index"])))
        return about.pop() if len(about) == 1 else None


def names_of(row: JobRow, roles: Mapping[str, str]) -> AuthorNames:
    return AuthorNames(engine_name=row.engine_name, name=row.name, roles=roles)


def row_told(row: JobRow, roles: Mapping[str, str]) -> JobRow:
    """Of a PaddleJob, whose names its author gave to the engine, as it is."""
    if not row.protocol:
        return row
    told = names_of(row, roles).told
    return replace(row, message=told(row.message), trigger_message=told(row.trigger_message))


def story_told(story: JobStory) -> JobStory:
    """Of a PaddleJob likewise."""
    row, roles = story.row, names_by_label(story)
    if not row.protocol:
        return story
    told = names_of(row, roles).told
    return replace(
        story,
        row=row_told(row, roles),
        attempts=tuple(replace(one, message=told(one.message)) for one in story.attempts),
        replicas=tuple(replace(one, message=told(one.message)) for one in story.replicas),
    )


def _by_length(roles: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(roles, key=len, reverse=True))


def _derived(roles: Mapping[str, str]) -> tuple[str, ...]:
    """Labels that no author wrote: some texts name a task without its job."""
    return tuple(label for label in _by_length(roles) if roles[label] != label)


@lru_cache(maxsize=256)
def _pattern(job: str, labels: tuple[str, ...], derived: tuple[str, ...]) -> re.Pattern[str]:
    ours = re.escape(job)
    return re.compile(
        rf"{_TYPED}|{_BEFORE}(?:"
        rf"{ours}-(?P<label>{_any_of(labels)})-(?P<index>\d+)"
        rf"|(?P<alone>{_any_of(derived)})-(?P<number>\d+)"
        rf"|(?P<job>{ours})"
        rf"){_AFTER}"
    )


@lru_cache(maxsize=256)
def _beginning(labels: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?P<label>{_any_of(labels)})-(?P<index>\d+): ")


def _any_of(labels: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, labels)) or r"(?!)"
