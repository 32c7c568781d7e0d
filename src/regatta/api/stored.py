"""A spec that is right, or was once: aliases resolved, defaults filled in, nothing judged.

This is the one place that knows what a spec is when it does not say. `api.load` ends here once it
has found nothing wrong with a file; engines begin here with what their store holds, which costs a
tenth of a judgement. Nothing but msgspec is imported, because they do it at every start.
"""

from __future__ import annotations

from typing import Any

import msgspec

from regatta.api import quantity
from regatta.api.job import Intranet, JobSpec, Mode, RunPolicy, mode_of_roles

_ROLES = ("ps", "worker", "heter")


def read_spec(written: dict[str, Any]) -> JobSpec:
    """The spec of a document. Raises msgspec's ValidationError where a value has no meaning."""
    return msgspec.convert(_complete(written), JobSpec, strict=False)


def read_what_fits(written: dict[str, Any]) -> JobSpec:
    """The spec of a document that nobody has judged: a field without meaning is as if unsaid.

    To be shown, not to be run.
    """
    try:
        return read_spec(written)
    except msgspec.ValidationError:
        pass
    spec = _complete(written)
    mode = _mode(spec)  # of its roles, should the one it names be none
    fitting = {key: value for key, value in spec.items() if _fits(mode, key, value)}
    return msgspec.convert({"mode": mode, **fitting}, JobSpec, strict=False)


def read_run_policy(written: dict[str, Any]) -> RunPolicy | None:
    """By itself, because what people ask of a job counts however wrong the rest is.

    None where it has no meaning.
    """
    try:
        policy = without_nulls(written.get("runPolicy")) or {}
        return msgspec.convert(policy, RunPolicy, strict=False)
    except msgspec.ValidationError:
        return None


#: Where null is said on purpose: a map's key, and the field in it.
_NULL_MEANS_SOMETHING = ("completion", "minFailed")


def without_nulls(value: Any, holder: str = "") -> Any:
    """A key without a value is as good as absent, as it is for an API server."""
    if isinstance(value, dict):
        return {
            key: without_nulls(item, key)
            for key, item in value.items()
            if item is not None or (holder, key) == _NULL_MEANS_SOMETHING
        }
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value]
    return value


def _complete(written: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = without_nulls(written)
    alias = spec.pop("cleanPolicy", None)
    if alias is not None:
        spec.setdefault("cleanPodPolicy", alias)
    if spec.get("intranet") == "HostNetwork":
        spec["intranet"] = Intranet.HOST.value
    spec.setdefault("mode", _mode(spec).value)
    spec |= {role: _role(spec[role]) for role in _ROLES if role in spec}
    if isinstance(spec.get("tasks"), list):
        spec["tasks"] = [_role(task) for task in spec["tasks"] if task is not None]
    if isinstance(policy := spec.get("schedulingPolicy"), dict):
        spec["schedulingPolicy"] = _scheduling(policy)
    return spec


def _mode(spec: dict[str, Any]) -> Mode:
    worker = spec.get("worker")
    replicas = worker.get("replicas") if isinstance(worker, dict) else 1
    return mode_of_roles(
        tasks=bool(spec.get("tasks")),
        ps="ps" in spec,
        heter="heter" in spec,
        workers=replicas if isinstance(replicas, int) else 1,
    )


def _role(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    role = {"replicas": 1, "template": {}, **written}
    if isinstance(role.get("ports"), list):
        role["ports"] = [port for port in role["ports"] if port is not None]
    return role


def _scheduling(written: dict[str, Any]) -> dict[str, Any]:
    """Quantities may be numbers, as people write them."""
    amounts = written.get("minResources")
    if not isinstance(amounts, dict):
        return written
    texts = {name: quantity.written(amount) for name, amount in amounts.items()}
    return {**written, "minResources": texts}


def _fits(mode: Mode, key: str, value: Any) -> bool:
    try:
        msgspec.convert({"mode": mode, key: value}, JobSpec, strict=False)
    except msgspec.ValidationError:
        return False
    return True
