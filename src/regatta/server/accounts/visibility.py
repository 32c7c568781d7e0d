"""Whose jobs somebody sees, and whose he may change. Pure.

OpenPAI shows everybody every job; teams asked for less, so there are three ways. What one may not
see is answered as if it were not there: a refusal would tell that it is. What one sees and may not
change is refused by name.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from regatta.server.accounts.caller import Caller
from regatta.server.openpai_errors import forbidden, no_job

#: A job that somebody made past the server, as with kubectl.
NOBODY = ""
#: OpenPAI's word for to start and to stop.
EXECUTE = "execute"


class Visibility(StrEnum):
    OWN = "own"
    GROUP = "group"
    ALL = "all"


def owners_seen(
    viewer: Caller, visibility: Visibility, peers: Collection[str] = ()
) -> frozenset[str] | None:
    """To whose jobs a list is narrowed; None for everybody's, nobody's as well. `peers`: who shares
    a group with the viewer (`user_groups.peers_of`); asked for only with `group`."""
    if viewer.admin or visibility is Visibility.ALL:
        return None
    seen = {viewer.name}
    if visibility is Visibility.GROUP:
        seen.update(peers)
    return frozenset(seen - {NOBODY})


def may_see(
    viewer: Caller, owner: str, visibility: Visibility, peers: Collection[str] = ()
) -> bool:
    seen = owners_seen(viewer, visibility, peers)
    return seen is None or owner in seen


def may_change(viewer: Caller, owner: str) -> bool:
    """Stop, resume, tag, remove."""
    return viewer.admin or (owner != NOBODY and owner == viewer.name)


def require_seen(
    viewer: Caller,
    owner: str,
    job: str,
    visibility: Visibility,
    peers: Collection[str] = (),
) -> None:
    """`job`: as the request named it."""
    if not may_see(viewer, owner, visibility, peers):
        raise no_job(job)


def require_changeable(
    viewer: Caller,
    owner: str,
    job: str,
    visibility: Visibility,
    peers: Collection[str] = (),
    verb: str = EXECUTE,
) -> None:
    """`verb`: what is wanted of the job."""
    if may_change(viewer, owner):
        return
    require_seen(viewer, owner, job, visibility, peers)
    raise forbidden(f"User {viewer.name} is not allowed to {verb} job {job}.")
