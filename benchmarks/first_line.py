"""From pressing return to the first line that the first replica prints."""

from __future__ import annotations

from pathlib import Path

from benchmarks.jobs import task_job
from benchmarks.measure import REGATTA, TORCHX, Row, interleaved, milliseconds, until_line

MARKER = "first-line-of-the-replica"
RUNS = 11


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    # It lingers, because TorchX often misses what a replica prints that is gone at once.
    program = folder / "speak.sh"
    program.write_text(f"#!/bin/sh\necho {MARKER}\nsleep 0.5\n")
    program.chmod(0o755)
    job = task_job(folder, "first-line", [str(program)])

    def ours() -> float:
        return until_line([REGATTA, "run", str(job), "--replace"], MARKER, env)

    def theirs() -> float:
        run = [TORCHX, "run", "--scheduler", "local_cwd", "--log", "utils.sh", str(program)]
        return until_line(run, MARKER, env)

    ours()  # the server starts on first use; that is measured on its own
    warm, torchx = interleaved(RUNS, ours, theirs)
    rows = [
        Row(
            "`run` to the replica's first line",
            milliseconds(warm),
            milliseconds(torchx),
            "TorchX local_cwd",
            warm / torchx,
        )
    ]
    cold = _cold(job, folder, env)
    what = "the same, with no server running yet"
    rows.append(Row(what, milliseconds(cold), milliseconds(torchx), "TorchX", cold / torchx))
    return rows


def _cold(job: Path, folder: Path, env: dict[str, str]) -> float:
    import subprocess

    samples = []
    for number in range(3):
        fresh = {**env, "REGATTA_HOME": str(folder / f"cold-{number}")}
        samples.append(until_line([REGATTA, "run", str(job)], MARKER, fresh))
        subprocess.run([REGATTA, "server", "stop"], env=fresh, check=True, capture_output=True)
    return sorted(samples)[1]
