"""200 jobs of `true`: how many a second, from the first submit to the last one completed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from benchmarks.jobs import task_job
from benchmarks.measure import BENCH_PYTHON, Row
from regatta.client.connect import connect
from regatta.engines.base import Shell, Submission

JOBS = 200

TORCHX_PROGRAM = f"""
import time
from torchx.runner import get_runner
from torchx.specs import AppDef, Role
with get_runner() as runner:
    start = time.perf_counter()
    for _ in range({JOBS} // 50):  # it holds at most 100 jobs at a time
        role = Role("t", image="/tmp", entrypoint="true")
        handles = [runner.run(AppDef("j", roles=[role]), "local_cwd") for _ in range(50)]
        for handle in handles:
            runner.wait(handle, wait_interval=0.01)
    print({JOBS} / (time.perf_counter() - start))
"""


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    ours = _ours(folder)
    theirs = float(
        subprocess.run(
            [BENCH_PYTHON, "-c", TORCHX_PROGRAM],
            env=env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()[-1]
    )
    floor = _bare_interpreters()
    return [
        Row(
            f"{JOBS} jobs of `true`",
            _rate(ours),
            _rate(theirs),
            "TorchX, nothing stored",
            ours / theirs,
        ),
        Row(
            "the same, against its limit",
            _rate(ours),
            _rate(floor),
            "starting as many bare Python processes, one after another",
            ours / floor,
        ),
    ]


def _ours(folder: Path) -> float:
    client = connect()
    text = task_job(folder, "true", ["true"]).read_text()
    shell = Shell(directory="/tmp", environment={"PATH": os.environ["PATH"]})
    start = time.perf_counter()
    names = [f"true-{number}" for number in range(JOBS)]
    for name in names:
        client.submit(Submission(text=text, name=name), shell)
    waiting = set(names)
    while waiting:
        jobs = client.list("default")
        waiting -= {job.name for job in jobs if job.finished}
        time.sleep(0.02)
    rate = JOBS / (time.perf_counter() - start)
    failed = [
        j.name for j in client.list("default") if j.name in names and j.status.phase != "Completed"
    ]
    if failed:
        raise RuntimeError(f"{len(failed)} of {JOBS} jobs did not complete: {failed[:5]}")
    for name in names:
        client.delete("default", name)
    return rate


def _bare_interpreters() -> float:
    """A supervisor a job is a Python process a job: nothing can be faster than starting those."""
    start = time.perf_counter()
    for _ in range(JOBS):
        subprocess.run([BENCH_PYTHON, "-I", "-S", "-c", "pass"], check=True)
    return JOBS / (time.perf_counter() - start)


def _rate(jobs_a_second: float) -> str:
    return f"{jobs_a_second:.0f} jobs/s"
