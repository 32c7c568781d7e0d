"""The way of a submission into the cluster: read, make room, what stands beside it, the job."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from regatta.api.errors import ClusterRefused, InvalidJob, NotPossible, RegattaError
from regatta.api.job import Job
from regatta.api.load import Loaded
from regatta.api.problems import Problem
from regatta.controller.changes import replaced
from regatta.engines.base import Accepted, Preview, Submission
from regatta.engines.kubernetes.api.answers import Answer
from regatta.engines.kubernetes.api.client import KubeClient, PatchKind
from regatta.engines.kubernetes.api.kube_errors import ApiError, KubeError, Unreachable
from regatta.engines.kubernetes.api.refusal_words import plain_words
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS, Resource
from regatta.engines.kubernetes.engine.cluster_advice import advise, refuse_what_has_no_image
from regatta.engines.kubernetes.engine.job_secrets import (
    hand_over,
    put_secrets,
    shown,
    take_back,
)
from regatta.engines.kubernetes.engine.jobs import find_job, read_job, until_gone
from regatta.engines.kubernetes.engine.members.member_rules import refuse_for_members
from regatta.engines.kubernetes.objects.annotations import REPLACED, SUBMISSION
from regatta.engines.submission import read_submission

#: How long the former holder of a name may take to go.
ROOM_SECONDS = 60.0
#: Of many who replace each other at once, each has its turn.
REPLACING_TRIES = 20
#: Keys of replaced jobs that are remembered.
MOST_KEYS = 20

_BESIDE = {
    "PodGroup": ("podgroups", True),
    "PersistentVolume": ("persistentvolumes", False),
    "PersistentVolumeClaim": ("persistentvolumeclaims", True),
}
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def read(submission: Submission, namespace: str, *, members_only: bool = False) -> Loaded:
    """As on a machine, with the same problems, what a cluster wants, and what means less there.
    `namespace` is for a file that names none. Raises InvalidJob."""
    loaded = read_submission(submission, home_namespace=namespace)
    refuse_what_has_no_image(loaded)
    if members_only and (problems := refuse_for_members(loaded)):
        raise InvalidJob([*problems, *loaded.warnings])
    document = _with_key(loaded.document, submission.key)
    warnings = (*loaded.warnings, *advise(loaded.job))
    return dataclasses.replace(loaded, warnings=warnings, document=document)


async def submit(client: KubeClient, submission: Submission, loaded: Loaded) -> Accepted:
    """1. A job that this same submission made already is the answer.
    2. A job of the same name makes room, if it may.
    3. What stands beside the job is applied, with its secrets, then the job is created.
    """
    for tries_left in reversed(range(REPLACING_TRIES)):
        old = await find_job(client, loaded.job.namespace, loaded.job.name)
        if old is not None:
            if _is_of(submission, old):
                await hand_over(client, old, loaded)  # which the first time perhaps came not to
                return Accepted(job=old, warnings=loaded.warnings)
            _refuse_when_replaced(submission, old)
            await _make_room(client, submission, loaded, old)
        for beside in loaded.beside:
            await _apply(client, beside)
        made: list[str] = []
        try:
            await put_secrets(client, loaded, made)
            job, warnings = await _create(client, submission, _remembering(loaded, old))
        except (ApiError, RegattaError) as refused:
            await take_back(client, loaded, made)
            # Somebody else's took the place that was made: it gives way too, if that was asked for.
            taken = isinstance(refused, ApiError) and refused.already_exists
            if not (taken and submission.replace and tries_left):
                raise
            continue
        await hand_over(client, job, loaded)
        return Accepted(
            job=job,
            warnings=(*loaded.warnings, *warnings),
            replaced=old.uid if old is not None else "",
        )
    raise AssertionError("the last try answers or raises")


async def ask_server(client: KubeClient, submission: Submission, loaded: Loaded) -> Preview:
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
    objects = [*(answered.json() for answered in answers), *shown(loaded)]
    objects.append(loaded.document if answer is None else answer.json())
    for each in objects:
        (each.get("metadata") or {}).pop("managedFields", None)
    warnings = () if answer is None else _warnings(answer)
    return Preview(
        job=job,
        objects=tuple(objects),
        warnings=(*loaded.warnings, *warnings),
        notes=tuple(notes),
    )


def _with_key(document: dict[str, Any], key: str) -> dict[str, Any]:
    """A file that was copied from a job has that one's key, which is not ours."""
    metadata = document.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), SUBMISSION: key}
    annotations.pop(REPLACED, None)
    if not key:
        del annotations[SUBMISSION]
    changed = {**metadata, "annotations": annotations}
    if not annotations:
        del changed["annotations"]
    return {**document, "metadata": changed}


def _remembering(loaded: Loaded, old: Job | None) -> Loaded:
    """The job to create, which knows the keys of those that made room for it."""
    if old is None:
        return loaded
    known = old.metadata.annotations
    keys = [known.get(SUBMISSION, ""), *known.get(REPLACED, "").split(",")]
    kept = [key for key in keys if key and "," not in key][:MOST_KEYS]
    if not kept:
        return loaded
    metadata = loaded.document.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), REPLACED: ",".join(kept)}
    document = {**loaded.document, "metadata": {**metadata, "annotations": annotations}}
    return dataclasses.replace(loaded, document=document)


def _refuse_when_replaced(submission: Submission, job: Job) -> None:
    if submission.key and submission.key in job.metadata.annotations.get(REPLACED, "").split(","):
        raise NotPossible(
            f"this submission arrived before, as a job {job.name} that was replaced since; to run "
            "it once more, submit it anew"
        )


def _is_of(submission: Submission, job: Job) -> bool:
    return bool(submission.key) and job.metadata.annotations.get(SUBMISSION) == submission.key


async def _create(
    client: KubeClient, submission: Submission, loaded: Loaded
) -> tuple[Job, tuple[Problem, ...]]:
    namespace = loaded.job.namespace
    try:
        answer = await client.create(
            PADDLE_JOBS, loaded.document, namespace=namespace, strict=submission.strict
        )
    except (ApiError, Unreachable) as trouble:
        # It may be there all the same: the answer was lost, or another was quicker.
        if isinstance(trouble, ApiError) and not (trouble.already_exists or trouble.status >= 500):
            raise
        found = await _look_again(client, loaded, trouble)
        if found is not None and _is_of(submission, found):
            return found, ()
        if found is not None and isinstance(trouble, ApiError) and trouble.already_exists:
            replaced(found, even_live=submission.replace)
        raise
    return read_job(answer.raw), _warnings(answer)


async def _look_again(client: KubeClient, loaded: Loaded, trouble: KubeError) -> Job | None:
    try:
        return await find_job(client, loaded.job.namespace, loaded.job.name)
    except KubeError:
        raise trouble from None  # what went wrong first says more


async def _make_room(client: KubeClient, submission: Submission, loaded: Loaded, old: Job) -> None:
    replaced(old, even_live=submission.replace)  # refused here as anywhere
    await _rehearse(client, submission, loaded)  # the old one goes only for one that may come
    await _remove(client, old)


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
        if not (refused.not_found or refused.conflict):  # gone, or another has its name
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
