"""What a volume that begins empty hides of what a replica needs: its folder, program or script."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from regatta.engines.local.replicas.runspec import Process, RunSpec


def what_is_hidden(run: RunSpec, program: str, script: str) -> str:
    """In a sentence; empty where nothing is. Another container may fill a volume before it is
    needed, so then nothing is known."""
    process = run.containers[0]
    if run.init or len(run.containers) > 1 or process.container is not None:
        return ""
    empty = [mount for mount in process.mounts if mount.source in run.make_folders]
    for what, path in _needed(process, program, script):
        for mount in empty:
            if _is_inside(path, mount.target):
                return (
                    f"{what} {path} is not there for the job: the volume {mount.volume}, which "
                    f"begins empty, is mounted at {mount.target}. Mount it elsewhere."
                )
    return ""


def _needed(process: Process, program: str, script: str) -> Iterator[tuple[str, str]]:
    yield "the folder", process.cwd
    if "/" in program:
        yield "the command", os.path.join(process.cwd, program)
    elif found := shutil.which(program, path=process.env.get("PATH", os.defpath)):
        yield "the command", found
    if script:
        yield "the script", os.path.join(process.cwd, script)


def _is_inside(path: str, folder: str) -> bool:
    """The folder itself is there. Mounts, and programs, are found through links."""
    ways = (os.path.realpath, os.path.normpath)
    pairs = [(Path(way(path)), Path(way(folder))) for way in ways]
    return any(inner != outer and inner.is_relative_to(outer) for inner, outer in pairs)
