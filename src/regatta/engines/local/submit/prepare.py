"""The way of a submission to a job that may be queued: read, fitted, rehearsed, checked.

Everything here happens before anything is written, and a dry run stops right after it.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.errors import InvalidJob, NeverFits, PreflightFailed
from regatta.api.job import Job, JobSpec, RoleSpec
from regatta.api.problems import Problem
from regatta.api.quantity import GPU
from regatta.api.secrets import JobSecret
from regatta.api.source.companions import Companions
from regatta.api.source.limits import check_plain
from regatta.api.source.paths import within
from regatta.controller.labels import REPLACED_BY
from regatta.controller.plan import Instant
from regatta.engines.base import Preview, Shell, Submission
from regatta.engines.local.clock import SystemClock
from regatta.engines.local.on_behalf.members_advice import Advice, advice_for
from regatta.engines.local.scheduling.ledger import places_needed, whole_need
from regatta.engines.local.scheduling.machine import Machine, find_machine
from regatta.engines.local.scheduling.reservations import BEGINNING
from regatta.engines.local.scheduling.scheduler import never_fits
from regatta.engines.local.store.records import Context, Reservation
from regatta.engines.local.store.secrets_file import Secrets, for_processes
from regatta.engines.local.submit.ignored import ignored_of_config, list_ignored
from regatta.engines.local.submit.inspection import Findings, Question, inspect
from regatta.engines.local.submit.paddle_probe import Probe, probe_paddle
from regatta.engines.local.submit.rehearsal import Rehearsal, rehearse_here
from regatta.engines.submission import read_submission


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing stands in the way of queueing it."""

    job: Job
    context: Context
    companions: Companions
    warnings: tuple[Problem, ...]
    rehearsal: Rehearsal
    #: What only its processes may know.
    secrets: tuple[JobSecret, ...] = ()

    @property
    def known(self) -> Secrets:
        return Secrets.of(for_processes(self.secrets))


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
    """Raises InvalidJob, NeverFits or PreflightFailed, each with all that is wrong: what the file
    says, what is not on this machine, and the size, in one report.

    `where` tells the places that so many replicas would get now, for the rehearsal. Nothing is
    changed but that images of a job that is to run may be pulled.
    """
    check_plain({"shell": msgspec.to_builtins(shell)})
    loaded = read_submission(submission, shell, as_far_as_it_goes=True)
    warnings = list(loaded.warnings)
    job = loaded.job
    if shell.no_gpu and whole_need(job).gpus:
        job = without_gpus(job)
        warnings.append(Problem("", "runs without the GPUs it asks for (--no-gpu)", "warning"))
    job = _fresh(job, now)
    context = Context.of(shell)
    advice = advice_for(context)
    too_large = why_it_never_fits(job, machine, advice)
    played = _of_one_each(job) if too_large else job
    rehearsal = rehearse_here(played, where(places_needed(played)), now, machine.gpus)
    known = Secrets.of(for_processes(loaded.secrets))
    found = _inspect(
        Question(
            job=played,
            rehearsal=rehearsal,
            context=context,
            companions=loaded.companions,
            secrets=known,
            preflight=not shell.no_preflight,
            may_pull=not (dry_run or loaded.wrong or too_large),
        ),
        probe,
    )
    warnings += loaded.with_lines(found.warnings)
    if loaded.config is not None:
        ignored = loaded.with_lines(ignored_of_config(job, context))
        # Not of what a default added; and what roles have in common is one field of the config.
        warnings += dict.fromkeys(told for told in ignored if loaded.config.says(told.path))
    refuse(
        job.name,
        wrong=loaded.wrong,
        missing=loaded.with_lines(list(found.missing)),
        too_large=too_large,
        doubts=loaded.with_lines(list(found.doubts)),
        warnings=warnings,
    )
    return Prepared(
        job=job,
        context=context,
        companions=loaded.companions,
        warnings=tuple(warnings),
        rehearsal=rehearsal,
        secrets=loaded.secrets,
    )


def check_here(submission: Submission, shell: Shell) -> Prepared:
    """What a submit on this machine would be told, without an engine: all but what only its own
    state can know, such as a live job of the same name."""
    return prepare(submission, shell, find_machine(), lambda _: BEGINNING, SystemClock().now())


