"""Which run a UID names, or the beginning of one."""

from __future__ import annotations

from collections.abc import Sequence

from regatta.api.errors import JobNotFound
from regatta.engines.inventory import RunView

#: Characters of a UID that stand for all of it, where no other begins so.
SHORTEST = 8
#: Runs that an error names.
NAMED = 5


def the_run(
    uid: str, runs: Sequence[RunView], namespace: str | None, name: str | None
) -> RunView | None:
    """One of `runs`, in this namespace and of a job of this name (None: any). None: no UID there is
    or begins so. Raises JobNotFound where several do, or another job's does."""
    found = [run for run in runs if run.uid == uid]
    if not found and len(uid) >= SHORTEST:
        found = [run for run in runs if run.uid.startswith(uid)]
    here = [r for r in found if namespace in (None, r.namespace) and name in (None, r.name)]
    if len(here) == 1:
        return here[0]
    if here:
        some = ", ".join(f"{run.uid} ({run.name})" for run in here[:NAMED])
        more = ", ..." if len(here) > NAMED else ""
        raise JobNotFound(
            f"{len(here)} runs have a UID that begins with {uid}: {some}{more}. Write more of it."
        )
    if not found and any(run.uid.startswith(uid) for run in runs):
        raise JobNotFound(
            f"{uid} is too short for the beginning of a UID: write {SHORTEST} characters or more. "
            "`regatta history -A` lists all runs."
        )
    if not found:
        return None
    other = found[0]
    asked = f"of {name} " if name is not None and name != other.name else ""
    raise JobNotFound(
        f"the run with the UID {other.uid} is not {asked}in namespace {namespace}, but of job "
        f"{other.name} in namespace {other.namespace}. Write `-n {other.namespace} --uid "
        f"{other.uid}`, without another name."
    )
