"""A job's secrets in a cluster: Secrets that are there before the job is, and that belong to it.

Their order is what makes them safe: a job without its Secret would wait for it for ever, while a
Secret without its job, which only a crash in between leaves, is taken away by the next submit of
that name, or by a team's server that comes across it. Once the job owns them, the cluster removes
them with it; where somebody records jobs, they go when the job is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from regatta.api.errors import ClusterRefused, NotPossible
from regatta.api.job import Job
from regatta.api.openpai.paddlejob import registry_secret, secret_name
from regatta.api.secrets import MASK, JobSecret
from regatta.controller.labels import JOB, owned_by
from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError
from regatta.engines.kubernetes.api.resources import SECRETS
from regatta.engines.kubernetes.engine.jobs import find_job
from regatta.engines.kubernetes.objects.annotations import SUBMISSION

if TYPE_CHECKING:  # reading job files takes long to import, and only a submit does
    from regatta.api.load import Loaded

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
    """From now on they go with the job. Of one that is over they may have gone already."""
    owner = {"metadata": {"ownerReferences": owned_by(job)}}
    for secret in loaded.secrets:
        try:
            await client.patch(
                SECRETS, secret.name, owner, namespace=job.namespace, kind=PatchKind.MERGE
            )
        except ApiError as gone:
            if not (gone.not_found and job.finished):
                raise


async def take_back(client: KubeClient, loaded: Loaded, made: list[str]) -> None:
    """Of a job that does not come to be, those that were made for it. What cannot be removed goes
    with the next of its name."""
    for secret, uid in zip(loaded.secrets, made, strict=False):
        with suppress(KubeError):
            await client.delete(SECRETS, secret.name, namespace=loaded.job.namespace, uid=uid)


async def drop_of_ended(client: KubeClient, job: Job) -> None:
    """Those of a job that is over: no process of it will start again."""
    key = job.metadata.annotations.get(SUBMISSION, "")

    def is_its(found: dict[str, Any]) -> bool:
        owners = [owner["uid"] for owner in found.get("ownerReferences") or ()]
        return owners == [job.uid] or (not owners and _is_of_submit(found, key))

    await _drop(client, job.namespace, sorted(set(_referred(job))), is_its)


async def drop_of_submit(client: KubeClient, namespace: str, name: str, key: str) -> None:
    """Those that a submit put there which was cut off before it made its job."""

    def is_its(found: dict[str, Any]) -> bool:
        return not found.get("ownerReferences") and _is_of_submit(found, key)

    await _drop(client, namespace, [secret_name(name), registry_secret(name)], is_its)


def shown(loaded: Loaded) -> list[dict[str, Any]]:
    """The Secrets that would be there, without what they hold."""
    return [
        _document(loaded, secret, dict.fromkeys(secret.data, MASK)) for secret in loaded.secrets
    ]


async def _remove_former(client: KubeClient, loaded: Loaded, secret: JobSecret) -> None:
    """One of a job that is gone, or that a crash left without its job."""
    job, name = loaded.job, secret.name
    found = await _look(client, job.namespace, name)
    if found is None:
        return
    if not _is_ours(found):
        raise ClusterRefused(
            f"the job needs a Secret {name}, and namespace {job.namespace} has one of that name "
            "that is somebody else's; give the job another name, or remove that Secret"
        )
    await _refuse_what_is_needed(client, job, found, _key(loaded))
    await _remove(client, job.namespace, found)


async def _drop(
    client: KubeClient,
    namespace: str,
    names: list[str],
    is_its: Callable[[dict[str, Any]], bool],
) -> None:
    for name in names:
        found = await _look(client, namespace, name)
        if found is not None and _is_ours(found) and is_its(found):
            await _remove(client, namespace, found)


async def _look(client: KubeClient, namespace: str, name: str) -> dict[str, Any] | None:
    """At its metadata, by a patch that changes nothing: a team's server may write Secrets, and not
    go and read them."""
    try:
        answer = await client.patch(SECRETS, name, {}, namespace=namespace, kind=PatchKind.MERGE)
    except ApiError as gone:
        if gone.not_found:
            return None
        raise
    found: dict[str, Any] = answer.json()["metadata"]
    return found


async def _remove(client: KubeClient, namespace: str, found: dict[str, Any]) -> None:
    try:
        await client.delete(SECRETS, found["name"], namespace=namespace, uid=found["uid"])
    except ApiError as gone:
        if not (gone.not_found or gone.conflict):
            raise


def _referred(job: Job) -> Iterator[str]:
    """Those of its own that its templates name."""
    own = (secret_name(job.name), registry_secret(job.name))
    for role in job.spec.roles().values():
        pod = role.template.get("spec") or {}
        named = list(pod.get("imagePullSecrets") or ())
        for container in pod.get("containers") or ():
            sources = [one.get("valueFrom") or {} for one in container.get("env") or ()]
            named += [source.get("secretKeyRef") or {} for source in sources]
        yield from (one["name"] for one in named if one.get("name") in own)


def _is_ours(found: dict[str, Any]) -> bool:
    return _OURS.items() <= (found.get("labels") or {}).items()


def _is_of_submit(found: dict[str, Any], key: str) -> bool:
    return bool(key) and (found.get("annotations") or {}).get(SUBMISSION) == key


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
