"""What happened to a job, in the shape that v2's clients read. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from regatta.server.openpai.jobs.job_answers import framework_of, waiting_reason
from regatta.server.openpai.jobs.job_shapes import EventsWithCount, OpenPaiEvent
from regatta.server.openpai.jobs.telling.author_names import AuthorNames, names_of
from regatta.server.openpai.jobs.telling.role_plans import names_by_label
from regatta.server.records.job_rows import EventRow, JobRow, ReplicaRow
from regatta.server.records.job_story import JobStory

#: A task's replicas, one after another, by the engine's name of its role and by its index.
_Lives = Mapping[tuple[str, int], Sequence[ReplicaRow]]


def events_shown(story: JobStory, events: Sequence[EventRow], kind: str | None) -> EventsWithCount:
    """The newest first. While the job waits, why it does is the first of them: there its users
    look for that."""
    row, names, lives = story.row, names_of(story.row, names_by_label(story)), _lives_of(story)
    shown = [_event(row, names, lives, f"{row.id}-{event.engine_id}", event) for event in events]
    why = waiting_reason(row)
    if why is not None and kind in (None, "Normal"):
        now = EventRow(
            engine_id=0,
            at=row.last_seen_at or row.submitted_at,
            type="Normal",
            reason=row.reason or "Waiting",
            message=why,
            count=1,
        )
        shown.insert(0, _event(row, names, lives, f"{row.id}-waiting", now))
    return EventsWithCount(total_count=len(shown), data=tuple(shown))


def _event(
    row: JobRow, names: AuthorNames, lives: _Lives, uid: str, event: EventRow
) -> OpenPaiEvent:
    moment = datetime.fromtimestamp(event.at / 1000, UTC)
    at = f"{moment:%Y-%m-%dT%H:%M:%S}.{event.at % 1000:03d}Z"
    framework, pod, role, index = framework_of(row), "", "", -1
    if about := names.task_of(event.message):
        role, index = names.roles[about[0]], about[1]
        pod = _played_at(lives.get(about, ()), event.at)
    return OpenPaiEvent(
        uid=uid,
        framework_name=framework,
        pod_uid=pod,
        taskrole_name=role,
        task_name=f"{framework}-{role}-{index}" if role else "",
        task_index=index,
        type=event.type,
        reason=event.reason,
        message=names.told(event.message) if row.protocol else event.message,
        first_timestamp=at,
        last_timestamp=at,
        count=event.count,
        source_component="regatta",
        source_host=None,
    )


def _lives_of(story: JobStory) -> _Lives:
    lives: dict[tuple[str, int], list[ReplicaRow]] = {}
    for one in sorted(story.replicas, key=lambda one: (one.attempt, one.created_at or 0)):
        lives.setdefault((one.role, one.replica_index), []).append(one)
    return lives


def _played_at(lives: Sequence[ReplicaRow], at: int) -> str:
    """The uid of who played the task then; of the first one what happened before it was there."""
    begun = [one for one in lives if (one.created_at or 0) <= at]
    chosen = begun[-1:] or lives[:1]
    return chosen[0].uid if chosen else ""
