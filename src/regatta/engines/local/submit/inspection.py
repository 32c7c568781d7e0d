"""What a submission's folders, programs and images are like: all that is looked at, opened or run
before it is queued. For another account that is done as that account (`on_behalf/as_account.py`).
"""

from __future__ import annotations

import msgspec

from regatta.api.job import Job
from regatta.api.problems import Problem
from regatta.api.source.companions import Companions
from regatta.engines.local.on_behalf.members_advice import advice_for
from regatta.engines.local.replicas.runspec import RunSpec
from regatta.engines.local.store.records import Context
from regatta.engines.local.store.secrets_file import Secrets
from regatta.engines.local.submit.paddle_probe import Probe, probe_paddle
from regatta.engines.local.submit.preflight import check_python, needs_python, preflight
from regatta.engines.local.submit.rehearsal import Rehearsal, build_runs
from regatta.engines.local.submit.which_python import about_pythons


class Question(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    rehearsal: Rehearsal
    context: Context
    companions: Companions
    secrets: Secrets
    #: The runs of every pod; else of each role's first, which shows the same mistakes.
    all_pods: bool = False
    #: Look at programs and images, too; pull those that are missing if they may be.
    preflight: bool = True
    may_pull: bool = False


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    #: By pod name.
    runs: dict[str, RunSpec]
    #: Why some of them cannot be started, with paths that lead into the job.
    missing: tuple[Problem, ...] = ()
    #: What is wrong with what they would run.
    doubts: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def inspect(question: Question, probe: Probe = probe_paddle) -> Findings:
    """As whom this process runs."""
    context = question.context
    runs, missing = build_runs(
        question.job,
        question.rehearsal,
        context,
        question.companions,
        question.secrets,
        all_pods=question.all_pods,
    )
    pythons = about_pythons(
        question.job, question.rehearsal, runs, context, checked=question.preflight
    )
    if not question.preflight:
        return Findings(runs=runs, missing=tuple(missing), warnings=tuple(pythons))
    roles = {pod.name: pod.role for pod in question.rehearsal.pods}
    by_role = {roles[name]: run for name, run in runs.items()}
    doubts = check_python(context)
    if doubts:  # what it would run cannot be asked about
        by_role = {role: run for role, run in by_role.items() if not needs_python(run)}
    may_pull = question.may_pull and not missing
    worse, softer = preflight(
        question.job, by_role, probe, may_pull=may_pull, advice=advice_for(context)
    )
    return Findings(
        runs=runs,
        missing=tuple(missing),
        doubts=tuple(doubts + worse),
        warnings=(*softer, *pythons),
    )
