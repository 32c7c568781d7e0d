"""The cluster's events about a job and its pods, as doors show them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

import msgspec

from regatta.api.job import KIND, Job
from regatta.engines.inventory import EventView
from regatta.engines.kubernetes.api.models import Metadata, TargetRef
from regatta.engines.listing import LONG_AGO

ABOUT_JOBS = f"involvedObject.kind={KIND}"
ABOUT_PODS = "involvedObject.kind=Pod"


class Event(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    involved_object: TargetRef = TargetRef()
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def at(self) -> datetime:
        known = (self.last_timestamp, self.event_time, self.first_timestamp)
        return next(filter(None, known), None) or self.metadata.creation_timestamp or LONG_AGO


class Story:
    """Which events tell of one job: its own, and those of pods with its names since it is there."""

    def __init__(self, job: Job) -> None:
        self._job = job
        roles = "|".join(map(re.escape, job.spec.roles())) or "-"
        self._replica = re.compile(rf"{re.escape(job.name)}-(?P<replica>(?:{roles})-\d+)")
        self._begin = (job.metadata.creation_timestamp or LONG_AGO).replace(microsecond=0)

    def view(self, event: Event) -> EventView | None:
        about = event.involved_object
        if about.kind == KIND:
            return job_event(event) if about.uid == self._job.uid else None
        replica = self._replica.fullmatch(about.name)
        if replica is None or event.at < self._begin:
            return None
        return _view(event, self._job.name, f"{replica['replica']}: {event.message}")


def job_event(event: Event) -> EventView:
    return _view(event, event.involved_object.name, event.message)


def in_order(views: Iterable[EventView | None]) -> list[EventView]:
    """As they were written: whoever goes on after the last one misses none before it."""
    return sorted(filter(None, views), key=lambda view: view.id)


def _view(event: Event, job: str, message: str) -> EventView:
    version = event.metadata.resource_version
    times = f" (x{event.count})" if event.count and event.count > 1 else ""
    return EventView(
        id=int(version) if version.isdecimal() else 0,
        at=event.at,
        type=event.type,
        reason=event.reason,
        message=f"{message.strip()}{times}",
        job=job,
        namespace=event.metadata.namespace,
    )
