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
    for what, path in _needed(process, program, script):
        above = [mount for mount in process.mounts if _is_at_or_in(path, mount.target)]
        # The innermost one is what is seen there.
        mount = max(above, key=lambda mount: len(mount.target), default=None)
        if mount is None or mount.source not in run.make_folders:
            continue
        if not _is_at_or_in(mount.target, path):  # a folder itself is there
            return (
                f"{what} {path} is not there for the job: the volume {mount.volume}, which begins "
                f"empty, is mounted at {mount.target}. Mount it elsewhere."
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


def _is_at_or_in(path: str, folder: str) -> bool:
    """Mounts, and programs, are found through links, and links lie in folders."""
    ways = (os.path.realpath, os.path.normpath)
    return any(Path(way(path)).is_relative_to(way(folder)) for way in ways)
