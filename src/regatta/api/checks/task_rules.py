"""What a task may not be: its names, its ports and when it decides the job's end."""

from __future__ import annotations

from collections.abc import Iterator

from regatta.api.checks import names
from regatta.api.checks.schema import MOST_PORT, SpecDraft, TaskDraft, TaskPortDraft
from regatta.api.checks.suggestions import shown
from regatta.api.job import in_variables
from regatta.api.problems import Problem

MAX_TASKS = 32
PORTS_PER_REPLICA = 20


def check_tasks(spec: SpecDraft) -> Iterator[Problem]:
    tasks = spec.tasks
    if tasks is None:
        return
    if not tasks:
        yield Problem("spec.tasks", "found an empty list; write at least one task")
    if len(tasks) > MAX_TASKS:
        yield Problem("spec.tasks", f"found {len(tasks)} tasks; a job has at most {MAX_TASKS}")
    for i, task in enumerate(tasks):
        path = f"spec.tasks[{i}]"
        if task is None:
            yield Problem(path, "found nothing; write a task, or remove the item")
            continue
        yield from _check_name(task, path, tasks[:i])
        yield from _check_alias(task, path, tasks[:i])
        yield from _check_completion(task, path)
        yield from _check_ports(task, path)


def _check_name(task: TaskDraft, path: str, before: list[TaskDraft | None]) -> Iterator[Problem]:
    if task.name is None:
        yield Problem(f"{path}.name", "missing; every task has a name, such as worker")
    elif message := names.about_label(task.name, "a task's name"):
        yield Problem(f"{path}.name", message)
    else:
        for i, other in enumerate(before):
            if other and other.name == task.name:
                yield Problem(
                    f"{path}.name", f"{shown(task.name)} is the name of tasks[{i}] already"
                )
                return


def _check_alias(task: TaskDraft, path: str, before: list[TaskDraft | None]) -> Iterator[Problem]:
    """Every role's variables are its own: `a.b` and `a_b` would be told as one."""
    called = task.alias or task.name
    if task.alias and (message := names.about_alias(task.alias)):
        yield Problem(f"{path}.alias", message)
        return
    for i, other in enumerate(before):
        theirs = other and (other.alias or other.name)
        aliased = other is not None and (task.alias or other.alias)
        if called and theirs and aliased and in_variables(theirs) == in_variables(called):
            yield Problem(
                f"{path}.alias",
                f"found {shown(called)}, and tasks[{i}] is called {shown(theirs)}: in a "
                f"variable's name both are {in_variables(called)}; call one of them otherwise",
            )
            return


def _check_completion(task: TaskDraft, path: str) -> Iterator[Problem]:
    for key, written in (("min_failed", "minFailed"), ("min_succeeded", "minSucceeded")):
        count = getattr(task.completion, key, None)
        if count and task.replicas and count > task.replicas:
            yield Problem(
                f"{path}.completion.{written}",
                f"found {count}, above replicas, which is {task.replicas}; it can never happen",
            )


def _check_ports(task: TaskDraft, path: str) -> Iterator[Problem]:
    ports = task.ports or []
    for j, port in enumerate(ports):
        place = f"{path}.ports[{j}]"
        if port is None:
            yield Problem(place, "found nothing; write a label and a count")
        elif port.label is None:
            yield Problem(f"{place}.label", "missing; name the port, such as http")
        if port is not None and port.begin_at is not None:
            yield from _check_fixed(port, port.begin_at, place, ports[:j])
    wanted = sum(port.count or 1 for port in ports if port)
    if wanted > PORTS_PER_REPLICA:
        yield Problem(
            f"{path}.ports",
            f"found {wanted} ports in all; each replica owns a block of {PORTS_PER_REPLICA}",
        )


def _check_fixed(
    port: TaskPortDraft, first: int, path: str, before: list[TaskPortDraft | None]
) -> Iterator[Problem]:
    last = first + (port.count or 1) - 1
    if last > MOST_PORT:
        yield Problem(
            f"{path}.beginAt",
            f"found {first}, and with {port.count} ports the last is {last}; "
            f"{MOST_PORT} is the highest there is",
        )
    for other in before:
        if other is None or other.begin_at is None:
            continue
        if first <= other.begin_at + (other.count or 1) - 1 and other.begin_at <= last:
            yield Problem(
                f"{path}.beginAt",
                f"found {first}, which {shown(other.label)} has already; give each its own",
            )
            return
