"""Which virtual cluster a submission counts for, and whether its author may use the queues that it
names. Pure.

A virtual cluster is granted, whichever kind of file names it and wherever. On a machine a queue
that is none of them means nothing; on a cluster it is one of Volcano's, which nobody granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from regatta.api.checks.suggestions import listed, shown
from regatta.api.errors import InvalidJob, NotAllowed
from regatta.api.load import Loaded
from regatta.api.problems import Problem
from regatta.server.accounts.users import User
from regatta.server.openpai_errors import forbidden, no_virtual_cluster

QUEUE = "spec.schedulingPolicy.queue"
#: What a pod that is in no group of its job's tells Volcano.
_ANNOTATIONS = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")


def cluster_of(loaded: Loaded, every: Sequence[str], *, on_cluster: bool) -> str:
    """`every`: the virtual clusters that there are; who names none is in the first."""
    if loaded.config is not None:
        return loaded.config.virtual_cluster
    policy = loaded.job.spec.scheduling_policy
    queue = policy.queue if policy else ""
    return queue if queue and (on_cluster or queue in every) else every[0]


def check_queues(
    loaded: Loaded, user: User, granted: Collection[str], every: Sequence[str], *, on_cluster: bool
) -> None:
    """Raises OpenPaiError for a config, NotAllowed or InvalidJob for a PaddleJob."""
    instead = f"write {listed(granted, 'or')}" if granted else "ask an admin for one"
    if loaded.config is not None:
        wanted = loaded.config.virtual_cluster
        if wanted not in every:
            raise no_virtual_cluster(wanted, instead=f"For its virtualCluster {instead}.")
        if wanted not in granted:
            raise forbidden(
                f"User {user.name} is not allowed to do operation in {wanted}. For its "
                f"virtualCluster {instead}."
            )
    if user.admin:
        return
    named = list(_queues_named(loaded))
    unknown = [
        Problem(place, f"found {shown(queue)}, which is no virtual cluster here; {instead}")
        for place, queue in named
        if on_cluster and queue not in every
    ]
    if unknown:
        raise InvalidJob(loaded.with_lines(unknown))
    for place, queue in named:
        if queue in every and queue not in granted:
            raise NotAllowed(
                f"{place}: {queue} is a virtual cluster that {user.name} was not granted; {instead}"
            )
    counts_for = cluster_of(loaded, every, on_cluster=on_cluster)
    if counts_for not in granted:
        raise NotAllowed(
            f"{QUEUE}: a job that names no virtual cluster is in {counts_for}, which {user.name} "
            f"was not granted; {instead}"
        )


def _queues_named(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """Each with the place in the file that names it."""
    spec = loaded.job.spec
    if spec.scheduling_policy is not None and spec.scheduling_policy.queue:
        yield QUEUE, spec.scheduling_policy.queue
    for name, role in spec.roles().items():
        annotations = _map(_map(role.template.get("metadata")).get("annotations"))
        for key in _ANNOTATIONS:
            if queue := annotations.get(key):
                yield f"{spec.path_of(name)}.template.metadata.annotations[{key}]", str(queue)
    for document in loaded.beside:
        queue = _map(document.get("spec")).get("queue")
        if document.get("kind") == "PodGroup" and queue:
            title = f"PodGroup {shown(_map(document.get('metadata')).get('name'))}"
            yield f"{title}: spec.queue", str(queue)


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
