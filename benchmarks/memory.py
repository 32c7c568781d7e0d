"""What one more replica costs in memory, beyond the training process itself."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.jobs import task_job
from benchmarks.measure import REGATTA, TORCHX, Row, children_of, proportional_memory

REPLICAS = 20


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    supervisors, server = _ours(folder, env)
    torchx = _theirs(env)
    per_replica = supervisors / REPLICAS
    return [
        Row(
            f"memory per replica ({REPLICAS} replicas of one job)",
            _mebibytes(per_replica),
            _mebibytes(torchx / REPLICAS),
            "TorchX (its client must stay, and holds the job)",
            per_replica / (torchx / REPLICAS),
        ),
        Row("memory of what watches all jobs", _mebibytes(server), _mebibytes(torchx), "TorchX"),
    ]


def _ours(folder: Path, env: dict[str, str]) -> tuple[int, int]:
    job = task_job(folder, "sleepers", ["sleep", "600"], REPLICAS)
    subprocess.run([REGATTA, "submit", str(job)], env=env, check=True, capture_output=True)

    def described() -> list[dict[str, object]]:
        answer = subprocess.run(
            [REGATTA, "describe", "sleepers", "-o", "json"],
            env=env,
            check=True,
            capture_output=True,
        )
        return [pod for pod in json.loads(answer.stdout)["pods"] if pod.get("pid")]

    pods = _until(described, REPLICAS)
    supervisors = {_parent(int(str(pod["pid"]))) for pod in pods}
    status = subprocess.run(
        [REGATTA, "server", "status", "-o", "json"], env=env, check=True, capture_output=True
    )
    server = proportional_memory(int(json.loads(status.stdout)["pid"]))
    total = sum(map(proportional_memory, supervisors))
    subprocess.run([REGATTA, "delete", "sleepers"], env=env, check=True, capture_output=True)
    return total, server


def _theirs(env: dict[str, str]) -> int:
    command = ["run", "--scheduler", "local_cwd", "--wait", "utils.sh"]
    sleep = ["--num_replicas", str(REPLICAS), "sleep", "600"]
    with subprocess.Popen(
        [TORCHX, *command, *sleep], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _until(lambda: children_of(process.pid), REPLICAS)
        memory = proportional_memory(process.pid)
        process.terminate()
    return memory


def _until(ask: Callable[[], list], count: int) -> list:  # type: ignore[type-arg]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(found := ask()) >= count:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"{count} replicas never ran")


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _mebibytes(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"
