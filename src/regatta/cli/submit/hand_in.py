"""Handing a job in, and what is said when no answer comes."""

from __future__ import annotations

from typing import Any

from regatta.api.errors import InvalidJob, NeverFits, PreflightFailed, Unanswered
from regatta.api.job import Job
from regatta.api.problems import how_many
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings
from regatta.cli.show.explain import show_problems
from regatta.cli.submit.command_line import read_options
from regatta.cli.submit.dry_run import DryRun, show_dry_run
from regatta.cli.submit.offer import offer
from regatta.engines.base import Accepted, Shell, Submission


def hand_in(settings: Settings, options: dict[str, Any], output: str | None) -> Job | None:
    """What the command line asks for: the job that was accepted, or, with nothing created, a look
    at what it would be (None)."""
    dry_run = DryRun.of(options)
    submission, shell = read_options(settings, options)
    try:
        if dry_run:
            show_dry_run(dry_run, submission, shell, output, settings)
            return None
        return _submitted(settings, submission, shell).job
    except (InvalidJob, NeverFits, PreflightFailed) as refused:
        if offered := offer(refused, submission, shell, settings.words):
            problems = refused.problems
            about = how_many(problems) if isinstance(refused, InvalidJob) else str(refused)
            raise Stop(Exit.INVALID, about, offered, problems) from refused
        raise


def _submitted(settings: Settings, submission: Submission, shell: Shell | None) -> Accepted:
    """Submit it, and show what is worth a warning."""
    try:
        accepted = settings.engine().submit(submission, shell)
    except KeyboardInterrupt:
        raise Stop(
            Exit.DETACHED,
            f"interrupted while {submission.source} was being submitted; it may have arrived",
            _whether_it_did(submission),
        ) from None
    except Unanswered as lost:
        raise Stop(
            Exit.UNREACHABLE,
            f"{lost}; {submission.source} was being submitted, and the job may have arrived",
            _whether_it_did(submission),
        ) from lost
    show_problems(accepted.warnings, settings)
    return accepted


def _whether_it_did(submission: Submission) -> str:
    # The file is not understood here, so its name is known only where the command line has one.
    named = f" {submission.name}" if submission.name else ""
    where = f" -n {submission.namespace}" if submission.namespace else ""
    return f"`regatta get{named}{where}` shows whether it did, and `regatta stop` ends it."
