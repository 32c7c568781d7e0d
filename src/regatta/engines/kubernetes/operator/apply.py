"""Carries a plan out, in the order that survives a crash anywhere in between.

Status first, under the version that the plan was made from: if that is outdated nothing else is
done. Then what ends, then what is created, then the waiting pods are told, and events come last.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from regatta.api.job import API_VERSION, KIND, Job, JobStatus
from regatta.controller import labels
from regatta.controller.memory import only_shows
from regatta.controller.plan import ChildRef, Event, Instant, Plan, Regroup
from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.kube_errors import ApiError
from regatta.engines.kubernetes.api.resources import PADDLE_JOBS
from regatta.engines.kubernetes.cache.informer import Informer
from regatta.engines.kubernetes.objects.annotations import RELEASED, STOPPED
from regatta.engines.kubernetes.objects.job_document import JobDocument
from regatta.engines.kubernetes.operator.caches import Caches
from regatta.engines.kubernetes.operator.create import Creator, Outcome, Wanted
from regatta.engines.kubernetes.operator.event_recorder import EventRecorder, Involved
from regatta.engines.kubernetes.operator.job_memory import JobMemory, Note
from regatta.engines.kubernetes.operator.job_reader import status_document
from regatta.engines.kubernetes.operator.metrics import Metrics
from regatta.engines.kubernetes.operator.peers import with_waiting
from regatta.engines.kubernetes.operator.urgency import Pace


class Applier:
    def __init__(
        self,
        client: KubeClient,
        caches: Caches,
        events: EventRecorder,
        metrics: Metrics,
        *,
        clock: Callable[[], float],
        init_image: str = "",
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._init_image = init_image
        self._creator = Creator(client, clock)
        self._pace = Pace()

    async def apply(
        self,
        document: JobDocument,
        job: Job,
        stored: JobStatus,
        plan: Plan,
        memory: JobMemory,
        now: Instant,
        *,
        told: bool,
    ) -> float | None:
        """Seconds after which to look again, if not only when something changes.

        `told`: the present revision's environment exists, so that addresses are known to peers.
        """
        wanted = self._wanted(job, plan)
        pause = memory.refusals.pause(self._clock())
        if not wanted:
            memory.refusals.accepted()
        status = _with_note(plan.status or job.status, memory.refusals.note)
        waits = None
        if status != stored:
            waits = self._can_wait(stored, status, plan, memory, told)
            if waits is None:
                await self._write_status(document, job, status, memory, now.wall)
        await self._end(job, plan, memory, now.wall)
        outcome = Outcome()
        if wanted and pause is None:
            outcome = await self._creator.create_all(job, memory, wanted)
        await self._tell(job, plan, memory)
        self._announce(document, plan, outcome if wanted else None, written=waits is None)
        if plan.delete_job:
            await self._delete_job(job)
        again = [plan.look_again, waits, pause if wanted else None]
        if wanted and pause is None:
            again.append(self._learn(document, memory, outcome))
        return min((seconds for seconds in again if seconds is not None), default=None)

    # Status

    def _can_wait(
        self, stored: JobStatus, status: JobStatus, plan: Plan, memory: JobMemory, told: bool
    ) -> float | None:
        """Seconds for which this status need not be written."""
        if not only_shows(stored, status, plan, told=told):
            return None
        phase_changed = stored.phase is not None and stored.phase is not status.phase
        return self._pace.wait(
            memory.status_written_at,
            self._clock(),
            busy=self._creator.busy,
            eager=phase_changed,
        )

    async def _write_status(
        self,
        document: JobDocument,
        job: Job,
        status: JobStatus,
        memory: JobMemory,
        now: datetime,
    ) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": job.name,
                "namespace": job.namespace,
                "uid": job.uid,
                "resourceVersion": document.metadata.resource_version,
            },
            "status": status_document(job, status),
        }
        answer = await self._client.replace(
            PADDLE_JOBS, job.name, body, namespace=job.namespace, subresource="status"
        )
        memory.status_written_at = self._clock()
        version = answer.identity.resource_version
        memory.expectations.wrote(self._caches.jobs, version, self._clock())  # type: ignore[arg-type]
        self._metrics.status_written(job, status, now)

    # What ends

    async def _end(self, job: Job, plan: Plan, memory: JobMemory, now: datetime) -> None:
        stops = [self._stop(job, ref, memory, now) for ref in plan.stop]
        deletes = [self._delete(job, ref, memory) for ref in plan.delete]
        await self._creator.in_turn([*stops, *deletes])

    async def _stop(self, job: Job, ref: ChildRef, memory: JobMemory, now: datetime) -> None:
        """The kubelet ends it, with its grace period, and keeps the pod and its log."""
        stamp = now.isoformat(timespec="seconds")
        change = {
            "metadata": {"annotations": {STOPPED: stamp}},
            "spec": {"activeDeadlineSeconds": 1},
        }
        await self._patch(job, self._caches.pods, ref.name, ref.uid, change, memory)

    async def _delete(self, job: Job, ref: ChildRef, memory: JobMemory) -> None:
        informer = self._informer(job, ref)
        if informer is None:
            return
        key = f"{job.namespace}/{ref.name}"
        held = informer.store.get(key)
        uid = ref.uid or (held.metadata.uid if held is not None else "")
        if not uid:
            return
        try:
            await self._client.delete(
                informer.resource,
                ref.name,
                namespace=job.namespace,
                uid=uid,
                grace_seconds=0 if ref.force else None,
                propagation="Background",
            )
        except ApiError as refused:
            # Gone already, or its name is another's by now: both are what we wanted.
            if not (refused.not_found or refused.conflict):
                raise
        if not ref.force:
            memory.expectations.deleted(informer, key, uid, self._clock())

    def _informer(self, job: Job, ref: ChildRef) -> Informer[Any] | None:
        if ref.kind == "PodGroup":
            for informer in self._caches.groups.values():
                group = informer.store.get(f"{job.namespace}/{ref.name}")
                if group is not None and group.metadata.uid == ref.uid:
                    return informer
            return None
        caches: dict[str, Informer[Any]] = {
            "Pod": self._caches.pods,
            "Service": self._caches.services,
            "ConfigMap": self._caches.environments,
        }
        return caches[ref.kind]

    async def _delete_job(self, job: Job) -> None:
        try:
            await self._client.delete(
                PADDLE_JOBS,
                job.name,
                namespace=job.namespace,
                uid=job.uid,
                propagation="Background",
            )
        except ApiError as refused:
            if not (refused.not_found or refused.conflict):
                raise

    # What is created

    def _wanted(self, job: Job, plan: Plan) -> list[Wanted]:
        groups = self._caches.groups
        return [
            *(Wanted(groups[new.scheduler], new.name, new.manifest) for new in plan.pod_groups),
            *(Wanted(self._caches.environments, e.name, e.manifest) for e in plan.environments),
            *(Wanted(self._caches.services, new.name, new.manifest) for new in plan.services),
            *(
                Wanted(self._caches.pods, new.name, with_waiting(job, new, self._init_image))
                for new in plan.pods
            ),
        ]

    def _learn(self, document: JobDocument, memory: JobMemory, outcome: Outcome) -> float | None:
        """Back off from a refusal, and look again at once so that the job says so."""
        if outcome.note is None:
            told = memory.refusals.note is not None
            memory.refusals.accepted()
            return 0.0 if told else (1.0 if outcome.wait else None)
        event = memory.refusals.refused(outcome.note, self._clock())
        if event is not None:
            self._events.record(_involved(document), event)
        return 0.0

    # Who is told

    async def _tell(self, job: Job, plan: Plan, memory: JobMemory) -> None:
        touches = [self._touch(job, name, memory) for name in plan.touch]
        regroups = [self._regroup(job, regroup, memory) for regroup in plan.regroup]
        await self._creator.in_turn([*touches, *regroups])

    async def _touch(self, job: Job, name: str, memory: JobMemory) -> None:
        pod = self._caches.pods.store.get(f"{job.namespace}/{name}")
        if pod is None:
            return
        revision = pod.metadata.labels.get(labels.REVISION, "")
        change = {"metadata": {"annotations": {RELEASED: revision}}}
        await self._patch(job, self._caches.pods, name, pod.metadata.uid, change, memory)

    async def _regroup(self, job: Job, regroup: Regroup, memory: JobMemory) -> None:
        group = ChildRef(kind="PodGroup", name=regroup.name, uid=regroup.uid)
        informer = self._informer(job, group)
        if informer is not None:
            change = {"spec": regroup.spec}
            await self._patch(job, informer, regroup.name, regroup.uid, change, memory)

    async def _patch(
        self,
        job: Job,
        informer: Informer[Any],
        name: str,
        uid: str,
        change: dict[str, Any],
        memory: JobMemory,
    ) -> None:
        """Only that very object: a successor under its name is none of our business."""
        try:
            answer = await self._client.patch(
                informer.resource, name, change, namespace=job.namespace, uid=uid
            )
        except ApiError as refused:
            if not (refused.not_found or refused.conflict):
                raise
        else:
            version = answer.identity.resource_version
            memory.expectations.wrote(informer, version, self._clock())

    def _announce(
        self, document: JobDocument, plan: Plan, outcome: Outcome | None, *, written: bool
    ) -> None:
        """What is not on record yet will be told when it is: the brain says it again."""
        for event in plan.events:
            if not written and event.reason != "Created":
                continue
            if event.reason == "Created" and outcome is not None:
                if not outcome.created:
                    continue
                if outcome.note is not None:
                    event = _in_part(event, len(plan.pods))
            self._events.record(_involved(document), event)


def _with_note(status: JobStatus, note: Note | None) -> JobStatus:
    """What the cluster refuses, where the brain itself has nothing to say."""
    final = status.phase is not None and status.phase.final
    if note is None or final or status.reason:
        return status
    return replace(status, reason=note.reason, message=note.message)


def _in_part(event: Event, asked: int) -> Event:
    return replace(event, message=f"created only some of {asked} pods; the others were refused")


def _involved(document: JobDocument) -> Involved:
    known = document.metadata
    return Involved(known.namespace, known.name, known.uid, known.resource_version)
