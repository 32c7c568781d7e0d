"""A new attempt: the brain's memory moved on, so that pods of the old one sort themselves out.

Attempt numbers are labels of pods. Raising the number that a role expects makes its present pods
stale, whoever looks at them and whenever; nothing needs to remember which were to be replaced.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec.structs import replace

from regatta.api.job import Job, JobSpec, JobStatus, Mode, RestartScope, RoleStatus
from regatta.controller.observe import Replica, spec_size
from regatta.controller.world import Children, meets_by_name


def new_attempt_of_all(job: Job, **changes: Any) -> Job:
    """Every replica starts again, with a new environment, at the size the spec asks for."""
    attempt = job.status.attempt + 1
    roles = {
        name: RoleStatus(attempt=attempt, replicas=role.replicas)
        for name, role in job.spec.roles().items()
    }
    status = replace(
        with_roles(job, roles),
        attempt=attempt,
        revision=job.status.revision + 1,
        shape=spec_size(job),
        made_from=fingerprint(job.spec),
        heartbeat_awake=None,
        **changes,
    )
    return replace(job, status=status)


def new_attempt_of(job: Job, struck: tuple[Replica, ...], whole_role: bool, **changes: Any) -> Job:
    """Only the struck replicas (or their roles) start again; the environment stays true."""
    attempt = job.status.attempt + 1
    roles = dict(job.status.roles())
    for replica in struck:
        memory = roles.get(replica.role, RoleStatus())
        if whole_role:
            roles[replica.role] = replace(memory, attempt=attempt, done=(), refs=())
        else:
            roles[replica.role] = replace(
                memory,
                replica_attempts={**memory.replica_attempts, str(replica.index): attempt},
                refs=tuple(ref for ref in memory.refs if ref.name != replica.name),
            )
    status = replace(with_roles(job, roles), attempt=attempt, heartbeat_awake=None, **changes)
    return replace(job, status=status)


def fingerprint(spec: JobSpec) -> str:
    """Of everything about a job that its pods are made from, but their number."""
    roles = {
        # Without an alias as it was before there were any: nothing restarts for a new version.
        name: (role.template, role.ports, *filter(None, [role.alias]))
        for name, role in spec.roles().items()
    }
    text = msgspec.json.encode((roles, spec.intranet, spec.with_gloo), order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def effective_scope(job: Job, children: Children) -> RestartScope:
    """A part can restart alone only where its address stays the same; else all must."""
    addresses_stay = children.services is None or meets_by_name(job, children.names_only)
    return job.spec.run_policy.restart_scope if addresses_stay else RestartScope.JOB


def may_move(job: Job) -> bool:
    """Whether the next attempt can be told other addresses and ports: a replica that starts again
    alone cannot, because its peers keep the environment that names its place."""
    return job.spec.run_policy.restart_scope is RestartScope.JOB


def with_roles(job: Job, roles: dict[str, RoleStatus]) -> JobStatus:
    if job.spec.mode is Mode.CUSTOM:
        return replace(job.status, tasks=roles)
    return replace(
        job.status, ps=roles.get("ps"), worker=roles.get("worker"), heter=roles.get("heter")
    )
