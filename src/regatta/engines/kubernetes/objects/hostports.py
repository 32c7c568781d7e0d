"""Which ports a job's replicas listen on.

With PodIP and Service every pod has a network of its own and all use the same port. Under Host
they share the node's, so jobs are spread over a range by their uid. No register is kept: the first
port of each replica is declared, and the scheduler keeps two that collide off one node.
"""

from __future__ import annotations

import zlib

from regatta.api.job import Intranet, Job
from regatta.controller.world import PORTS_PER_REPLICA, Ports
from regatta.engines.kubernetes.objects.annotations import HOST_PORT

FIRST = 20_000
#: The last base; with one block for each of 32 roles a job stays below 32768, where the kernel
#: begins to pick ports of its own.
LAST = 29_900

#: Paddle's elastic agents and its own defaults live here.
_LOWEST, _HIGHEST = 1024, 65_535 - 32 * PORTS_PER_REPLICA


def ports_of(job: Job) -> Ports:
    if job.spec.intranet is not Intranet.HOST:
        return Ports(FIRST)
    return Ports(_chosen(job) or _spread(job.uid), 0, PORTS_PER_REPLICA)


def _chosen(job: Job) -> int | None:
    """What the job's own annotation says, if that is a port."""
    said = job.metadata.annotations.get(HOST_PORT, "")
    return int(said) if said.isdecimal() and _LOWEST <= int(said) <= _HIGHEST else None


def _spread(uid: str) -> int:
    blocks = (LAST - FIRST) // PORTS_PER_REPLICA + 1
    return FIRST + zlib.crc32(uid.encode()) % blocks * PORTS_PER_REPLICA
