"""A PaddleJob of the cluster as the job that doors show.

The API server has judged it already, so nothing is validated again: aliases are resolved and
defaults filled in, and one that was stored before there were any rules is still shown.
"""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api.job import Intranet, Job, JobSpec, Mode, mode_of_roles
from regatta.engines.kubernetes.slim import JobDocument
from regatta.engines.kubernetes.stored import job_metadata, read_status

_ROLES = ("ps", "worker", "heter")


class _Parts(msgspec.Struct, frozen=True):
    spec: dict[str, Any] = {}
    status: msgspec.Raw = msgspec.Raw(b"{}")


_parts = msgspec.json.Decoder(_Parts).decode


def read_job(found: JobDocument | bytes) -> Job:
    if isinstance(found, bytes):
        found = JobDocument.from_json(found)
    parts = _parts(found.raw)
    return Job(
        metadata=job_metadata(found),
        spec=_spec(parts.spec),
        status=read_status(parts.status),
    )


def _spec(written: dict[str, Any]) -> JobSpec:
    spec = {key: value for key, value in written.items() if value is not None}
    alias = spec.pop("cleanPolicy", None)
    if alias is not None:
        spec.setdefault("cleanPodPolicy", alias)
    if spec.get("intranet") == "HostNetwork":
        spec["intranet"] = Intranet.HOST.value
    spec.setdefault("mode", _mode(spec).value)
    spec |= {role: _role(spec[role]) for role in _ROLES if role in spec}
    spec["tasks"] = [_role(task) for task in spec.get("tasks") or ()]
    try:
        return msgspec.convert(spec, JobSpec, strict=False)
    except msgspec.ValidationError:
        kept = {key: spec[key] for key in ("mode", *_ROLES) if key in spec}
        try:
            return msgspec.convert(kept, JobSpec, strict=False)
        except msgspec.ValidationError:
            return JobSpec(mode=Mode.SINGLE)


def _role(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    role = {key: value for key, value in written.items() if value is not None}
    return {"replicas": 1, "template": {}, **role}


def _mode(spec: dict[str, Any]) -> Mode:
    worker = spec.get("worker")
    replicas = worker.get("replicas") if isinstance(worker, dict) else 1
    return mode_of_roles(
        tasks=bool(spec.get("tasks")),
        ps="ps" in spec,
        heter="heter" in spec,
        workers=replicas if isinstance(replicas, int) else 1,
    )
