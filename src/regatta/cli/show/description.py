"""The page that `describe` prints, section by section."""

from __future__ import annotations

from collections.abc import Sequence

from regatta.api.job import GROUP, WITHOUT_END, Job, Phase, Progress
from regatta.cli.follow.status_line import progress_text
from regatta.cli.show.ansi import Paint, Painted, harmless
from regatta.cli.show.overview import (
    failure_lines,
    how_long,
    latest,
    left_running,
    painted_state,
)
from regatta.cli.show.rows import handle_of_run, phase_of, role_counts, trouble
from regatta.cli.show.table import Cell, table
from regatta.cli.show.times import age, duration, moment_text, since
from regatta.engines.inventory import EventView, PodView

MOST_EVENTS = 20
WAITING = (Phase.PENDING, Phase.RESTARTING, Phase.SUSPENDED, Phase.SCALING, Phase.STARTING)


def describe_lines(
    job: Job, pods: Sequence[PodView], events: Sequence[EventView], paint: Paint, uid: str = ""
) -> list[str]:
    """`uid`: of the run that was asked for by it."""
    named = handle_of_run(job, uid)
    return [
        *_head(job, paint),
        *_section("Trouble", [text] if (text := trouble(job)) else []),
        *_section("Why it waits", _waiting(job)),
        *_section("Why it failed", _failed(job, pods, paint, named)),
        *_section("Why it ended", _aborted(job)),
        *_section("Roles", _roles(job, paint)),
        *_section("Replicas", _replicas(pods, paint)),
        *_section("Limits", _limits(pods)),
        *_section("Left running", left_running(job, pods)),
        *_section("Events", _events(events, paint)),
        *_section("See also", _hints(pods, named)),
    ]


def _head(job: Job, paint: Paint) -> list[str]:
    status = job.status
    facts = [
        ("Name", job.name),
        ("OpenPAI", _openpai_name(job)),
        ("Namespace", job.namespace),
        ("UID", job.uid),
        ("Status", paint.phase(phase_of(job))),
        ("Mode", status.mode or job.spec.mode),
        ("Submitted", moment_text(job.metadata.creation_timestamp)),
        ("Started", moment_text(status.start_time)),
        ("Ended", moment_text(status.completion_time)),
        ("Took", how_long(job)),
        ("Restarts", _restarts(job)),
        ("Clean pods", job.spec.clean_pod_policy),
        ("Progress", progress_text(status.progress) if status.progress else ""),
        ("No numbers", _no_numbers(status.progress) if status.progress else ""),
    ]
    return [f"{name + ':':<12}{value}" for name, value in facts if value]


def _openpai_name(job: Job) -> str:
    """What it is called there, of a job that came as one of OpenPAI's."""
    said = job.metadata.annotations
    name, user = said.get(f"{GROUP}/openpai-job", ""), said.get(f"{GROUP}/openpai-user", "")
    return harmless(f"{user}~{name}") if name else ""


def _restarts(job: Job) -> str:
    limit = job.spec.run_policy.backoff_limit
    return f"{job.status.restarts}{'' if limit == WITHOUT_END else f' of {limit} allowed'}"


def _no_numbers(progress: Progress) -> str:
    """What was reported as progress and left out of it."""
    named = (f"{name} was {value}" for name, value in progress.not_numbers.items())
    return harmless(", ".join(named))


def _waiting(job: Job) -> list[str]:
    status = job.status
    grows = status.phase is Phase.RUNNING and status.message  # and waits to grow further
    if not grows and status.phase not in (None, *WAITING):
        return []
    if not (status.message or status.reason):
        return []
    if trouble(job):  # which stands in their place
        return []
    return [_reasoned(status.reason, status.message)]


def _failed(job: Job, pods: Sequence[PodView], paint: Paint, named: str) -> list[str]:
    if job.status.phase is not Phase.FAILED:
        return []
    why = [] if trouble(job) else [_reasoned(job.status.reason, job.status.message)]
    return [*why, *failure_lines(job, pods, paint, named)]


def _aborted(job: Job) -> list[str]:
    if job.status.phase is not Phase.ABORTED or trouble(job):
        return []
    return [job.status.message] if job.status.message else []


def _roles(job: Job, paint: Paint) -> list[str]:
    rows: list[list[Cell]] = []
    for name, role in role_counts(job):
        counts = (role.pending, role.starting, role.running, role.succeeded, role.failed)
        wanted = job.spec.roles()[name].replicas
        rows.append([name, role.ready or f"0/{wanted}", *map(str, counts)])
    head = ("ROLE", "READY", "PENDING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")
    return table(head, rows, paint)


def _replicas(pods: Sequence[PodView], paint: Paint) -> list[str]:
    placed = any(pod.node for pod in pods)
    rows: list[list[Cell]] = [
        [
            f"{pod.role}-{pod.index}",
            painted_state(pod),
            *([pod.node or "-"] if placed else []),
            pod.address or "-",
            f"{pod.ports[0]}-{pod.ports[1]}" if pod.ports else "-",
            ",".join(pod.gpus) or "-",
            "-" if pod.exit_code is None else str(pod.exit_code),
            str(pod.restarts),
            str(pod.attempt + 1),  # as `logs --attempt` counts
            duration(since(pod.started_at, pod.finished_at)),
            pod.reason or "-",
        ]
        for pod in latest(pods)
    ]
    if not rows:
        return []
    head = (
        "REPLICA",
        "STATE",
        *(["NODE"] if placed else []),
        "ADDRESS",
        "PORTS",
        "GPU",
        "EXIT",
        "RESTARTS",
        "TRY",
        "FOR",
        "REASON",
    )
    return table(head, rows, paint)


def _limits(pods: Sequence[PodView]) -> list[str]:
    """Those that a person should not rely on."""
    counted = {name for pod in pods for name in pod.only_counted.split(", ") if name}
    if not counted:
        return []
    return [
        f"{', '.join(sorted(counted))}: only counted, nothing holds them here; a server that may "
        "make control groups can",
        "(as root, or `systemd-run --user --scope -p Delegate=yes regatta serve`)",
    ]


def _events(events: Sequence[EventView], paint: Paint) -> list[str]:
    rows: list[list[Cell]] = [
        [
            age(since(event.at)),
            Painted(event.type, "yellow" if event.type == "Warning" else ""),
            event.reason,
            event.message.partition("\n")[0],
        ]
        for event in events[-MOST_EVENTS:]
    ]
    lines = table(("AGE", "TYPE", "REASON", "MESSAGE"), rows, paint) if rows else []
    if len(events) > MOST_EVENTS:
        lines.insert(0, f"the last {MOST_EVENTS} of {len(events)}")
    return lines


def _hints(pods: Sequence[PodView], named: str) -> list[str]:
    if not pods:
        return []
    first = latest(pods)[0]
    return [
        f"logs:         regatta logs {named} --role {first.role} --index {first.index}",
        "environment:  `regatta run --dry-run FILE` prints what each replica sees",
    ]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []


def _reasoned(reason: str, message: str) -> str:
    return f"{reason}: {message}" if reason and message else reason or message
