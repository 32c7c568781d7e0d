"""`regatta delete`: end jobs and forget them."""

from __future__ import annotations

import time

import click

from regatta.cli.follow.until import wait_for
from regatta.cli.job_names import for_each, job_argument, one_or_more
from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings, pass_settings, verb

#: A replica has 30 s to end unless its job says otherwise.
PATIENCE_SECONDS = 60.0
_STILL_THERE = "is being deleted: its replicas take their time to end"


@verb("delete")
@job_argument(several=True)
@click.option("--all", "every", is_flag=True, help="Every job of the namespace.")
@pass_settings
def command(settings: Settings, names: tuple[str, ...], every: bool) -> Exit:
    """Delete jobs: running ones are stopped, and records and logs are removed.

    Returns when they are gone, or after a minute.
    """
    one_or_more(names, every, "delete")
    engine = settings.engine()
    if every:
        names = tuple(job.name for job in engine.list(settings.namespace))
        if not names:
            print("No jobs.")

    uids: dict[str, str] = {}

    def delete(name: str) -> None:
        uid = engine.get(settings.namespace, name).uid
        engine.delete(settings.namespace, name)
        uids[name] = uid

    # All are told before the first is waited for: their replicas end side by side.
    code = for_each(list(names), delete, settings)
    deadline = time.monotonic() + PATIENCE_SECONDS
    for name, uid in uids.items():
        gone = _gone(settings, name, uid, max(0.0, deadline - time.monotonic()))
        print(f"job {name} {'deleted' if gone else _STILL_THERE}", flush=True)
    return code


def _gone(settings: Settings, name: str, uid: str, patience: float) -> bool:
    try:
        wait_for(settings, settings.namespace, name, "deleted", patience, uid)
    except Stop as late:
        if late.code is not Exit.TIMEOUT:
            raise
        return False
    return True
