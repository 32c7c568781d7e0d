"""Job files for the command on a cluster, in the words of the cases."""

from __future__ import annotations

from typing import Any

import yaml

from tests.kubernetes.operator.builders import JobBuilder, a_job


def text(job: JobBuilder, *beside: dict[str, Any]) -> str:
    return yaml.safe_dump_all([*beside, job.document()])


def running(name: str, workers: int = 2, servers: int = 0) -> JobBuilder:
    """A job that runs until it is told to end."""
    job = a_job(name).workers(workers)
    return job.with_ps(servers) if servers else job


def ending(name: str, workers: int = 1) -> JobBuilder:
    """A job that completes as soon as it runs."""
    return a_job(name).workers(workers).that_succeeds()
