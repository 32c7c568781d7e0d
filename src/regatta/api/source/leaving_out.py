"""Takes out of a job's document what is wrong with it, so that the rest can be looked at as well.

Nothing is run that way: it only lets checks that need a whole job speak up together with those
that found it faulty. Where taking something out could make another check mistaken, none is made.
"""

from __future__ import annotations

from typing import Any

from regatta.api.job import API_VERSION, KIND
from regatta.api.source.paths import Step, split

_STAND_INS: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "metadata.name": "job"}
#: Without these a job is none, or what lies behind a mount would seem to be missing.
_NEEDED = ("spec", "template", "containers", "initContainers", "volumes", "volumeMounts",
           "mountPath", "workingDir")  # fmt: skip


def leave_out(document: dict[str, Any], path: str) -> bool:
    """Change the document in place. False: what stands there cannot be spared."""
    if path.startswith("--") or ": " in path:
        return True  # an option, or another document: the job is without it already
    try:
        steps = split(path)
    except ValueError:
        return False
    if path in _STAND_INS:
        holder = document
        for step in steps[:-1]:
            if not isinstance(holder.get(str(step)), dict):
                holder[str(step)] = {}
            holder = holder[str(step)]
        holder[str(steps[-1])] = _STAND_INS[path]
        return True
    if steps[-1] == "replicas":
        role = _at(document, steps[:-1])
        if isinstance(role, dict):
            role["replicas"] = 1
        return isinstance(role, dict)
    return _spared(document, steps)


def _spared(document: dict[str, Any], steps: list[Step]) -> bool:
    """The place, or the smallest that holds it and has a name: items of a list keep their
    numbers."""
    while len(steps) > 1:
        *before, last = steps
        if last in _NEEDED:
            return False
        holder = _at(document, before)
        if isinstance(last, str) and isinstance(holder, dict) and last in holder:
            del holder[last]
            return True
        steps = before
    return False


def _at(document: Any, steps: list[Step]) -> Any:
    for step in steps:
        if isinstance(document, dict) and isinstance(step, str):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document
