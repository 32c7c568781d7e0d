"""What a command line changes in a job file, before it is judged: `--set --command --env --volume
--name`.

Each works on the raw document, so that the result is validated like any other and a mistake is
told with the path it led to. Problems name the option that brought them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regatta.api.checks.names import about_variable
from regatta.api.checks.suggestions import did_you_mean, listed, shown, shown_key
from regatta.api.errors import InvalidJob
from regatta.api.job import EVERY_ROLE
from regatta.api.problems import Problem
from regatta.api.source.limits import MAX_DEPTH
from regatta.api.source.paths import Step, join, join_all, split
from regatta.api.source.words import split_words, unread
from regatta.api.source.yaml import read_value

#: In the place of a line that cannot be taken: what is wrong with it is told, and not beside that
#: what follows from having no command, or from the one that it was to replace. It never runs.
_STAND_IN = ["true"]
_TOP = ("apiVersion", "kind", "metadata", "spec")


def apply(
    document: dict[str, Any],
    *,
    name: str | None = None,
    namespace: str | None = None,
    env: Mapping[str, str] = {},
    sets: Sequence[str] = (),
    commands: Mapping[str, str] = {},
    volumes: Mapping[str, str] = {},
) -> tuple[dict[str, str], list[Problem]]:
    """Change the document in place. Returns the paths that changed, each with a plain value as it
    was written, and what could not be."""
    changed: dict[str, str] = {}
    problems: list[Problem] = []
    for option in sets:
        try:
            path, written = set_value(document, option)
            changed[path] = written
        except ValueError as error:
            problems.append(Problem(f"--set {option}", str(error)))
    metadata = document.setdefault("metadata", {})
    for key, given in (("name", name), ("namespace", namespace)):
        if given is not None and isinstance(metadata, dict):
            metadata[key] = given
            changed[f"metadata.{key}"] = ""
    roles = list(_roles(document))
    for role, line in commands.items():
        replaced, wrong = _set_command(roles, role, line, commands)
        changed |= dict.fromkeys(replaced, "")
        problems += wrong
    pods = [(path, pod) for _, path, pod in roles]
    variables: dict[str, str] = {}
    for variable, value in env.items():
        message = about_variable(variable)
        if "\0" in value:
            message = "the value has a NUL character, which no process could be given"
        if message:
            problems.append(Problem(f"--env {variable}", message))
        else:
            variables[variable] = value
    for path, pod in pods if variables else ():
        changed |= dict.fromkeys(_set_variables(pod, path, variables), "")
    for volume, directory in volumes.items():
        problems += _set_volume(pods, volume, directory)
    return changed, problems


def set_value(document: dict[str, Any], option: str) -> tuple[str, str]:
    """`spec.worker.replicas=4`: the place, and a value that is no text as it was written.
    ValueError says which step does not exist, and what is there."""
    path, equals, text = option.partition("=")
    if not equals:
        raise ValueError("write path=value, such as spec.worker.replicas=4")
    steps = split(path.strip())
    if len(steps) > MAX_DEPTH:
        raise ValueError(f"the path is more than {MAX_DEPTH} steps long")
    if steps[0] not in _TOP:
        meant = did_you_mean(steps[0], _TOP)
        raise ValueError(f"a path starts with spec or metadata; {meant}found {shown(steps[0])}")
    try:
        value = read_value(text)
    except InvalidJob as error:
        raise ValueError(
            f"cannot read the value {shown(text)}: {error.problems[0].message}"
        ) from None
    holder: Any = document
    for i, step in enumerate(steps[:-1]):
        holder = _step_into(holder, steps[:i], step, steps[i + 1])
    _step_into(holder, steps[:-1], steps[-1], None)
    holder[steps[-1]] = value
    return join_all("", steps), text.strip() if isinstance(value, bool | int | float) else ""


def _step_into(holder: Any, before: Sequence[Step], step: Step, following: Step | None) -> Any:
    """What stands at the step; made, if it may be: a key of a map, or the next item of a list."""
    here = join_all("", before)
    if isinstance(step, int):
        if not isinstance(holder, list):
            raise ValueError(f"{here} is {shown(holder)}, not a list, so it has no item [{step}]")
        if step > len(holder):
            last = f"the last is [{len(holder) - 1}]" if holder else "the list is empty"
            raise ValueError(f"{here} has no item [{step}]; {last}, and [{len(holder)}] adds one")
        if step == len(holder):
            holder.append(None)
    elif not isinstance(holder, dict):
        raise ValueError(f"{here} is {shown(holder)}, not a map, so {step} cannot be set in it")
    elif step not in holder:
        holder[step] = None
    if following is not None and holder[step] is None:
        holder[step] = [] if isinstance(following, int) else {}
    return holder[step]


def _roles(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each role's name, and the path of its pod spec, as far as the document has the shape for
    it."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return
    roles = [(name, join("spec", name), spec.get(name)) for name in ("ps", "worker", "heter")]
    tasks = spec.get("tasks")
    for i, task in enumerate(tasks if isinstance(tasks, list) else ()):
        name = task.get("name") if isinstance(task, dict) else None
        roles.append((str(name), f"spec.tasks[{i}]", task))
    for name, path, role in roles:
        template = role.get("template") if isinstance(role, dict) else None
        pod = template.get("spec") if isinstance(template, dict) else None
        if isinstance(pod, dict):
            yield name, f"{path}.template.spec", pod


def _set_command(
    roles: Sequence[tuple[str, str, dict[str, Any]]],
    wanted: str,
    line: str,
    commands: Mapping[str, str],
) -> tuple[list[str], list[Problem]]:
    """The whole line in the place of `command` and `args` of the role's first container."""
    option = "--command" if wanted == EVERY_ROLE else f"--role {shown_key(wanted)} --command"
    there = [name for name, _, _ in roles]
    if wanted != EVERY_ROLE and wanted not in there:
        known = f"the job's roles are {listed(map(shown_key, there))}" if there else "it has none"
        for name, _, first in _firsts(roles):
            if not first.get("command") and name not in commands:
                first["command"] = list(_STAND_IN)  # it may have been meant
        return [], [Problem(option, f"the job has no role {shown(wanted)}; "
                            f"{did_you_mean(wanted, there)}{known}")]  # fmt: skip
    problems: list[Problem] = []
    try:
        words = split_words(line)
        if message := unread(line):
            problems = [Problem(option, message, "warning")]
    except ValueError as error:
        words, problems = _STAND_IN, [Problem(option, str(error))]
    changed = []
    for name, path, first in _firsts(roles):
        if name == wanted or (wanted == EVERY_ROLE and name not in commands):
            first["command"] = list(words)
            first.pop("args", None)
            changed.append(f"{path}.containers[0].command")
    return changed, problems


