"""A guardian that somebody halted (SIGSTOP) keeps its lock and does nothing: it makes way.

It could only be had to go on until it is halted again, and being killed is always safe for it.
"""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

from regatta.daemon.server_files import ServerFiles
from regatta.engines.local.supervisor import tree

log = logging.getLogger(__name__)

GUARDIAN = b"regatta.daemon.guardian"


def end_halted_guardian(files: ServerFiles) -> bool:
    """Whether there was one. Its lock is free a moment later."""
    pid = _holder(files.guardian_lock)
    if not pid or not tree.is_halted(pid) or not _guards(pid, files.folder):
        return False
    log.warning("the guardian (process %s) was halted; ending it", pid)
    tree.kill(pid, signal.SIGKILL)
    return True


def _holder(lock: Path) -> int:
    """The process that took it, as the kernel has it; 0 for none that can be seen."""
    try:
        inode = lock.stat().st_ino
        held = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in held:
        fields = line.split()
        if "FLOCK" in fields and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return 0


def _guards(pid: int, folder: Path) -> bool:
    """Inodes are one disk's own, so the process itself has to say whose it is."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return GUARDIAN in words and os.fsencode(folder) in words
