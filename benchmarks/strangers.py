"""Strangers open half requests and keep them: how long does the owner's `regatta get` take then?

The server may have 1,024 files open at first, as most shells allow. One stranger keeps every
connection that the server lets it keep; another opens a new one for each that is closed.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import REGATTA, Row, milliseconds, whole

HALF = b"GET /regatta/v1/jobs HTTP/1.1\r\nHost: x\r\nX-Half: "
STRANGERS = 2000
OPEN_FILES = 1024
BEFORE, DURING_SECONDS = 30, 120.0
NOBODY = 65534


def measure(folder: Path, env: dict[str, str]) -> list[Row]:
    return [row for again in (False, True) for row in _beside(folder, env, again)]


def _beside(folder: Path, env: dict[str, str], again: bool) -> list[Row]:
    home = folder / ("strangers-again" if again else "strangers")
    env = {**env, "REGATTA_HOME": str(home)}
    start = ["sh", "-c", f'ulimit -n {OPEN_FILES}; exec "$0" server start', REGATTA]
    subprocess.run(start, env=env, check=True, capture_output=True)
    try:
        (file,) = home.glob("*/server.json")
        server = json.loads(file.read_text())
        usual = [_get(env) for _ in range(BEFORE)]
        with subprocess.Popen(_stranger(server["url"], again)) as stranger:
            time.sleep(2)
            end, meanwhile = time.monotonic() + DURING_SECONDS, []
            while time.monotonic() < end:
                meanwhile.append(_get(env))
            held = _held(server["pid"], file.with_name("server.log"))
            stranger.kill()
    finally:
        subprocess.run([REGATTA, "server", "stop"], env=env, check=False, capture_output=True)
    who = f"{STRANGERS:,} half requests" + (", opened again when closed" if again else "")
    ours, theirs = statistics.median(meanwhile), statistics.median(usual)
    slow, slowest = statistics.quantiles(meanwhile, n=20)[-1], statistics.quantiles(usual, n=20)[-1]
    return [
        Row(
            f"`get` beside {who}", milliseconds(ours), milliseconds(theirs), "alone", ours / theirs
        ),
        Row(
            f"the slowest twentieth; {held}",
            milliseconds(slow),
            milliseconds(slowest),
            "alone",
            slow / slowest,
        ),
    ]


def _get(env: dict[str, str]) -> float:
    time.sleep(0.5)
    return whole([REGATTA, "get"], env)


def _held(pid: int, log: Path) -> str:
    status = Path(f"/proc/{pid}/status").read_text()
    (resident,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    files = len(os.listdir(f"/proc/{pid}/fd"))
    return f"server: {int(resident) // 1024} MiB, {files} files, log {log.stat().st_size} bytes"


def _stranger(url: str, again: bool) -> list[str]:
    port = url.rpartition(":")[2]
    return [sys.executable, "-m", "benchmarks.strangers", port, "again" if again else "once"]


def flood(port: int, again: bool) -> None:
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    kept: list[socket.socket] = []
    missing = STRANGERS
    while True:
        for _ in range(missing):
            _knock(port, kept)
        time.sleep(1)
        kept = [one for one in kept if _is_open(one)]
        missing = STRANGERS - len(kept) if again else 0


def _knock(port: int, kept: list[socket.socket]) -> None:
    one = socket.socket()
    one.settimeout(5)
    try:
        one.connect(("127.0.0.1", port))
        one.send(HALF)
    except OSError:
        one.close()
        return
    one.setblocking(False)
    kept.append(one)


def _is_open(one: socket.socket) -> bool:
    try:
        if one.recv(1):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    one.close()
    return False


if __name__ == "__main__":
    flood(int(sys.argv[1]), again=sys.argv[2] == "again")
