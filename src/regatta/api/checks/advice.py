"""What a job may be, but its author should know: one function per warning."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Container, Iterator
from typing import Any

from regatta.api.checks.rules import total_replicas
from regatta.api.checks.schema import JobDraft, MetadataDraft, SpecDraft
from regatta.api.checks.suggestions import shown
from regatta.api.defaults import NAMESPACE, mode_of
from regatta.api.job import Mode
from regatta.api.problems import Problem
from regatta.api.source.companions import Companions
from regatta.api.source.words import reads_words, shell_for

_LAUNCH = re.compile(r"(-m\s+paddle\.distributed\.(?:fleet\.)?launch|\bfleetrun)\b")

#: Words that mean something to a shell alone; of these, those that another command follows.
_SIGN = re.compile(r"&&|\|\|?|;|&|[0-9]?>>?|<|[0-9]>&[0-9]|&>")
_NEXT = re.compile(r"&&|\|\|?|;|&")


def advise(
    draft: JobDraft, companions: Companions, spoken: Container[str] = ()
) -> Iterator[Problem]:
    """`spoken` are the paths that a command line has set."""
    spec = draft.spec
    if spec is None:
        return
    for rule in _ADVICE:
        yield from rule(spec)
    # On a command line a sign that is no shell's stands in quotes; it was meant so.
    yield from (problem for problem in _signs_for_a_shell(spec) if problem.path not in spoken)
    yield from _smaller_gang(draft, spec, companions)


def _warning(path: str, message: str) -> Problem:
    return Problem(path, message, "warning")


def _servers_through_launch(spec: SpecDraft) -> Iterator[Problem]:
    if mode_of(spec) not in (Mode.PS, Mode.HETER):
        return
    for path, (_, role) in spec.roles().items():
        for i, words in enumerate(_commands(role.template)):
            line = " ".join(words)
            if _LAUNCH.search(line):
                yield _warning(
                    f"{path}.template.spec.containers[{i}].command",
                    "paddle.distributed.launch takes a PS job for a Collective one, and all its "
                    f"replicas hang; start the program directly: {_direct(words)}",
                )


def _commands(template: dict[str, Any] | None) -> list[list[str]]:
    pod = (template or {}).get("spec")
    containers = pod.get("containers") if isinstance(pod, dict) else None
    commands = []
    for container in containers if isinstance(containers, list) else ():
        words: list[str] = []
        for key in ("command", "args"):
            given = container.get(key) if isinstance(container, dict) else None
            words += (
                [word for word in given if isinstance(word, str)] if isinstance(given, list) else []
            )
        commands.append(words)
    return commands


def _direct(words: list[str]) -> str:
    """`python -m paddle.distributed.launch --x train.py --lr 1` without the launcher."""
    line = next((word for word in words if _LAUNCH.search(word)), None)
    if line is None or len(line.split()) == 1:
        line = " ".join(words)
    head, _, tail = _LAUNCH.split(line, maxsplit=1)
    try:
        rest = shlex.split(tail)
    except ValueError:
        rest = tail.split()
    start = next((i for i, word in enumerate(rest) if word.endswith(".py")), None)
    interpreter = head.split()[-1] if head.split() else "python"
    if "python" not in interpreter:
        interpreter = "python"
    program = rest[start:] if start is not None else ["train.py"]
    return " ".join([interpreter, *program])[:200]


def _signs_for_a_shell(spec: SpecDraft) -> Iterator[Problem]:
    for path, (_, role) in spec.roles().items():
        for i, words in enumerate(_commands(role.template)):
            signs = [word for word in words[1:] if _SIGN.fullmatch(word)]
            if not signs or reads_words(words) or ("-exec" in words and set(signs) == {";"}):
                continue
            line = _for_a_shell(words)
            asked = json.dumps([shell_for(line), "-c", line], ensure_ascii=False)
            yield _warning(
                f"{path}.template.spec.containers[{i}].command",
                f"the program is handed the rest word by word, for no shell reads "
                f"{shown(signs[0])}; ask for one: {asked}",
            )


def _for_a_shell(words: list[str]) -> str:
    """The line that was meant: signs as they stand, and what follows one that ends a command as
    the next command."""
    said = [
        word if _SIGN.fullmatch(word) or _NEXT.fullmatch(before) else shlex.quote(word)
        for before, word in zip(["", *words], words, strict=False)
    ]
    return " ".join(said)


def _gloo_without_servers(spec: SpecDraft) -> Iterator[Problem]:
    if spec.with_gloo and mode_of(spec) not in (Mode.PS, Mode.HETER):
        yield _warning(
            "spec.withGloo",
            f"it has no effect: only jobs with ps use it, and this job's mode is {mode_of(spec)}",
        )


def _heter(spec: SpecDraft) -> Iterator[Problem]:
    if spec.heter is not None:
        yield _warning(
            "spec.heter",
            "the replicas start with the environment that Paddle's role maker reads, but "
            "PaddlePaddle 2.6 and later cannot train so; expect the program to fail",
        )


def _elastic(spec: SpecDraft) -> Iterator[Problem]:
    if spec.elastic is not None and spec.ps is not None:
        yield _warning(
            "spec.elastic",
            "only the number of workers changes; the parameter servers stay as many as they are",
        )
    for path, (_, role) in spec.roles().items():
        for key in ("requests", "limits"):
            if getattr(role, key) is None:
                continue
            if path != "spec.worker":
                yield _warning(f"{path}.{key}", "it has no effect: only workers are elastic")
            elif spec.elastic is None:
                yield _warning(f"{path}.{key}", "it has no effect without spec.elastic: 1")


def _aborted_at_once(spec: SpecDraft) -> Iterator[Problem]:
    policy = spec.run_policy
    if policy and policy.abort:
        yield _warning("spec.runPolicy.abort", "the job would be aborted before it starts")


def _smaller_gang(draft: JobDraft, spec: SpecDraft, companions: Companions) -> Iterator[Problem]:
    total = total_replicas(spec)
    if spec.elastic is not None or not total:
        return
    metadata = draft.metadata or MetadataDraft()
    group = companions.pod_group(metadata.namespace or NAMESPACE, metadata.name or "")
    said = {
        "spec.schedulingPolicy.minAvailable": spec.scheduling_policy
        and spec.scheduling_policy.min_available,
        f"PodGroup {group.name if group else ''}: spec.minMember": group and group.min_member,
    }
    for path, least in said.items():
        if least and least < total:
            yield _warning(
                path,
                f"found {least}, but all {total} replicas start together: with fewer, the list of "
                "their addresses could never be complete",
            )


_ADVICE: tuple[Callable[[SpecDraft], Iterator[Problem]], ...] = (
    _servers_through_launch,
    _gloo_without_servers,
    _heter,
    _elastic,
    _aborted_at_once,
)
