"""The way of a submission into the cluster: read, make room, what stands beside it, the job."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import msgspec

from regatta.api.errors import ClusterRefused, NotPossible
from regatta.api.job import Job
from regatta.api.load import Loaded, load_job
from regatta.api.problems import Problem
from regatta.controller.changes import replaced
from regatta.engines.base import Accepted, Submission
from regatta.engines.kubernetes.api.answers import Answer
from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.errors import ApiError
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS, Resource
from regatta.engines.kubernetes.engine.cluster_advice import advise
from regatta.engines.kubernetes.engine.find import find_job, until_gone
from regatta.engines.kubernetes.engine.reading import read_job
from regatta.engines.kubernetes.engine.refusals import plain_words

#: How long the former holder of a name may take to go.
ROOM_SECONDS = 60.0

_BESIDE = {
    "PodGroup": ("podgroups", True),
    "PersistentVolume": ("persistentvolumes", False),
    "PersistentVolumeClaim": ("persistentvolumeclaims", True),
}
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class ServerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server would store, with nothing stored."""

    objects: tuple[dict[str, Any], ...]
    warnings: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def read_submission(submission: Submission, namespace: str) -> Loaded:
    """As on a machine, with the same problems. `namespace` is for a file that names none."""

    def load(space: str | None) -> Loaded:
        return load_job(
            submission.text,
            source=submission.source,
            strict=submission.strict,
            name=submission.name,
            namespace=space,
            env=submission.env,
            sets=submission.sets,
        )

    loaded = load(submission.namespace)
    own = (loaded.document.get("metadata") or {}).get("namespace")
    loaded = load(namespace) if own is None else loaded
    return dataclasses.replace(loaded, warnings=(*loaded.warnings, *advise(loaded.job)))


async def submit(client: KubeClient, submission: Submission, loaded: Loaded) -> Accepted:
    job, document = loaded.job, loaded.document
    old = await find_job(client, job.namespace, job.name)
    if old is not None:
        replaced(old, even_live=submission.replace)  # refused here as anywhere
        await _rehearse(client, submission, loaded)  # the old one goes only for one that may come
        await _remove(client, old)
    for beside in loaded.beside:
        await _apply(client, beside)
    answer = await client.create(
        PADDLE_JOBS, document, namespace=job.namespace, strict=submission.strict
    )
    return Accepted(
        job=read_job(answer.raw),
        warnings=(*loaded.warnings, *_warnings(answer)),
        replaced=old.uid if old is not None else "",
    )


async def ask_server(client: KubeClient, submission: Submission, loaded: Loaded) -> ServerAnswer:
    """`--dry-run=server`: the API server's defaults, rules and admission, and nothing stored."""
    job = loaded.job
    old = await find_job(client, job.namespace, job.name)
    notes = []
    if old is not None:
        replaced(old, even_live=submission.replace)  # refused here as anywhere
        notes.append(f"the job {old.name} that is there would be deleted first")
    answers = [await _apply(client, beside, dry_run=True) for beside in loaded.beside]
    answer = await _rehearse(client, submission, loaded)
    if answer is None:
        notes.append("the API server accepts the job; it is shown as it would be sent")
    objects = [answered.json() for answered in answers]
    objects.append(loaded.document if answer is None else answer.json())
    for shown in objects:
        (shown.get("metadata") or {}).pop("managedFields", None)
    warnings = () if answer is None else _warnings(answer)
    return ServerAnswer(
        objects=tuple(objects), warnings=(*loaded.warnings, *warnings), notes=tuple(notes)
    )


async def _rehearse(client: KubeClient, submission: Submission, loaded: Loaded) -> Answer | None:
    """None where only the name is taken: it is looked at after everything else was judged."""
    try:
        return await client.create(
            PADDLE_JOBS,
            loaded.document,
            namespace=loaded.job.namespace,
            strict=submission.strict,
            dry_run=True,
        )
    except ApiError as refused:
        if refused.already_exists:
            return None
        raise


async def _remove(client: KubeClient, old: Job) -> None:
    try:
        await client.delete(
            PADDLE_JOBS, old.name, namespace=old.namespace, uid=old.uid, propagation="Background"
        )
    except ApiError as refused:
        if not refused.not_found:
            raise
    if not await until_gone(client, old, ROOM_SECONDS):
        raise NotPossible(
            f"the job {old.name} that is there was deleted and is still not gone after "
            f"{ROOM_SECONDS:.0f} s; `kubectl get pdj {old.name} -n {old.namespace} -o yaml` shows "
            "the finalizers that hold it"
        )


async def _apply(client: KubeClient, document: dict[str, Any], *, dry_run: bool = False) -> Answer:
    kind, version = document["kind"], str(document.get("apiVersion", ""))
    plural, namespaced = _BESIDE[kind]
    group, _, number = version.rpartition("/")
    resource = Resource(group, number, plural, kind, namespaced)
    metadata = document["metadata"]
    try:
        return await client.patch(
            resource,
            metadata["name"],
            document,
            namespace=metadata.get("namespace", ""),
            kind=PatchKind.APPLY,
            dry_run=dry_run,
        )
    except ApiError as refused:
        what = f"{kind} {metadata['name']}"
        if refused.not_found and not refused.details.kind:
            raise ClusterRefused(
                f"the cluster has no {kind} of {version or 'that version'}, which the file brings "
                "along; install what serves it (Volcano for PodGroups), or leave it out"
            ) from refused
        if refused.conflict:
            raise ClusterRefused(
                f"the {what} of the file differs from the one in the cluster, which somebody else "
                f"manages: {plain_words(refused)}. Make them the same, or leave it out of the file."
            ) from refused
        raise


def _warnings(answer: Answer) -> tuple[Problem, ...]:
    texts = _WARNING.findall(answer.warning)
    return tuple(Problem("", text.replace('\\"', '"'), "warning") for text in texts)
