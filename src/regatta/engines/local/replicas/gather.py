"""From a pod's row to the run that plays it: gathers what `process.build_run` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from regatta.api.source.companions import Companions
from regatta.engines.local.on_behalf.looking import NotLooking
from regatta.engines.local.on_behalf.own_folders import own_folder
from regatta.engines.local.replicas import build
from regatta.engines.local.replicas.build import Placement, build_run
from regatta.engines.local.replicas.runspec import RunSpec
from regatta.engines.local.store.queries import Queries
from regatta.engines.local.store.records import Context, PodRecord
from regatta.engines.local.store.secrets_file import NONE, Secrets, known_secrets

decode_companions = msgspec.json.Decoder(Companions).decode


def build_pod_run(read: Queries, pod: PodRecord, folder: Path, job_folder: Path) -> RunSpec:
    record = read.job(pod.job_uid)
    if record is None:
        raise FileNotFoundError(f"the job of {pod.name} is gone")
    environment = read.environment(pod.job_uid, pod.revision)
    context = record.context
    return build_run(
        with_uid(pod.manifest, pod.uid),
        placement=Placement(address=pod.address, port_base=pod.port_base, gpus=pod.gpus),
        environments=dict([environment]) if environment else {},
        context=process_context(
            context, decode_companions(record.companions), known_secrets(job_folder)
        ),
        folder=folder,
        run=pod.run,
        own=own_folder(context.runs, pod.job_uid, pod.uid, pod.run) if context.runs else None,
        # As whom we run says nothing of what the account may see.
        looking=NotLooking() if context.run_as is not None else None,
    )


def with_uid(manifest: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """The pod as an API server would show it: with the uid that only the engine knows."""
    return {**manifest, "metadata": {**(manifest.get("metadata") or {}), "uid": uid}}


def process_context(
    context: Context, companions: Companions, secrets: Secrets = NONE
) -> build.Context:
    return build.Context(
        directory=context.directory,
        shell=context.shell,
        python=context.python,
        volumes=context.volumes,
        runtime=context.runtime,
        companions=companions,
        secrets=secrets,
        run_as=context.run_as,
        folders=context.folders,
        library=context.library,
        images=context.images,
        given=context.given,
    )
