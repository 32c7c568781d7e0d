"""Sorts the documents of a file: the one PaddleJob, its companions, and what is left aside.

Only what a local job can use of a companion is read. Everything else about it is the API server's
business, on a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from regatta.api.checks.suggestions import closest, listed, shown, shown_key
from regatta.api.errors import InvalidJob
from regatta.api.job import API_VERSION, GROUP, KIND
from regatta.api.problems import Problem
from regatta.api.source.companions import (
    Companions,
    PersistentVolume,
    PersistentVolumeClaim,
    PodGroup,
)
from regatta.api.source.paths import join
from regatta.api.source.yaml import Document

_PAST_FORMS = ("TrainingJob", "PaddleJobList")
_STARTS = "a job file starts with apiVersion:, kind:, metadata: and spec:"
_BESIDE = ("PodGroup", "PersistentVolume", "PersistentVolumeClaim")


@dataclass(slots=True)
class Sorted:
    job: Document
    companions: Companions
    problems: list[Problem] = field(default_factory=list)
    #: The documents that the companions were read from.
    beside: list[dict[str, Any]] = field(default_factory=list)


def sort(documents: list[Document], source: str) -> Sorted:
    """Raises InvalidJob unless exactly one document is a PaddleJob, or wants to be one."""
    everything = [item for document in documents for item in _flat(document)]
    if not everything:
        raise InvalidJob([Problem("", f"{_named(source)} is empty; {_STARTS}")])
    if odd := [document for document in everything if not isinstance(document.value, dict)]:
        raise InvalidJob([_about_odd(document) for document in odd])
    jobs = [document for document in everything if _is_job(document.value)]
    if len(everything) == 1 and not jobs and not _is_foreign(everything[0].value):
        jobs = everything  # no kind, or a misspelt one: its own problems will say so
    if not jobs:
        kinds = listed(dict.fromkeys(shown(document.value.get("kind")) for document in everything))
        raise InvalidJob(
            [
                Problem(
                    "",
                    f"there is no {KIND} in {_named(source)}; found {kinds}{_hint(everything)}",
                )
            ]
        )
    if len(jobs) > 1:
        named = listed(f"{_name(job.value)} (line {job.line})" for job in jobs)
        raise InvalidJob(
            [
                Problem(
                    "",
                    f"{_named(source)} has {len(jobs)} PaddleJobs: {named}; one file holds one "
                    "job: put each into a file of its own",
                )
            ]
        )
    others = [document for document in everything if document is not jobs[0]]
    companions, problems = _read_companions(others)
    beside = [document.value for document in others if document.value.get("kind") in _BESIDE]
    return Sorted(jobs[0], companions, problems, beside)


def check_identity(document: dict[str, Any]) -> list[Problem]:
    """apiVersion and kind, with an explanation where they are another system's."""
    version, kind = document.get("apiVersion"), document.get("kind")
    problems = []
    if version != API_VERSION:
        problems.append(Problem("apiVersion", _about_version(version)))
    if kind != KIND:
        found = "missing" if kind is None else f"found {shown(kind)}"
        problems.append(Problem("kind", f"{found}; write {KIND}"))
    return problems


def _about_version(version: object) -> str:
    if isinstance(version, str) and version.startswith("kubeflow.org/"):
        return (
            f"found {shown(version)}: Kubeflow's PaddleJob is another resource, with "
            "paddleReplicaSpecs in place of ps and worker; rewrite the roles and write "
            f"{API_VERSION}"
        )
    if isinstance(version, str) and version.startswith("paddlepaddle.org/"):
        return (
            f"found {shown(version)}: that is the older TrainingJob, with another schema; "
            f"rewrite the roles as ps and worker and write {API_VERSION}"
        )
    return f"{'missing' if version is None else f'found {shown(version)}'}; write {API_VERSION}"


def _flat(document: Document) -> list[Document]:
    """A `kind: List`, as kubectl prints it, is the documents it holds."""
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "List":
        return [document]
    items = value.get("items")
    found = []
    for i, item in enumerate(items if isinstance(items, list) else ()):
        prefix = f"items[{i}]"
        inner = {
            p[len(prefix) :].lstrip("."): m for p, m in document.marks.items() if _below(p, prefix)
        }
        line = document.marks[prefix].line if prefix in document.marks else document.line
        found.append(Document(item, line, inner))
    return found


def _below(path: str, prefix: str) -> bool:
    return path.startswith((f"{prefix}.", f"{prefix}["))


def _is_job(value: dict[str, Any]) -> bool:
    kind, version = value.get("kind"), value.get("apiVersion")
    ours = isinstance(version, str) and version.startswith(f"{GROUP}/")
    return kind == KIND or (ours and kind not in ("SampleSet", "SampleJob")) or (
        isinstance(kind, str) and kind not in _PAST_FORMS and closest(kind, [KIND]) is not None
    )  # fmt: skip


