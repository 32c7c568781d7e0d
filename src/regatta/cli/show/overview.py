"""The two tables around a run: what will start, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regatta.api.job import HUNG, CleanPodPolicy, Failure, Job, Phase, RoleSpec
from regatta.cli.show.ansi import PHASE_COLOURS, Paint, Painted
from regatta.cli.show.rows import handle
from regatta.cli.show.table import Cell, table
from regatta.cli.show.times import duration, since
from regatta.engines.inventory import PodView

#: More rows than this say nothing that the first ones did not.
MOST_ROWS = 40
LONGEST_COMMAND = 60


def plan_lines(job: Job, paint: Paint) -> list[str]:
    rows = [
        [name, str(role.replicas), *_resources(role), _command(role)]
        for name, role in job.spec.roles().items()
    ]
    title = f"{paint(job.name, 'bold')}  {job.spec.mode} job, {_replicas(job.spec.replicas)}"
    head = ("ROLE", "REPLICAS", "CPU", "MEMORY", "GPU", "COMMAND")
    return [title, *table(head, rows, paint, indent="  ")]


def summary_lines(job: Job, pods: Sequence[PodView], paint: Paint) -> list[str]:
    """How each replica ended, how the job ended, and how long it took."""
    last = latest(pods)
    shown = last
    if len(last) > MOST_ROWS:  # those that went wrong matter most
        shown = sorted(last, key=lambda pod: pod.phase == "Succeeded")[:MOST_ROWS]
    rows: list[list[Cell]] = [
        [
            f"{pod.role}-{pod.index}",
            painted_state(pod),
            "-" if pod.exit_code is None else str(pod.exit_code),
            str(pod.restarts),
            duration(since(pod.started_at, pod.finished_at)),
        ]
        for pod in shown
    ]
    lines = table(("REPLICA", "STATE", "EXIT", "RESTARTS", "DURATION"), rows, paint) if rows else []
    if len(shown) < len(last):
        lines.append(f"and {len(last) - len(shown)} more (`regatta describe {handle(job)}`)")
    return [*lines, "", *ending_lines(job, paint, pods)]


def ending_lines(job: Job, paint: Paint, pods: Sequence[PodView] = ()) -> list[str]:
    phase = job.status.phase or Phase.PENDING
    lines = [f"job {job.name} {paint.phase(phase)}"]
    if took := how_long(job):
        lines[0] += f" in {took}"
    if phase is not Phase.COMPLETED and job.status.message:
        lines[0] += f": {job.status.message}"
    if phase is Phase.FAILED:
        lines += failure_lines(job, pods, paint)
    return lines


def how_long(job: Job) -> str:
    """From when every replica had its place to the end; empty where one of the two never came."""
    began, ended = job.status.start_time, job.status.completion_time
    return duration(since(began, ended)) if began and ended else ""


def failure_lines(job: Job, pods: Sequence[PodView], paint: Paint, named: str = "") -> list[str]:
    """Who failed and its last lines. What the status says of it already is not said again.
    `named`: as the next command must name the run."""
    named = named or handle(job)
    failure = job.status.failure
    if failure is None:
        return [f"  `regatta describe {named}` shows its events"]
    who, said = f"{failure.role}-{failure.index}", _last_words(failure, pods)
    code = "" if failure.exit_code is None else f" with exit code {failure.exit_code}"
    lines = [f"  {who} failed first{code}" + ("; its last lines:" if said else "")]
    if failure.reason == HUNG:
        lines = [f"  the last lines of {who}:"] if said else []
    lines += [paint(f"    {line}", "dim") for line in said[-20:]]
    where = f"--role {failure.role} --index {failure.index}"
    lines.append(f"  the whole log: `regatta logs {named} {where}`")
    return lines


def _last_words(failure: Failure, pods: Sequence[PodView]) -> list[str]:
    """The program's own. A failure without an exit code has at most a sentence of ours, which the
    status has too; one that hung said its last words when it was ended."""
    said = failure.message.rstrip().splitlines()
    if failure.reason == HUNG:
        ended = [pod for pod in latest(pods) if pod.name == failure.pod and pod.finished_at]
        return ended[0].message.rstrip().splitlines() if ended else []
    if failure.exit_code is None:
        return said if len(said) > 1 else []
    return said or ["(it said nothing)"]


def left_running(job: Job, pods: Sequence[PodView]) -> list[str]:
    """What still runs although the job is over, and how to end it."""
    alive = ("Starting", "Running")
    running = [pod for pod in pods if pod.current and pod.phase in alive and not pod.stopping]
    if not job.finished or not running:
        return []
    why = ""
    if job.spec.clean_pod_policy in (CleanPodPolicy.NEVER, CleanPodPolicy.ON_FAILURE):
        why = f" because the job says cleanPodPolicy: {job.spec.clean_pod_policy}"
    names = ", ".join(f"{pod.role}-{pod.index}" for pod in running[:8])
    more = "" if len(running) <= 8 else f" and {len(running) - 8} more"
    verb, them = ("runs", "it") if len(running) == 1 else ("run", "them")
    return [f"{names}{more} still {verb}{why}; `regatta stop {handle(job)}` ends {them}"]


def latest(pods: Sequence[PodView]) -> list[PodView]:
    """The last pod of each replica, in the order of roles and indexes as they came."""
    last: dict[tuple[str, int], PodView] = {}
    for pod in pods:
        seen = last.get((pod.role, pod.index))
        if seen is None or (pod.attempt, pod.current) >= (seen.attempt, seen.current):
            last[pod.role, pod.index] = pod
    return list(last.values())


def painted_state(pod: PodView) -> Painted:
    state = pod_state(pod)
    return Painted(state, PHASE_COLOURS.get(state, ""))


def pod_state(pod: PodView) -> str:
    if pod.phase == "Failed" and pod.reason == "Stopped":
        return "Stopped"
    return "Stopping" if pod.stopping else pod.phase


def _resources(role: RoleSpec) -> tuple[str, str, str]:
    asked: dict[str, str] = {}
    for container in _containers(role):
        resources = container.get("resources") or {}
        for kind in ("limits", "requests"):  # requests win, as they are what is counted
            asked.update({key: str(value) for key, value in (resources.get(kind) or {}).items()})
    return asked.get("cpu", "-"), asked.get("memory", "-"), asked.get("nvidia.com/gpu", "-")


def _command(role: RoleSpec) -> str:
    container = _containers(role)[0] if _containers(role) else {}
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    words = _script(words) or words
    text = " ".join(" ".join(str(word).split()) for word in words) or container.get("image", "-")
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 1] + "…"


def _script(words: list[Any]) -> list[Any]:
    """What an author wrote of a job that came as OpenPAI's, where `$$` stands for `$`; nothing of
    other commands."""
    if words[:1] != ["bash"] or "-c" not in words:
        return []
    script = words[words.index("-c") + 1 :]
    # A script of ours that takes theirs comes before it, with a name for itself.
    theirs = script[2:3] if script[1:2] == ["bash"] else script[:1]
    return [str(word).replace("$$", "$") for word in theirs]


def _containers(role: RoleSpec) -> list[dict[str, Any]]:
    spec = role.template.get("spec") or {}
    return list(spec.get("containers") or [])


def _replicas(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"
