"""Reads what a replica reported with `regatta.progress`."""

from __future__ import annotations

import errno
import os
import stat
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from regatta.api.checks.suggestions import readable
from regatta.api.job import Progress
from regatta.api.source.foreign_json import UNREADABLE
from regatta.engines.local.replicas.runspec import PROGRESS_FILE

_TAIL = 16 * 1024
#: What `regatta.progress` keeps to, and who writes the file himself is kept to.
MOST_METRICS, LONGEST_NAME = 32, 64

#: What is beyond these is no report but a mistake, and no program of ours could count with it.
_Count = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
_Number = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Moment = Annotated[
    float,
    msgspec.Meta(
        ge=datetime(2000, 1, 1, tzinfo=UTC).timestamp(),
        lt=datetime(2200, 1, 1, tzinfo=UTC).timestamp(),
    ),
]


class _Record(msgspec.Struct):
    at: _Moment
    #: None where what was reported is no number.
    step: _Count | None = None
    total: _Count | None = None
    metrics: dict[str, _Number] = {}
    not_numbers: dict[str, Annotated[str, msgspec.Meta(max_length=80)]] = {}


class _Step(NamedTuple):
    step: int
    total: int | None
    at: float


_decode = msgspec.json.Decoder(_Record).decode


def read_progress(folder: Path) -> Progress | None:
    """The last report of the run in this folder, with the time left at the recent pace."""
    try:
        with open(folder / PROGRESS_FILE, "rb", opener=_open) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return None
    newest: _Record | None = None
    odd: dict[str, str] = {}
    steps: list[_Step] = []
    for line in reversed(lines):  # the first may be cut, any may be torn: skip those
        try:
            record = _decode(line)
        except UNREADABLE:
            continue
        if record.step is not None:
            # A step that is higher earlier on belongs to a try before this one.
            if steps and (record.step > steps[-1].step or record.at > steps[-1].at):
                break
            steps.append(_Step(record.step, record.total, record.at))
        newest = newest or record
        odd = record.not_numbers | odd
    if newest is None:
        return None
    reached = steps[0] if steps else _Step(0, newest.total, newest.at)
    return Progress(
        step=reached.step,
        total=reached.total,
        metrics={
            _name(name): number for name, number in islice(newest.metrics.items(), MOST_METRICS)
        },
        not_numbers={_name(name): readable(value) for name, value in odd.items()},
        at=datetime.fromtimestamp(newest.at, UTC),
        eta_seconds=_time_left(steps) if steps else None,
    )


def _name(said: str) -> str:
    """It stands on other people's terminals: as a letter, not as what moves their cursor."""
    return readable(said[:LONGEST_NAME])


def _open(path: str, flags: int) -> int:
    """A link is the engine's own, and leads to a file that its account writes. What a program puts
    in its place is neither followed nor waited for."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        fd = os.open(os.readlink(path), flags)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", path)
    return fd


def _time_left(records: list[_Step]) -> float | None:
    """At the pace of the newer half of this try's reports, which come newest first: what was slow
    while it started says nothing of what is left. Of one report nothing follows, nor of step 0,
    after which a program often prepares for long."""
    last, first = records[0], next((r for r in reversed(records) if r.step > 0), records[0])
    if last.total is None or last.step >= last.total:
        return None
    middle = (first.step + last.step) / 2
    since = next((record for record in records if record.step <= middle), last)
    if since.step <= 0 or last.step <= since.step or last.at <= since.at:
        return None
    return round((last.total - last.step) * (last.at - since.at) / (last.step - since.step), 1)
