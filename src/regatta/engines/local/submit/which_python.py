"""Which `python` a job's words will find, told where that may not be what their author expects.

A command that begins with `python` is given the job's interpreter under either of its names. In the
script of a shell the name is looked up as it stands, by the shell, on the job's PATH.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from regatta.api.job import Job
from regatta.api.problems import Problem
from regatta.engines.local.on_behalf.interpreters import interpreter_for
from regatta.engines.local.replicas.containers import RUNTIMES
from regatta.engines.local.replicas.runspec import Process, RunSpec
from regatta.engines.local.store.records import Context
from regatta.engines.local.submit.preflight import SHELLS, read_command
from regatta.engines.local.submit.rehearsal import Rehearsal, replace_path

_OTHER = {"python": "python3", "python3": "python"}
#: Where a shell expects a command. Never over the end of a line, or a script of empty ones takes
#: minutes.
_STARTED = re.compile(
    r"(?:^|[;&|(`{!]|\b(?:do|then|else|if|while|exec|time|nohup)[ \t])[ \t]*(?:\w+=\S*[ \t]+)*"
    r"(python3?)(?=[\s;&|)`]|$)",
    re.MULTILINE,
)
#: What may bring a `python` of the script's own.
_BRINGS_ONE = re.compile(
    r"\bPATH=|activate|\b(?:conda|mamba|pyenv|alias|apt|apt-get|yum|dnf|apk)\s|\bmodule\s+(?:load|add)"
    r"|\bpython3?\s*\(\)"
    r"|(?:^|[;&|])[ \t]*(?:\.|source)\s",
    re.MULTILINE,
)


def about_pythons(
    job: Job,
    rehearsal: Rehearsal,
    runs: Mapping[str, RunSpec],
    context: Context,
    *,
    checked: bool,
) -> list[Problem]:
    """Warnings about the containers of each role's first pod. `checked`: the programs that commands
    name are looked for as well, and told where they are missing."""
    if context.runtime in RUNTIMES:
        return []
    found: dict[Problem, None] = {}
    for pod in rehearsal.pods:
        run = runs.get(pod.name)
        if run is None:
            continue
        where = f"{job.spec.path_of(pod.role)}.template"
        processes = {process.name: process for process in (*run.init, *run.containers)}
        spec: dict[str, Any] = pod.manifest.get("spec") or {}
        for kind in ("initContainers", "containers"):
            for number, container in enumerate(spec.get(kind) or ()):
                process = processes.get(container.get("name", ""))
                if process is None or not process.argv:
                    continue
                for warning in _of(container, process, context, checked=checked):
                    placed = Problem(
                        f"spec.{kind}[{number}].{warning.path}", warning.message, "warning"
                    )
                    found[replace_path(placed, where)] = None
    return list(found)


def _of(
    container: dict[str, Any], process: Process, context: Context, *, checked: bool
) -> Iterator[Problem]:
    image, images = container.get("image") or "", context.images
    unnamed = bool(image) and images is not None and interpreter_for(images, image) is None
    about_image = (
        f"is {image}, which is not run as an image here, and the server's settings (images:) name "
        "no interpreter for it: "
    )
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if words and words[0] in _OTHER:
        if unnamed:
            said = "`python` is the first python or python3 on the job's PATH"
            yield Problem("image", about_image + said)
        return
    path = process.env.get("PATH", os.defpath)
    for name in _started_by_shell(process.argv):
        program = shutil.which(name, path=path)
        if program is not None:
            if unnamed:
                yield Problem("image", f"{about_image}`{name}` in its script is {program}")
        elif not (checked and read_command(process.argv).interpreter):  # which is refused
            there = shutil.which(_OTHER[name], path=path)
            instead = f"write {_OTHER[name]}, which is {there}" if there else "name it by its path"
            yield Problem(
                "command",
                f"its script starts `{name}`, and there is none on the job's PATH ({path}), so the "
                f"script will not find it; {instead}, or put the folder of one into PATH",
            )


def _started_by_shell(argv: tuple[str, ...]) -> list[str]:
    """The names by which scripts among these words start Python, each once."""
    if Path(argv[0]).name not in SHELLS:
        return []
    scripts = argv[1:]
    if any(_BRINGS_ONE.search(script) for script in scripts):
        return []
    return list(dict.fromkeys(name for script in scripts for name in _STARTED.findall(script)))
