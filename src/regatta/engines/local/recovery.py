"""What an engine does before its first turn: find out what the last one left.

There is no clean shutdown to hope for; being killed at any instant is the normal end of a server.
The store says what should be, the run folders say what is, and the loop's first turn makes them
agree. Here only the leftovers that no row knows of are ended.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from regatta.engines.local.home import Home
from regatta.engines.local.on_behalf.own_folders import remove_job
from regatta.engines.local.replicas.hierarchies import remove_abandoned
from regatta.engines.local.replicas.runtime import RunPhase, Runtime
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import JobRecord
from regatta.engines.local.store.secrets_file import forget_secrets

log = logging.getLogger(__name__)

#: What is stopped with no grace is over well before this.
PATIENCE = 5.0


def jobs_to_look_at(read: Queries) -> list[JobRecord]:
    """All but those that are finished, have nothing running and no time to live."""
    records = {record.uid: record for record in read.unfinished()}
    uids = [pod.job_uid for pod in read.pods_not_over()] + read.finished_with_timer()
    for uid in uids:
        if uid not in records:
            record = read.job(uid)
            if record is not None:
                records[uid] = record
    return list(records.values())


def sweep_leftovers(home: Home, read: Queries, runtime: Runtime, *, keep: bool = False) -> int:
    """End and remove what belongs to jobs of this home that were removed from the store. `keep`:
    somebody took the store itself away; then the logs of its jobs are put aside."""
    remove_abandoned()
    known = read.job_uids()
    jobs = home.path / "jobs"
    # Names first: there are thousands of folders that need no look.
    strangers = [jobs / name for name in os.listdir(jobs) if name not in known]
    for folder in strangers:
        for pod in _folders(folder / "pods"):
            for run in _folders(pod / "runs"):
                runtime.stop(run, 0)
                if not _ended(runtime, run):
                    runtime.kill_supervisor(run)
                    _ended(runtime, run)
                runtime.sweep(f"{pod.name}/{run.name}", run)
        if keep:
            aside = home.aside
            log.warning("no database knows job %s; its logs are in %s now", folder.name, aside)
            aside.mkdir(mode=0o700, exist_ok=True)
            forget_secrets(folder)
            folder.replace(aside / folder.name)
            continue
        log.info("removing what is left of deleted job %s", folder.name)
        if (failure := remove_job(folder)) is not None:
            log.warning("of deleted job %s: %s", folder.name, failure)
    return len(strangers)


def _ended(runtime: Runtime, run: Path) -> bool:
    """In time. A supervisor that is still writing would leave part of the folder behind."""
    deadline = time.monotonic() + PATIENCE
    while runtime.inspect(run).phase in (RunPhase.RUNNING, RunPhase.STARTING):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _folders(parent: Path) -> list[Path]:
    try:
        return [entry for entry in parent.iterdir() if entry.is_dir()]
    except OSError:
        return []