def _firsts(
    roles: Sequence[tuple[str, str, dict[str, Any]]],
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The same with each role's first container."""
    for name, path, pod in roles:
        containers = pod.get("containers")
        first = containers[0] if isinstance(containers, list) and containers else None
        if isinstance(first, dict):
            yield name, path, first


def _set_variables(pod: dict[str, Any], path: str, said: Mapping[str, str]) -> Iterator[str]:
    """In every container, in place of variables of those names. Yields the places it changed."""
    for key in ("initContainers", "containers"):
        for i, container in enumerate(pod[key] if isinstance(pod.get(key), list) else ()):
            if not isinstance(container, dict):
                continue
            env = container.get("env")
            if env is None:
                env = container["env"] = []
            if not isinstance(env, list):
                continue
            others = [item for item in env if _name_of(item) not in said]
            place = f"{path}.{key}[{i}].env"
            if len(others) < len(env):
                yield place  # those behind have moved
            else:
                yield from (f"{place}[{len(env) + n}]" for n in range(len(said)))
            env[:] = [*others, *({"name": name, "value": value} for name, value in said.items())]


def _name_of(item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""


def _set_volume(
    pods: Sequence[tuple[str, dict[str, Any]]], name: str, directory: str
) -> Iterator[Problem]:
    """The directory in place of whatever the volume was, in every role that has it."""
    option = f"--volume {name}={directory}"
    if not directory.startswith("/"):
        yield Problem(option, f"found {shown(directory)}; write a directory that starts with /")
        return
    there: dict[str, None] = {}
    for _, pod in pods:
        volumes = pod.get("volumes")
        for volume in volumes if isinstance(volumes, list) else ():
            if not isinstance(volume, dict):
                continue
            there[str(volume.get("name"))] = None
            if volume.get("name") == name:
                volume.clear()
                volume.update({"name": name, "hostPath": {"path": directory}})
    if name not in there:
        known = (
            f"the job's volumes are {listed(map(shown_key, there))}"
            if there
            else "the job has no volumes"
        )
        yield Problem(option, f"no template has a volume {shown(name)}; "
                      f"{did_you_mean(name, there)}{known}")  # fmt: skip
