"""A job's secrets in a cluster: Secrets that are there before the job is, and that belong to it.

Their order is what makes them safe: a job without its Secret would wait for it for ever, while a
Secret without its job, which only a crash in between leaves, is taken away by the next submit of
that name. Once the job owns them, the cluster removes them with it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from regatta.api.errors import ClusterRefused, NotPossible
from regatta.api.job import Job
from regatta.api.load import Loaded
from regatta.api.secrets import MASK, JobSecret
from regatta.controller.labels import JOB, owned_by
from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError
from regatta.engines.kubernetes.api.resources import SECRETS
from regatta.engines.kubernetes.engine.jobs import find_job
from regatta.engines.kubernetes.objects.annotations import SUBMISSION

#: A submit takes no longer than this from its Secret to its job.
UNDER_WAY = timedelta(seconds=60)
_OURS = {"app.kubernetes.io/managed-by": "regatta"}


async def put_secrets(client: KubeClient, loaded: Loaded, made: list[str]) -> None:
    """`made` gets the uid of each. Raises ClusterRefused where somebody else has one of their
    names."""
    for secret in loaded.secrets:
        document = _document(loaded, secret, secret.data)
        try:
            answer = await client.create(SECRETS, document, namespace=loaded.job.namespace)
        except ApiError as refused:
            if not refused.already_exists:
                raise
            await _remove_former(client, loaded, secret)
            answer = await client.create(SECRETS, document, namespace=loaded.job.namespace)
        made.append(answer.json()["metadata"]["uid"])


async def hand_over(client: KubeClient, job: Job, loaded: Loaded) -> None:
    """From now on they go with the job."""
    for secret in loaded.secrets:
        owner = {"metadata": {"ownerReferences": owned_by(job)}}
        await client.patch(
            SECRETS, secret.name, owner, namespace=job.namespace, kind=PatchKind.MERGE
        )


async def take_back(client: KubeClient, loaded: Loaded, made: list[str]) -> None:
    """Of a job that does not come to be, those that were made for it. What cannot be removed goes
    with the next of its name."""
    for secret, uid in zip(loaded.secrets, made, strict=False):
        with suppress(KubeError):
            await client.delete(SECRETS, secret.name, namespace=loaded.job.namespace, uid=uid)


def shown(loaded: Loaded) -> list[dict[str, Any]]:
    """The Secrets that would be there, without what they hold."""
    return [
        _document(loaded, secret, dict.fromkeys(secret.data, MASK)) for secret in loaded.secrets
    ]


async def _remove_former(client: KubeClient, loaded: Loaded, secret: JobSecret) -> None:
    """One of a job that is gone, or that a crash left without its job."""
    job, name = loaded.job, secret.name
    try:
        # A patch that changes nothing: a team's server may write Secrets, and not go and read them.
        answer = await client.patch(
            SECRETS, name, {}, namespace=job.namespace, kind=PatchKind.MERGE
        )
    except ApiError as gone:
        if gone.not_found:
            return
        raise
    found = answer.json()["metadata"]
    if not _OURS.items() <= (found.get("labels") or {}).items():
        raise ClusterRefused(
            f"the job needs a Secret {name}, and namespace {job.namespace} has one of that name "
            "that is somebody else's; give the job another name, or remove that Secret"
        )
    await _refuse_what_is_needed(client, job, found, _key(loaded))
    try:
        await client.delete(SECRETS, name, namespace=job.namespace, uid=found["uid"])
    except ApiError as gone:
        if not (gone.not_found or gone.conflict):
            raise


async def _refuse_what_is_needed(
    client: KubeClient, job: Job, found: dict[str, Any], key: str
) -> None:
    """Raises NotPossible where it is, or is about to be, another job's."""
    owners = found.get("ownerReferences") or ()
    for owner in owners:
        holder = await find_job(client, job.namespace, owner["name"])
        if holder is not None and holder.uid == owner["uid"]:
            raise NotPossible(
                f"the job {holder.name} has a Secret of the same name, {found['name']}; give this "
                "one another name"
            )
    theirs = (found.get("annotations") or {}).get(SUBMISSION, "")
    age = datetime.now(UTC) - datetime.fromisoformat(found["creationTimestamp"])
    if not owners and (not key or theirs != key) and age < UNDER_WAY:
        raise NotPossible(
            f"another submit of a job {job.name} is under way; look for it with `regatta get`, or "
            "try again in a minute"
        )


def _key(loaded: Loaded) -> str:
    annotations = (loaded.document.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(SUBMISSION, ""))


def _document(loaded: Loaded, secret: JobSecret, data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret.name,
            "namespace": loaded.job.namespace,
            "labels": {**_OURS, JOB: loaded.job.name},
            "annotations": {SUBMISSION: _key(loaded)},
        },
        "type": secret.type,
        "immutable": True,
        "stringData": data,
    }