def preview(prepared: Prepared) -> Preview:
    found = _inspect(
        Question(
            job=prepared.job,
            rehearsal=prepared.rehearsal,
            context=prepared.context,
            companions=prepared.companions,
            secrets=prepared.known,
            all_pods=True,
            preflight=False,
        )
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
        environment={name: run.containers[0].sees for name, run in found.runs.items()},
        ports=prepared.rehearsal.ports(),
        notes=tuple(notes),
    )


def refuse_what_never_fits(job: Job, machine: Machine, advice: Advice) -> None:
    if why := why_it_never_fits(job, machine, advice):
        raise NeverFits(f"{job.name} {why}")


def why_it_never_fits(job: Job, machine: Machine, advice: Advice) -> str:
    """In a sentence that begins with the job; empty where it fits."""
    need = whole_need(job)
    short = never_fits(machine.capacity, need)
    if short is None:
        return ""
    hint = "Ask for less, or for fewer replicas."
    without = msgspec.structs.replace(need, gpus=0)
    if need.millicores > machine.capacity.millicores:
        short_of_memory = need.memory > machine.capacity.memory
        hint = advice.more_cpus(need.millicores, need.memory if short_of_memory else 0)
    elif never_fits(machine.capacity, without) is None:
        hint = advice.fewer_gpus
    elif need.pods > machine.capacity.pods:
        hint = advice.more_pods(need.pods)
    return f"can never start on this machine: {short}. {hint}"


def refuse(
    name: str,
    *,
    wrong: Sequence[Problem],
    missing: Sequence[Problem],
    too_large: str,
    doubts: Sequence[Problem],
    warnings: Sequence[Problem],
) -> None:
    """Raise the error that all of this makes, if anything does: of the kind that has to be mended
    first, with the rest beside it."""
    told = [problem.path for problem in wrong]
    if wrong or missing:
        # What is missing only because a mistake was left out is told by the mistake.
        news = [
            problem
            for problem in missing
            if not any(within(problem.path, at) or within(at, problem.path) for at in told if at)
        ]
        size = [Problem("", f"it {too_large}")] if too_large else []
        # Where the command is missing, a `comand` that was left aside is why.
        raise InvalidJob([*wrong, *news, *size, *doubts, *warnings])
    if too_large:
        raise NeverFits(f"{name} {too_large}", tuple(doubts))
    if doubts:
        count = f"{len(doubts)} problem{'' if len(doubts) == 1 else 's'}"
        raise PreflightFailed(f"{count} with what the job would run", tuple(doubts))


def _inspect(question: Question, probe: Probe = probe_paddle) -> Findings:
    """As the one who submits it."""
    if question.context.run_as is None:
        return inspect(question, probe)
    from regatta.engines.local.on_behalf.as_account import inspect_as

    return inspect_as(question, question.context.run_as)


def _of_one_each(job: Job) -> Job:
    """Enough to see what is wrong with the roles of a job that is too large to be played."""

    def one(role: RoleSpec) -> RoleSpec:
        return replace(role, replicas=1, requests=None, limits=None, completion=None)

    return replace(job, spec=replace(_with_each_role(job.spec, one), elastic=None))


def without_gpus(job: Job) -> Job:
    """The same job with no GPU asked for, so that environment and counting agree with the run."""

    def bare(role: RoleSpec) -> RoleSpec:
        template = copy.deepcopy(role.template)
        spec = template.get("spec") or {}
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            _drop_gpus(container.get("resources"))
        return replace(role, template=template)

    return replace(job, spec=_with_each_role(job.spec, bare))


def _with_each_role(spec: JobSpec, change: Callable[[RoleSpec], RoleSpec]) -> JobSpec:
    changed: JobSpec = replace(
        spec,
        ps=change(spec.ps) if spec.ps else None,
        worker=change(spec.worker) if spec.worker else None,
        heter=change(spec.heter) if spec.heter else None,
        tasks=tuple(change(task) for task in spec.tasks),
    )
    return changed


def _drop_gpus(resources: dict[str, Any] | None) -> None:
    for kind in ("limits", "requests"):
        amounts = (resources or {}).get(kind)
        if amounts:
            amounts.pop(GPU, None)


def _fresh(job: Job, now: Instant) -> Job:
    """A file that was copied from a job that was replaced says so, and nobody replaced this one."""
    notes = {key: said for key, said in job.metadata.annotations.items() if key != REPLACED_BY}
    metadata = replace(
        job.metadata,
        annotations=notes,
        uid=str(uuid.uuid4()),
        generation=1,
        creation_timestamp=now.wall,
        deletion_timestamp=None,
    )
    return Job(metadata=metadata, spec=job.spec)
