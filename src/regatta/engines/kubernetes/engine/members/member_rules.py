"""What a job of a team's member may not ask of a cluster, told at submit and by field.

A member has no rights in the cluster: the server creates the job with its own, and the operator the
pods with its own. What a pod could make of that, and of its node, is what Pod Security calls
`baseline`; the API server holds it where pods are created (`member_namespaces`), which a person
would learn of minutes later and without the field. Beyond `baseline` a job may ask for no token of
a ServiceAccount, and for nothing outside of its own namespace. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from regatta.api.checks.suggestions import listed, shown
from regatta.api.job import Intranet
from regatta.api.load import Loaded
from regatta.api.problems import Problem
from regatta.api.source.paths import join
from regatta.engines.kubernetes.engine.members.pod_security import beyond_baseline

#: By kind of what may stand beside a job: the groups that it may be of.
_GROUPS = {
    "PersistentVolumeClaim": ("",),
    "PodGroup": ("scheduling.volcano.sh", "scheduling.k8s.io"),
}
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
#: Sources of a projected volume that say to the API server who the pod is.
_IDENTITIES = ("serviceAccountToken", "podCertificate")
DEFAULT_ACCOUNT = "default"


def refuse_for_members(loaded: Loaded) -> list[Problem]:
    """Every problem, at the place in the file that its author knows."""
    return loaded.with_lines([*_of_templates(loaded), *_of_the_job(loaded), *_beside(loaded)])


def _of_templates(loaded: Loaded) -> Iterator[Problem]:
    spec = loaded.job.spec
    for name, role in spec.roles().items():
        template, place = role.template, f"{spec.path_of(name)}.template"
        yield from beyond_baseline(template, place)
        yield from _identities(_map(template.get("spec")), f"{place}.spec")
        yield from _elsewhere(_map(template.get("metadata")), f"{place}.metadata", loaded)


def _of_the_job(loaded: Loaded) -> Iterator[Problem]:
    if loaded.job.spec.intranet is Intranet.HOST:
        yield Problem(
            "spec.intranet",
            "found Host: a team's jobs have no network of a node; write PodIP or Service",
        )


def _identities(pod: dict[str, Any], path: str) -> Iterator[Problem]:
    if pod.get("automountServiceAccountToken") is True:
        yield Problem(
            join(path, "automountServiceAccountToken"),
            "found true: a team's jobs get no token of the cluster; leave it out",
        )
    for field in ("serviceAccountName", "serviceAccount"):
        if (account := pod.get(field)) and account != DEFAULT_ACCOUNT:
            yield Problem(
                join(path, field),
                f"found {shown(account)}: a team's jobs run as {DEFAULT_ACCOUNT}; leave it out",
            )
    for number, volume in enumerate(_maps(pod.get("volumes"))):
        sources = _maps(_map(volume.get("projected")).get("sources"))
        for at, source in enumerate(sources):
            for identity in _IDENTITIES:
                if identity in source:
                    yield Problem(
                        f"{join(path, 'volumes')}[{number}].projected.sources[{at}].{identity}",
                        "a team's jobs get no token of the cluster; leave it out",
                    )


def _beside(loaded: Loaded) -> Iterator[Problem]:
    for document in loaded.beside:
        kind = str(document.get("kind"))
        metadata = _map(document.get("metadata"))
        title = f"{kind} {shown(metadata.get('name'))}"
        if kind not in _GROUPS:
            yield Problem(
                title,
                f"a {kind} is the whole cluster's; its administrator makes it, and a team's jobs "
                "bring only a PersistentVolumeClaim or a PodGroup",
            )
            continue
        group, _, version = str(document.get("apiVersion", "")).rpartition("/")
        if group not in _GROUPS[kind] or not _VERSION.fullmatch(version):
            right = listed(f"{known}/v1".removeprefix("/") for known in _GROUPS[kind])
            yield Problem(
                f"{title}: apiVersion", f"found {shown(document.get('apiVersion'))}; write {right}"
            )
        yield from _elsewhere(metadata, f"{title}: metadata", loaded)


def _elsewhere(metadata: dict[str, Any], path: str, loaded: Loaded) -> Iterator[Problem]:
    namespace, own = metadata.get("namespace"), loaded.job.namespace
    if namespace not in (None, "", own):
        yield Problem(
            join(path, "namespace"),
            f"found {shown(namespace)}: what a job brings along is in its own namespace, {own}; "
            "leave it out",
        )


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _maps(value: object) -> list[dict[str, Any]]:
    return [_map(item) for item in value] if isinstance(value, list) else []
