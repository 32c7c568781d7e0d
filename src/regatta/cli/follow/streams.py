"""Streams of the engine that the command line chose; each outlives a broken connection."""

from __future__ import annotations

from collections.abc import Iterator

from regatta.api.job import Job
from regatta.cli.settings import Settings
from regatta.engines.base import EventView, Gone, LogQuery, Lost, Remark, Synced


def follow_job(
    settings: Settings, namespace: str, name: str, query: LogQuery, *, status: bool = True
) -> Iterator[Lines | Remark | Job | Gone | Lost]:
    """A job's log lines, and its status whenever it changed, until it is over and drained."""
    if settings.on_cluster:
        return settings.cluster().follow_job(namespace, name, query, status=status)
    from regatta.client import follow

    return follow.follow_job(settings.connect_server, namespace, name, query, status=status)


def watch_jobs(
    settings: Settings, namespace: str | None, name: str | None = None
) -> Iterator[Job | Gone | Synced | Lost]:
    """Every matching job as it is now, then each one again when it changed. Has no end."""
    if settings.on_cluster:
        return settings.cluster().watch_jobs(namespace, name)
    from regatta.client import follow

    return follow.watch_jobs(settings.connect_server, namespace, name)


def follow_events(
    settings: Settings, namespace: str | None, name: str | None
) -> Iterator[EventView | Lost]:
    """Events from the first one kept, then as they happen. Has no end."""
    if settings.on_cluster:
        return settings.cluster().follow_events(namespace, name)
    from regatta.client import follow

    return follow.follow_events(settings.connect_server, namespace, name)
