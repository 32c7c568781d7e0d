"""A job as one row of `get`: the columns that PaddleJob users know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from regatta.api.job import Job, RoleStatus
from regatta.cli.show.ansi import PHASE_COLOURS, Painted
from regatta.cli.show.table import Cell
from regatta.cli.show.times import age, since
from regatta.engines.inventory import DISK_FULL, NOT_REMOVED

HEADERS = ("NAME", "STATUS", "MODE", "PS", "WORKER", "AGE")
WIDE = ("TASKS", "RESTARTS", "MESSAGE")
MOST_NAMED = 8


def headers(*, wide: bool = False, namespaces: bool = False) -> list[str]:
    return [
        *(["NAMESPACE"] if namespaces or wide else []),
        *HEADERS,
        *(WIDE if wide else ()),
    ]


def row(job: Job, now: datetime, *, wide: bool = False, namespaces: bool = False) -> list[Cell]:
    phase = phase_of(job)
    cells: list[Cell] = [
        job.name,
        Painted(phase, PHASE_COLOURS.get(phase, "")),
        job.status.mode or job.spec.mode.value,
        ready(job, "ps"),
        workers_ready(job),
        age(since(job.metadata.creation_timestamp, now)),
    ]
    if wide or namespaces:
        cells.insert(0, job.namespace)
    if wide:
        counted = () if job.spec.tasks else ("ps", "worker")  # in columns of their own
        others = [name for name in job.spec.roles() if name not in counted]
        tasks = " ".join(f"{name}:{ready(job, name)}" for name in others) or "-"
        message = (job.status.message or "").partition("\n")[0]
        cells += [tasks, str(job.status.restarts), message or "-"]
    return cells


class Spelling:
    """What the next command line need not say, and what it must say again."""

    def __init__(self) -> None:
        self.forget()

    def speak(self, namespace: Callable[[], str], options: str) -> None:
        """`namespace` is asked only when a job has to be named: it may cost a request."""
        self._namespace, self.options = namespace, options

    def forget(self) -> None:
        self.speak(lambda: "default", "")

    @property
    def namespace(self) -> str:
        return self._namespace()


SPELLING = Spelling()


def handle(job: Job) -> str:
    """The job as the next command line must name it."""
    where = "" if job.namespace == SPELLING.namespace else f" -n {job.namespace}"
    return f"{job.name}{where}{SPELLING.options}"


def handle_of_run(job: Job, uid: str) -> str:
    """Likewise for the run that was asked for by its UID: another may have the job's name now."""
    return f"--uid {uid}{handle(job).removeprefix(job.name)}" if uid else handle(job)


def phase_of(job: Job) -> str:
    if job.deleting:
        return "Terminating"
    return job.status.phase.value if job.status.phase else "Pending"


def trouble(job: Job) -> str:
    """What keeps the engine from looking after the job, whatever its phase."""
    return job.status.message if job.status.reason in (DISK_FULL, NOT_REMOVED) else ""


def trouble_lines(jobs: Iterable[Job]) -> list[str]:
    """One line for each trouble, with the jobs that have it."""
    names: dict[str, list[str]] = {}
    for job in jobs:
        if text := trouble(job):
            names.setdefault(text, []).append(job.name)
    return [f"{_and_more(named)}: {text}" for text, named in names.items()]


def _and_more(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def ready(job: Job, role: str) -> str:
    """`n/m` of a role; `-` where the job has no such role."""
    spec = job.spec.roles().get(role)
    if spec is None:
        return "-"
    status = job.status.roles().get(role)
    return (status.ready if status else "") or f"0/{spec.replicas}"


def workers_ready(job: Job) -> str:
    """A job of named tasks has no workers: the column then counts all of its replicas."""
    if job.spec.worker is not None or not job.spec.tasks:
        return ready(job, "worker")
    parts = [ready(job, task.name).partition("/") for task in job.spec.tasks]
    return f"{_total(part[0] for part in parts)}/{_total(part[2] for part in parts)}"


def still_serves(job: Job) -> bool:
    """Over, and yet replicas of it run, on purpose."""
    return job.finished and any(role.running for role in job.status.roles().values())


def role_counts(job: Job) -> list[tuple[str, RoleStatus]]:
    known = job.status.roles()
    return [(name, known.get(name, RoleStatus())) for name in job.spec.roles()]


def _total(numbers: Iterable[str]) -> int:
    return sum(int(number or 0) for number in numbers)
