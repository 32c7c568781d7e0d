"""How long a command takes that does next to nothing: the price of every other one."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.measure import REGATTA, TORCHX, Row, interleaved, milliseconds, whole

RUNS = 15


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    kubectl = shutil.which("kubectl")
    peer = [kubectl, "--help"] if kubectl else [TORCHX, "--help"]
    name = "kubectl --help" if kubectl else "torchx --help (kubectl is not installed)"
    ours, theirs, listing = interleaved(
        RUNS,
        lambda: whole([REGATTA, "--help"], env),
        lambda: whole(peer, env),
        lambda: whole([REGATTA, "get"], env),
    )
    return [
        Row("`regatta --help`", milliseconds(ours), milliseconds(theirs), name, ours / theirs),
        Row("`regatta get`", milliseconds(listing), milliseconds(theirs), name, listing / theirs),
    ]
