"""What one request costs the client that sends it: ours, aiohttp and httpx, over TLS, one server.

Compared is processor time, not the time that passes: on a busy machine the client's time is the
API server's. Each client is a fresh process; they take turns.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from tests.kubernetes.controlplane.plane import ControlPlane, PlaneOptions

from benchmarks.kubernetes.cluster import until_at_rest
from benchmarks.kubernetes.http_client import COLLECTION, NAME, config_map
from benchmarks.measure import BENCH_PYTHON, ROOT, Row

PYTHONS = {"regatta": sys.executable, "aiohttp": BENCH_PYTHON, "httpx": BENCH_PYTHON}
PEERS = ("aiohttp", "httpx")

Samples = dict[str, list[dict[str, float]]]


def measure(requests: int, rounds: int) -> list[Row]:
    samples: Samples = {client: [] for client in PYTHONS}
    options = PlaneOptions(controller_manager=False, scheduler=False, kwok=False)
    with ControlPlane(options) as plane:
        plane.api.create(COLLECTION, json.loads(config_map(NAME)))
        until_at_rest(plane)
        for number in range(rounds):
            for client in PYTHONS:
                samples[client].append(_run(plane, client, requests))
            shown = ", ".join(
                f"{client} {samples[client][-1]['read']:.3f}/{samples[client][-1]['write']:.3f} ms"
                for client in PYTHONS
            )
            print(f"  round {number + 1}, read/write: {shown}", file=sys.stderr)
    return [
        *(_row("processor time of a read", samples, peer, "read", 1, "ms") for peer in PEERS),
        *(_row("processor time of a write", samples, peer, "write", 1, "ms") for peer in PEERS),
        *(
            _row("resident memory of the client", samples, peer, "resident", 2**20, "MiB")
            for peer in PEERS
        ),
    ]


def _run(plane: ControlPlane, client: str, requests: int) -> dict[str, float]:
    command = [PYTHONS[client], "-m", "benchmarks.kubernetes.http_client", client]
    answer = subprocess.run(
        [*command, str(plane.admin_kubeconfig), str(requests)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    result: dict[str, float] = json.loads(answer.stdout)
    return result


def _row(what: str, samples: Samples, peer: str, field: str, unit: int, name: str) -> Row:
    ours, theirs = (
        statistics.median(sample[field] for sample in samples[client]) / unit
        for client in ("regatta", peer)
    )
    digits = 2 if name == "ms" else 0
    # Within each round, so that a slow minute of the machine strikes both.
    ratio = statistics.median(
        mine[field] / other[field]
        for mine, other in zip(samples["regatta"], samples[peer], strict=True)
    )
    return Row(what, f"{ours:.{digits}f} {name}", f"{theirs:.{digits}f} {name}", peer, ratio)
