"""What some engines can, and is asked of those that can by whoever keeps records of their jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from regatta.api.errors import ClusterUnreachable, RegattaError
from regatta.api.job import Job
from regatta.engines.base import Engine
from regatta.engines.inventory import PodView, RunView

log = logging.getLogger(__name__)


@runtime_checkable
class RemembersKeys(Protocol):
    """An engine that can tell which job a submission made."""

    async def arrived(self, key: str, namespace: str, name: str) -> Job | RunView | None: ...


@runtime_checkable
class RemembersWhatWent(Protocol):
    """An engine that keeps no history of jobs, and for a while what its watch last told of them."""

    async def departed(self, *, uid: str) -> tuple[Job, list[PodView]] | None: ...


@runtime_checkable
class DropsSecrets(Protocol):
    """An engine in which a job's secrets would stay for as long as the job does."""

    async def drop_secrets(self, job: Job) -> None: ...

    async def drop_secrets_of_submit(self, namespace: str, name: str, key: str) -> None: ...


async def drop_secrets(engine: Engine, ended: Iterable[Job]) -> None:
    """Raises ClusterUnreachable: then it is to be tried again. Where it is refused, secrets go with
    their job, which is no reason to record nothing."""
    if not isinstance(engine, DropsSecrets):
        return
    for job in ended:
        try:
            await engine.drop_secrets(job)
        except ClusterUnreachable:
            raise
        except RegattaError as refused:
            where = f"{job.namespace}/{job.name}"
            log.warning("the secrets of %s stay until it is deleted: %s", where, refused)


async def drop_secrets_of_submit(engine: Engine, namespace: str, name: str, key: str) -> None:
    """The same, of a submit that made no job."""
    if not isinstance(engine, DropsSecrets):
        return
    try:
        await engine.drop_secrets_of_submit(namespace, name, key)
    except ClusterUnreachable:
        raise
    except RegattaError as refused:
        log.warning("secrets of a submit of %s/%s may stay: %s", namespace, name, refused)
