"""What a draft is where its file does not say, for the rules that judge it.

The job itself gets its defaults where every stored one does: in `api.stored`.
"""

from __future__ import annotations

from typing import Any

from regatta.api.checks.schema import MetadataDraft, SpecDraft
from regatta.api.job import Intranet, Metadata, Mode, RestartScope, mode_of_roles

NAMESPACE = "default"


def mode_of(spec: SpecDraft) -> Mode:
    """As written, or else what the roles make it."""
    if spec.mode is not None:
        return spec.mode
    return mode_of_roles(
        tasks=bool(spec.tasks),
        ps=spec.ps is not None,
        heter=spec.heter is not None,
        workers=(spec.worker.replicas if spec.worker else None) or 1,
    )


def gloo_of(spec: SpecDraft) -> int:
    return 1 if spec.with_gloo is None else spec.with_gloo


def intranet_of(spec: SpecDraft) -> Intranet:
    return spec.intranet or Intranet.POD_IP


def scope_of(spec: SpecDraft) -> RestartScope:
    return (spec.run_policy and spec.run_policy.restart_scope) or RestartScope.JOB


def metadata_of(draft: MetadataDraft) -> Metadata:
    return Metadata(
        name=draft.name or "",
        namespace=draft.namespace or NAMESPACE,
        labels=_texts(draft.labels),
        annotations=_texts(draft.annotations),
    )


def _texts(given: dict[str, Any] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (given or {}).items() if value is not None}
