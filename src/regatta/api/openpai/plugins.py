"""What runs around a role's commands: runtime plugins and the callbacks of prerequisites.

`cmd` and `git` become commands before and after. The others cannot be had here, and say so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import Field

from regatta.api.checks.schema import Draft, Text
from regatta.api.checks.suggestions import did_you_mean, listed, shown
from regatta.api.openpai.reading import read
from regatta.api.openpai.version_two_fields import (
    RUNTIME_PLUGIN,
    CallbackDraft,
    ConfigDraft,
    PluginDraft,
    PrerequisiteDraft,
    TaskRoleDraft,
    Texts,
)
from regatta.api.problems import Problem
from regatta.api.source.paths import join

CMD = f"{RUNTIME_PLUGIN}.cmd"
STARTS, SUCCEEDS = "taskStarts", "taskSucceeds"
POLICIES = ("fail", "ignore")
_PLACE = f"extras[{RUNTIME_PLUGIN}]"
_CODE = "/usr/local/pai/code"
_INSTEAD = {
    "ssh": "there is no ssh between tasks or into them; the job runs without it",
    "tensorboard": "no TensorBoard is started; the job runs without it, and its files stay where "
    "the program writes them",
    "teamwise_storage": "no storage is mounted; read data from where every task can reach it",
}


class Piece(NamedTuple):
    """A command, and where its author wrote it."""

    path: str
    text: str


class Around(NamedTuple):
    before: list[Piece]
    after: list[Piece]


class CommandsDraft(Draft):
    pre_commands: Texts = None
    post_commands: Texts = None
    callbacks: list[CallbackDraft | None] | None = None


class CloneDraft(Draft):
    repo_uri: Text = Field(None, alias="repo_uri")
    options: Texts = None
    clone_dir: Text = Field(None, alias="clone_dir")


def around(name: str, role: TaskRoleDraft, draft: ConfigDraft) -> Around:
    """What runs before a role's commands, in the order it is listed, and after them, in the reverse
    of it."""
    both = [_of_prerequisite(place, item) for place, item in _needed(role, draft)]
    for place, plugin in _plugins(draft):
        if plugin.taskroles is None or name in plugin.taskroles:
            both.append(_of_plugin(place, plugin))
    before = [piece for each in both for piece in each.before]
    after = [piece for each in reversed(both) for piece in each.after]
    return Around(before, after)


def check(draft: ConfigDraft) -> Iterator[Problem]:
    """Problems, and warnings of what cannot be had here."""
    for i, item in enumerate(draft.prerequisites or ()):
        if item is not None and item.type != "dockerimage":
            yield from _check_prerequisite(f"prerequisites[{i}]", item)
    for i, found in enumerate((draft.extras and draft.extras.plugins) or ()):
        if found is None:
            yield Problem(f"{_PLACE}[{i}]", "found nothing; write a plugin, or remove the item")
    for place, plugin in _plugins(draft):
        yield from _check_plugin(place, plugin, list(draft.roles()))


def _plugins(draft: ConfigDraft) -> Iterator[tuple[str, PluginDraft]]:
    for i, plugin in enumerate((draft.extras and draft.extras.plugins) or ()):
        if plugin is not None:
            yield f"{_PLACE}[{i}]", plugin


def _needed(role: TaskRoleDraft, draft: ConfigDraft) -> list[tuple[str, PrerequisiteDraft]]:
    """The prerequisites that a role names, each after those that it requires itself."""
    found: dict[str, PrerequisiteDraft] = {}
    visited: set[int] = set()
    places = {id(item): f"prerequisites[{i}]" for i, item in enumerate(draft.prerequisites or ())}
    kinds = ("data", "script", "output")
    wanted = [draft.prerequisite(name) for name in role.prerequisites or ()]
    wanted += [draft.prerequisite(getattr(role, kind), kind) for kind in kinds]
    # Not by recursion: a chain may be as long as a file. Each waits for what it requires.
    waiting = [(item, False) for item in reversed(wanted)]
    while waiting:
        item, is_due = waiting.pop()
        if item is None:
            continue
        if is_due:
            found[places[id(item)]] = item
        elif id(item) not in visited:
            visited.add(id(item))
            waiting.append((item, True))
            waiting += [
                (draft.prerequisite(other), False) for other in reversed(item.require or ())
            ]
    return [(place, item) for place, item in found.items() if item.plugin == CMD]


def _of_prerequisite(place: str, item: PrerequisiteDraft) -> Around:
    found = Around(
        list(_called(place, item.callbacks, STARTS)), list(_called(place, item.callbacks, SUCCEEDS))
    )
    return _forgiving(place, found) if item.failure_policy == "ignore" else found


def _of_plugin(place: str, plugin: PluginDraft) -> Around:
    at, given = f"{place}.parameters", plugin.parameters or {}
    if plugin.plugin == "cmd":
        commands, _, _ = read(CommandsDraft, given, at)
        callbacks = commands.callbacks
        found = Around(
            [*_pieces(f"{at}.preCommands", commands.pre_commands), *_called(at, callbacks, STARTS)],
            [
                *_called(at, callbacks, SUCCEEDS),
                *_pieces(f"{at}.postCommands", commands.post_commands),
            ],
        )
    elif plugin.plugin == "git":
        clone, _, _ = read(CloneDraft, given, at)
        found = Around([Piece(at, _clone_command(clone))], [])
    else:
        return Around([], [])
    return _forgiving(place, found) if plugin.failure_policy == "ignore" else found


def _clone_command(clone: CloneDraft) -> str:
    folder = clone.clone_dir or _CODE
    words = ["git", "clone", *(option or "" for option in clone.options or ()), "--"]
    place = shlex.quote(folder.rstrip("/") or "/")
    fetch = f'{shlex.join([*words, clone.repo_uri or ""])} "$regatta_clone/it"'
    # Whole or not at all: tasks may share the folder, and one that was fetched is not again. Who
    # comes second as good as never meets the first at `mv`, which would tell of it.
    there = f"[ -e {place}/.git ]"
    return (
        f'{there} || ( set -e; mkdir -p -- "$(dirname -- {place})"; '
        f"regatta_clone=$(mktemp -d {place}.XXXXXX); trap 'rm -rf -- \"$regatta_clone\"' EXIT; "
        f'{fetch}; {there} || mv -T -- "$regatta_clone/it" {place} || {there} )'
    )


def _forgiving(place: str, found: Around) -> Around:
    """A failure in there does not end the task."""

    def let_go(pieces: list[Piece]) -> list[Piece]:
        if not pieces:
            return []
        return [Piece(place, "set +o errexit"), *pieces, Piece(place, "set -o errexit")]

    return Around(let_go(found.before), let_go(found.after))


def _called(
    place: str, callbacks: Iterable[CallbackDraft | None] | None, event: str
) -> Iterator[Piece]:
    for i, callback in enumerate(callbacks or ()):
        if callback is not None and callback.event == event:
            yield from _pieces(f"{place}.callbacks[{i}].commands", callback.commands)


def _pieces(place: str, commands: Texts) -> Iterator[Piece]:
    for i, command in enumerate(commands or ()):
        yield Piece(f"{place}[{i}]", command or "")


# What they may not be


def _check_prerequisite(place: str, item: PrerequisiteDraft) -> Iterator[Problem]:
    if item.plugin is not None and item.plugin != CMD:
        yield Problem(
            f"{place}.plugin",
            f"found {shown(item.plugin)}, which is not available here; the job runs without it. "
            f"Available: {CMD}",
            "warning",
        )
        return
    yield from _check_policy(place, item.failure_policy)
    yield from _check_callbacks(f"{place}.callbacks", item.callbacks)


def _check_plugin(place: str, plugin: PluginDraft, roles: list[str]) -> Iterator[Problem]:
    for i, role in enumerate(plugin.taskroles or ()):
        if role not in roles:
            yield Problem(
                f"{place}.taskroles[{i}]",
                f"there is no task role {shown(role)}; {did_you_mean(role, roles)}There are: "
                f"{listed(roles)}",
            )
    yield from _check_policy(place, plugin.failure_policy)
    if plugin.plugin == "cmd":
        yield from _check_commands(f"{place}.parameters", plugin.parameters or {})
    elif plugin.plugin == "git":
        yield from _check_clone(f"{place}.parameters", plugin.parameters or {})
    elif plugin.plugin is None:
        yield Problem(f"{place}.plugin", "missing; name the plugin, such as cmd")
    else:
        known = ["cmd", "git"]
        instead = _INSTEAD.get(plugin.plugin) or (
            f"it is not available here, and the job runs without it; "
            f"{did_you_mean(plugin.plugin, known)}Available: {listed(known)}"
        )
        yield Problem(f"{place}.plugin", f"found {shown(plugin.plugin)}: {instead}", "warning")


def _check_commands(place: str, parameters: dict[str, Any]) -> Iterator[Problem]:
    commands, problems, _ = read(CommandsDraft, parameters, place)
    yield from problems
    yield from _check_callbacks(f"{place}.callbacks", commands.callbacks)


def _check_clone(place: str, parameters: dict[str, Any]) -> Iterator[Problem]:
    clone, problems, explained = read(CloneDraft, parameters, place)
    yield from problems
    path = join(place, "repo_uri")
    if not clone.repo_uri and path not in explained:
        yield Problem(path, "missing; write the address of the repository")


def _check_policy(place: str, policy: str | None) -> Iterator[Problem]:
    if policy is not None and policy not in POLICIES:
        yield Problem(
            f"{place}.failurePolicy",
            f"found {shown(policy)}; {did_you_mean(policy, POLICIES)}Allowed: "
            f"{listed(POLICIES, 'or')}",
        )


def _check_callbacks(
    place: str, callbacks: Iterable[CallbackDraft | None] | None
) -> Iterator[Problem]:
    events = (STARTS, SUCCEEDS)
    for i, callback in enumerate(callbacks or ()):
        if callback is None:
            yield Problem(f"{place}[{i}]", "found nothing; write an event and its commands")
        elif callback.event not in events:
            found = "missing" if callback.event is None else f"found {shown(callback.event)}"
            yield Problem(
                f"{place}[{i}].event",
                f"{found}; {did_you_mean(callback.event, events)}Allowed: {listed(events, 'or')}",
            )
