"""A job played through on paper: every pod and environment it would get, and nothing created.

The brain is asked about imaginary pods that are placed at once. Submitting uses this to find
mistakes before anything is queued, and a dry run to print exactly what would be.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec

from regatta.api.job import Job
from regatta.api.problems import Problem
from regatta.api.source.companions import Companions
from regatta.controller.observe import ordinal_of
from regatta.controller.plan import Instant, NewEnvironment, NewPod, Plan
from regatta.controller.world import Children, port_block
from regatta.engines.local.on_behalf.own_folders import own_folder
from regatta.engines.local.replicas.build import Placement, draft_run
from regatta.engines.local.replicas.gather import process_context, with_uid
from regatta.engines.local.replicas.runspec import RunSpec
from regatta.engines.local.scheduling.ledger import needs_of
from regatta.engines.local.scheduling.reservations import place, ports_of
from regatta.engines.local.store.records import Context, Reservation
from regatta.engines.local.store.secrets_file import Secrets
from regatta.engines.preview import as_placed, rehearse


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    pods: tuple[NewPod, ...]
    environments: tuple[NewEnvironment, ...]
    #: Address, first port and GPUs of each pod, by its name.
    places: dict[str, Placement]

    def objects(self) -> tuple[dict[str, Any], ...]:
        pods = tuple(pod.manifest for pod in self.pods)
        return pods + tuple(environment.manifest for environment in self.environments)

    def ports(self) -> dict[str, tuple[int, int]]:
        return {name: port_block(place.port_base) for name, place in self.places.items()}


class _Paper:
    """The places that the next free addresses and ports make, and what would stand on them."""

    def __init__(self, job: Job, reservation: Reservation, gpus: tuple[str, ...]) -> None:
        self._reservation = reservation
        self._needs = needs_of(job)
        self._gpus = gpus
        self.pods: list[NewPod] = []
        self.environments: list[NewEnvironment] = []
        self.places: dict[str, Placement] = {}

    def children(self, job: Job) -> Children:
        return Children(
            pods=tuple(as_placed(pod, self.places[pod.name].address) for pod in self.pods),
            environments=frozenset(made.revision for made in self.environments),
            ports=ports_of(self._reservation),
        )

    def take(self, job: Job, plan: Plan) -> None:
        for pod in plan.pods:
            self.pods.append(pod)
            address, port = place(self._reservation, ordinal_of(job, pod.role, pod.index))
            count = self._needs[pod.role].gpus
            mine, self._gpus = self._gpus[:count], self._gpus[count:]
            self.places[pod.name] = Placement(address=address, port_base=port, gpus=mine)
        self.environments += plan.environments


def rehearse_here(
    job: Job, reservation: Reservation, now: Instant, gpus: tuple[str, ...] = ()
) -> Rehearsal:
    paper = _Paper(job, reservation, gpus)
    rehearse(job, paper, now)
    return Rehearsal(
        pods=tuple(paper.pods), environments=tuple(paper.environments), places=paper.places
    )


def build_runs(
    job: Job,
    rehearsal: Rehearsal,
    context: Context,
    companions: Companions,
    secrets: Secrets,
    *,
    all_pods: bool,
) -> tuple[dict[str, RunSpec], list[Problem]]:
    """Runs by pod name, of every pod or of each role's first, which shows the same mistakes; and
    why some of them cannot be started, with paths that lead into the job."""
    data = {made.name: made.data for made in rehearsal.environments}
    runs: dict[str, RunSpec] = {}
    problems: list[Problem] = []
    for pod in rehearsal.pods:
        if pod.index > 0 and not all_pods:
            continue
        runs[pod.name], found = draft_run(
            with_uid(pod.manifest, pod.name),
            placement=rehearsal.places[pod.name],
            environments=data,
            context=process_context(context, companions, secrets),
            folder=Path("/run/regatta") / pod.name,
            run=1,
            own=own_folder(context.runs, job.uid, pod.name, 1) if context.runs else None,
        )
        if pod.index == 0:
            prefix = f"{job.spec.path_of(pod.role)}.template"
            problems += [replace_path(problem, prefix) for problem in found]
    return runs, list(dict.fromkeys(problems))


def replace_path(problem: Problem, prefix: str) -> Problem:
    if problem.path.startswith("--"):
        return problem  # an option is no place in the file
    path = f"{prefix}.{problem.path}" if problem.path else prefix
    return dataclasses.replace(problem, path=path)
