"""The way of a submission to a job that may be queued: read, fitted, rehearsed, checked.

Everything here happens before anything is written, and a dry run stops right after it.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.errors import InvalidJob, NeverFits
from regatta.api.job import Job, JobSpec, RoleSpec
from regatta.api.problems import Problem
from regatta.api.quantity import GPU
from regatta.api.source.companions import Companions
from regatta.api.source.limits import check_plain
from regatta.controller.plan import Instant
from regatta.engines.base import Preview, Shell, Submission
from regatta.engines.local.clock import SystemClock
from regatta.engines.local.replicas.build import list_ignored
from regatta.engines.local.scheduling.ledger import places_needed, whole_need
from regatta.engines.local.scheduling.machine import Machine, find_machine
from regatta.engines.local.scheduling.reservations import BEGINNING
from regatta.engines.local.scheduling.scheduler import never_fits
from regatta.engines.local.store.records import Context, Reservation
from regatta.engines.local.submit.paddle_probe import Probe, probe_paddle
from regatta.engines.local.submit.preflight import check_python, preflight
from regatta.engines.local.submit.rehearsal import Rehearsal, build_runs, rehearse_here
from regatta.engines.submission import read_submission


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing stands in the way of queueing it."""

    job: Job
    context: Context
    companions: Companions
    warnings: tuple[Problem, ...]
    rehearsal: Rehearsal


def prepare(
    submission: Submission,
    shell: Shell,
    machine: Machine,
    where: Callable[[int], Reservation],
    now: Instant,
    probe: Probe = probe_paddle,
    *,
    dry_run: bool = False,
) -> Prepared:
    """Raises InvalidJob, NeverFits or PreflightFailed, each with all that is wrong.

    `where` tells the places that so many replicas would get now, for the rehearsal. Nothing is
    changed but that images of a job that is to run may be pulled.
    """
    check_plain({"shell": msgspec.to_builtins(shell)})
    loaded = read_submission(submission, shell)
    warnings = list(loaded.warnings)
    job = loaded.job
    if shell.no_gpu and whole_need(job).gpus:
        job = without_gpus(job)
        warnings.append(Problem("", "runs without the GPUs it asks for (--no-gpu)", "warning"))
    job = _fresh(job, now)
    refuse_what_never_fits(job, machine)
    context = Context.of(shell)
    rehearsal = rehearse_here(job, where(places_needed(job)), now, machine.gpus)
    try:
        runs = build_runs(job, rehearsal, context, loaded.companions, all_pods=False)
    except InvalidJob as invalid:
        # Where the command is missing, a `comand` that was left aside is why.
        raise InvalidJob([*invalid.problems, *warnings]) from None
    if not shell.no_preflight:
        check_python(context)
        roles = {pod.name: pod.role for pod in rehearsal.pods}
        by_role = {roles[name]: run for name, run in runs.items()}
        warnings += preflight(job, by_role, probe, may_pull=not dry_run)
    return Prepared(
        job=job,
        context=context,
        companions=loaded.companions,
        warnings=tuple(warnings),
        rehearsal=rehearsal,
    )


def check_here(submission: Submission, shell: Shell) -> Prepared:
    """What a submit on this machine would be told, without an engine: all but what only its own
    state can know, such as a live job of the same name."""
    return prepare(submission, shell, find_machine(), lambda _: BEGINNING, SystemClock().now())


def preview(prepared: Prepared) -> Preview:
    runs = build_runs(
        prepared.job, prepared.rehearsal, prepared.context, prepared.companions, all_pods=True
    )
    notes = ["addresses and ports are the next free ones; another job may take them first"]
    for pod in prepared.rehearsal.pods:
        if pod.index == 0:
            ignored = ", ".join(list_ignored(pod.manifest, prepared.context.runtime))
            if ignored:
                notes.append(f"{pod.role}: ignored on this machine: {ignored}")
    return Preview(
        job=prepared.job,
        warnings=prepared.warnings,
        objects=prepared.rehearsal.objects(),
        environment={name: run.containers[0].sees for name, run in runs.items()},
        ports=prepared.rehearsal.ports(),
        notes=tuple(notes),
    )


def refuse_what_never_fits(job: Job, machine: Machine) -> None:
    need = whole_need(job)
    short = never_fits(machine.capacity, need)
    if short is None:
        return
    hint = "Ask for less, or for fewer replicas."
    if need.gpus > machine.capacity.gpus:
        hint = "Ask for fewer GPUs, or try it out without any with `--no-gpu`."
    elif need.pods > machine.capacity.pods:
        hint = (
            "Ask for fewer replicas, or let the machine take more, with a server that is started "
            f"so: `regatta server stop; REGATTA_PODS={need.pods} regatta server start`."
        )
    raise NeverFits(f"{job.name} can never start on this machine: {short}. {hint}")


def without_gpus(job: Job) -> Job:
    """The same job with no GPU asked for, so that environment and counting agree with the run."""

    def bare(role: RoleSpec) -> RoleSpec:
        template = copy.deepcopy(role.template)
        spec = template.get("spec") or {}
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            _drop_gpus(container.get("resources"))
        return replace(role, template=template)

    spec = job.spec
    changed: JobSpec = replace(
        spec,
        ps=bare(spec.ps) if spec.ps else None,
        worker=bare(spec.worker) if spec.worker else None,
        heter=bare(spec.heter) if spec.heter else None,
        tasks=tuple(bare(task) for task in spec.tasks),
    )
    return replace(job, spec=changed)


def _drop_gpus(resources: dict[str, Any] | None) -> None:
    for kind in ("limits", "requests"):
        amounts = (resources or {}).get(kind)
        if amounts:
            amounts.pop(GPU, None)


def _fresh(job: Job, now: Instant) -> Job:
    metadata = replace(
        job.metadata,
        uid=str(uuid.uuid4()),
        generation=1,
        creation_timestamp=now.wall,
        deletion_timestamp=None,
    )
    return Job(metadata=metadata, spec=job.spec)
