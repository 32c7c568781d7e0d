"""How long records stay: for ever, or so many days from the end of their job, never from its begin.

A record that a person deleted is a bare row that nobody sees. It goes a day after its job has gone
from the engine: until then the engine may tell of the job, and it must not come back as nobody's.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select

from regatta.api.errors import BadSetting
from regatta.server.openpai_states import FINAL_STATES
from regatta.server.records.job_tables import gaps, jobs

DAY = 86_400_000
#: Rows in one transaction: nobody else should wait for long.
AT_ONCE = 500


def cutoff(days: float, now: int) -> int | None:
    """Records of jobs that ended before then go; None: none do. Raises BadSetting."""
    if days < 0:
        raise BadSetting(f"days to keep records: found {days:g}; write 0 for ever, or more")
    return now - round(days * DAY) if days else None


def forget_old(connection: Connection, days: float, now: int) -> list[str]:
    """Deletes some of what has been kept long enough, with all that hangs on it, and says which
    jobs that were, by their ids: ask again until it is none."""
    ended_before = cutoff(days, now)
    unseen = and_(jobs.c.deleted_at.is_not(None), jobs.c.gone_at < now - DAY)
    goes: ColumnElement[bool] = unseen
    if ended_before is not None:
        goes = or_(unseen, _ended_before(ended_before))
        connection.execute(delete(gaps).where(gaps.c.until_at < ended_before))
    old = select(jobs.c.id).where(goes).order_by(jobs.c.id).limit(AT_ONCE)
    ids = list(connection.scalars(old))
    if ids:
        connection.execute(delete(jobs).where(jobs.c.id.in_(ids)))
    return ids


def _ended_before(moment: int) -> ColumnElement[bool]:
    """Of a job whose end nobody saw, it ended when that was found out: no earlier."""
    end = func.coalesce(jobs.c.completed_at, jobs.c.gone_at)
    unclear = and_(jobs.c.end_seen.is_(False), jobs.c.gone_at >= moment)
    return and_(jobs.c.state.in_(FINAL_STATES), end < moment, ~unclear)
