"""What the operator counts, in Prometheus' words."""

from __future__ import annotations

from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from regatta.api.job import Job, JobStatus, Phase

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_DELAYS = (0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_BEFORE_RUNNING = (None, Phase.PENDING, Phase.STARTING)


class Metrics:
    """Has its own registry, so that several operators can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._created = self._counter("regatta_jobs_created", "Jobs seen for the first time")
        self._completed = self._counter("regatta_jobs_completed", "Jobs that ended Completed")
        self._failed = self._counter("regatta_jobs_failed", "Jobs that ended Failed")
        self._restarted = self._counter("regatta_jobs_restarted", "Attempts after the first")
        self._requests = Counter(
            "regatta_api_requests",
            "Requests to the API server; code 0 is no answer",
            ("verb", "resource", "code"),
            registry=self.registry,
        )
        self._retries = self._counter("regatta_queue_retries", "Looks at a job that failed")
        self._reconcile = self._histogram("regatta_reconcile_seconds", "One look at a job")
        self._waited = self._histogram("regatta_queue_wait_seconds", "From change to look")
        self._depth = Gauge(
            "regatta_queue_depth", "Jobs waiting to be looked at", registry=self.registry
        )
        self._leads = Gauge("regatta_leader", "1 while this operator leads", registry=self.registry)
        self._first_pod = self._histogram(
            "regatta_first_pod_launch_delay_seconds",
            "From a job's creation until its first pod ran",
            _DELAYS,
        )
        self._all_pods = self._histogram(
            "regatta_all_pods_launch_delay_seconds",
            "From a job's creation until all its pods ran",
            _DELAYS,
        )

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)

    # Requests, as the client's observer

    def called(self, verb: str, resource: str, code: int, seconds: float) -> None:
        kind = "other" if resource.startswith("/") else resource
        self._requests.labels(verb, kind, str(code)).inc()

    # The work queue's observer

    def depth(self, keys: int) -> None:
        self._depth.set(keys)

    def waited(self, seconds: float) -> None:
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        self._reconcile.observe(seconds)

    def retried(self) -> None:
        self._retries.inc()

    def leads(self, now: bool) -> None:
        self._leads.set(float(now))

    # What became of a job, told after its status was written

    def status_written(self, job: Job, after: JobStatus, now: datetime) -> None:
        before = job.status
        if before.phase is None and after.phase is not None:
            self._created.inc()
        if after.attempt > before.attempt:
            self._restarted.inc()
        if before.phase is not after.phase:
            if after.phase is Phase.COMPLETED:
                self._completed.inc()
            elif after.phase is Phase.FAILED:
                self._failed.inc()
        born = job.metadata.creation_timestamp
        if after.attempt or born is None or before.phase not in _BEFORE_RUNNING:
            return
        delay = max((now - born).total_seconds(), 0.0)
        if not _running(before) and _running(after):
            self._first_pod.observe(delay)
        if after.phase is Phase.RUNNING:
            self._all_pods.observe(delay)


def _running(status: JobStatus) -> int:
    return sum(role.running for role in status.roles().values())