def _is_foreign(value: dict[str, Any]) -> bool:
    """A whole resource of another kind, as opposed to a job that lacks a line."""
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)


def _hint(documents: list[Document]) -> str:
    kinds = {document.value.get("kind") for document in documents}
    if "TrainingJob" in kinds:
        return f". A TrainingJob is the older form; rewrite it as a {KIND} of {API_VERSION}"
    return (
        ", which `kubectl apply` is for. A job file has a document of apiVersion "
        f"{API_VERSION} and kind {KIND}"
    )


def _about_odd(document: Document) -> Problem:
    message = f"this document is {shown(document.value)}, not a map; {_STARTS}"
    return Problem("", message, line=document.line if document.marks else None)


def _named(source: str) -> str:
    return "the file" if source in ("", "-") else source


def _name(value: dict[str, Any]) -> str:
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return shown_key(name) if isinstance(name, str) else "one without a name"


def _read_companions(documents: list[Document]) -> tuple[Companions, list[Problem]]:
    groups: list[PodGroup] = []
    volumes: list[PersistentVolume] = []
    claims: list[PersistentVolumeClaim] = []
    problems: list[Problem] = []
    for document in documents:
        reader = _Companion(document, problems)
        if reader.kind == "PodGroup":
            groups.append(reader.pod_group())
        elif reader.kind == "PersistentVolume":
            volumes.append(reader.volume())
        elif reader.kind == "PersistentVolumeClaim":
            claims.append(reader.claim())
        else:
            problems.append(
                Problem(
                    reader.title,
                    "it is left aside: beside the PaddleJob only PodGroup, PersistentVolume and "
                    "PersistentVolumeClaim are read",
                    "warning",
                    document.line if document.marks else None,
                )
            )
    found = Companions(pod_groups=tuple(groups), volumes=tuple(volumes), claims=tuple(claims))
    return found, list(dict.fromkeys(problems))  # a field that is read twice is told once


class _Companion:
    """Reads one document field by field; what has the wrong type is a problem and left out."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems
        self.kind = str(document.value.get("kind") or "a document without a kind")
        self.title = f"{self.kind} {_name(document.value)}"

    def get(self, path: str, kind: type[Any], default: Any) -> Any:
        value: Any = self.document.value
        at = ""
        for step in path.split("."):
            if value is None:
                return default
            if not isinstance(value, dict):
                return default  # told when the map itself was read
            value, at = value.get(step), join(at, step)
        if value is None:
            return default
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        words = {str: "text", int: "a whole number", dict: "a map", bool: "true or false"}
        mark = self.document.marks.get(path)
        message = f"found {shown(value)}; write {words[kind]}"
        self.problems.append(
            Problem(f"{self.title}: {path}", message, line=mark.line if mark else None)
        )
        return default

    def named(self) -> str:
        name: str = self.get("metadata.name", str, "")
        if not name:
            self.problems.append(Problem(f"{self.title}: metadata.name", "missing; write a name"))
        self.get("spec", dict, {})
        return name

    def texts(self, path: str) -> dict[str, str]:
        found: dict[str, Any] = self.get(path, dict, {})
        return {key: str(value) for key, value in found.items()}

    def pod_group(self) -> PodGroup:
        least: int | None = self.get("spec.minMember", int, None)
        if least is not None and least < 1:
            path = f"{self.title}: spec.minMember"
            self.problems.append(Problem(path, f"found {least}; write a number of at least 1"))
        return PodGroup(
            name=self.named(),
            namespace=self.get("metadata.namespace", str, "default"),
            min_member=least,
            queue=self.get("spec.queue", str, ""),
            priority_class_name=self.get("spec.priorityClassName", str, ""),
            min_resources=self.texts("spec.minResources"),
        )

    def volume(self) -> PersistentVolume:
        claim: str = self.get("spec.claimRef.name", str, "")
        directory = self.get("spec.hostPath.path", str, "") or self.get("spec.local.path", str, "")
        return PersistentVolume(
            name=self.named(),
            host_path=directory,
            nfs_server=self.get("spec.nfs.server", str, ""),
            nfs_path=self.get("spec.nfs.path", str, ""),
            read_only=self.get("spec.nfs.readOnly", bool, False),
            storage_class_name=self.get("spec.storageClassName", str, ""),
            labels=self.texts("metadata.labels"),
            claim=(self.get("spec.claimRef.namespace", str, "default"), claim) if claim else None,
            spec=self.get("spec", dict, {}),
        )

    def claim(self) -> PersistentVolumeClaim:
        return PersistentVolumeClaim(
            name=self.named(),
            namespace=self.get("metadata.namespace", str, "default"),
            volume_name=self.get("spec.volumeName", str, ""),
            storage_class_name=self.get("spec.storageClassName", str, None),
            selector=self.texts("spec.selector.matchLabels"),
        )
