"""Kill any process at any moment: no job is lost, doubled or left running."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom

import pytest

from regatta.api.errors import RegattaError, ServerUnreachable
from regatta.api.job import Job
from regatta.client.connect import connect
from regatta.daemon.find import local_files
from regatta.daemon.start import stop_server
from regatta.engines.base import Shell, Submission

JOBS = 40
SERVER_KILLS = 50
SUPERVISOR_KILLS = 5
PATIENCE = 240.0

JOB = """
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {{name: {name}}}
spec:
  tasks:
  - name: t
    replicas: 1
    template:
      spec:
        containers:
        - name: main
          image: none
          command: [sh, -c, "echo {name} >> {starts}; sleep {seconds}; echo bye; exit {code}"]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "home"
    monkeypatch.setenv("REGATTA_HOME", str(folder))
    monkeypatch.setenv("REGATTA_PODS", "12")  # so that jobs queue as well
    yield folder
    stop_server(local_files())


@pytest.mark.timeout(600)
def test_nothing_is_lost_doubled_or_left_when_anything_is_killed(
    home: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seed = int(os.environ.get("REGATTA_SEED") or SystemRandom().randrange(2**32))
    record_property("seed of the random kills", str(seed))
    random = Random(seed)
    starts = tmp_path / "starts"
    codes = {f"job-{n}": random.choice([0, 0, 0, 1, 3, 77]) for n in range(JOBS)}
    to_submit = list(codes)
    orphaned: set[str] = set()
    kills, supervisors_left = 0, SUPERVISOR_KILLS

    while to_submit or kills < SERVER_KILLS:
        # Submitting keeps pace with killing, so that something runs whenever something dies.
        for _ in range(random.randint(0, 3)):
            if to_submit and JOBS - len(to_submit) <= kills * JOBS / SERVER_KILLS + 3:
                name = to_submit[0]
                text = JOB.format(
                    name=name,
                    starts=starts,
                    seconds=round(random.uniform(0, 2.5), 2),
                    code=codes[name],
                )
                if _submitted(name, text):
                    to_submit.pop(0)
        time.sleep(random.uniform(0, 0.25))
        if supervisors_left and random.random() < 0.4:
            victim = _kill_a_supervisor(random)
            if victim is not None:
                orphaned.add(victim)
                supervisors_left -= 1
        if kills < SERVER_KILLS:
            kills += _kill_the_server()

    jobs = _until_all_finished(set(codes))
    record_property("random kills of server and supervisors survived", kills + len(orphaned))

    assert set(jobs) == set(codes), f"seed {seed}: lost jobs"
    counted = Counter(starts.read_text().split())
    doubled = {name: count for name, count in counted.items() if count > 1}
    assert not doubled, f"seed {seed}: started more than once: {doubled}"
    wrong = {
        name: why
        for name, job in jobs.items()
        if (why := _wrong(job, codes[name], name in orphaned))
    }
    assert not wrong, f"seed {seed}: {wrong}"
    assert orphaned, f"seed {seed}: no supervisor was ever killed"
    _assert_nothing_left(home, seed)


def _submitted(name: str, text: str) -> bool:
    """True once the job is there. A kill may have struck before or after it was written: its key
    makes one job of however many tries."""
    shell = Shell(directory="/tmp", environment={"PATH": os.environ["PATH"]})
    try:
        connect().submit(Submission(text=text, key=name), shell)
    except (ServerUnreachable, OSError):
        return False
    return True


def _kill_the_server() -> int:
    address = local_files().read()
    if address is None:
        return 0
    with suppress(ProcessLookupError):
        os.kill(address.pid, signal.SIGKILL)
        return 1
    return 0


def _kill_a_supervisor(random: Random) -> str | None:
    """The name of the job whose replica lost its supervisor, if one was running."""
    try:
        client = connect()
        running = [job for job in client.list("default") if job.status.phase == "Running"]
        if not running:
            return None
        job = random.choice(running)
        pids = [pod.pid for pod in client.pods("default", job.name) if pod.pid]
    except (RegattaError, OSError):
        return None
    if not pids:
        return None
    with suppress(ProcessLookupError, FileNotFoundError):
        supervisor = int(Path(f"/proc/{pids[0]}/stat").read_text().rsplit(")", 1)[1].split()[1])
        command = Path(f"/proc/{supervisor}/cmdline").read_text()
        if "supervisor" in command:
            os.kill(supervisor, signal.SIGKILL)
            return job.name
    return None


def _until_all_finished(names: set[str]) -> dict[str, Job]:
    deadline = time.monotonic() + PATIENCE
    jobs: dict[str, Job] = {}
    while time.monotonic() < deadline:
        with suppress(ServerUnreachable, RegattaError, OSError):
            jobs = {job.name: job for job in connect().list("default")}
            if names <= {name for name, job in jobs.items() if job.finished}:
                return jobs
        time.sleep(0.2)
    phases = {name: (job.status.phase, job.status.message) for name, job in jobs.items()}
    raise AssertionError(f"jobs never finished: {phases}")


def _wrong(job: Job, code: int, orphaned: bool) -> str:
    status = job.status
    failure = status.failure
    if orphaned and failure is not None and failure.reason == "SupervisorLost":
        return ""
    if code == 0 and status.phase == "Completed":
        return ""
    if code and status.phase == "Failed" and failure and failure.exit_code == code:
        return ""
    return f"exit code should be {code}: {status.phase}, {status.message}, {failure}"


def _assert_nothing_left(home: Path, seed: int) -> None:
    client = connect()
    uids = {pod.uid for job in client.list("default") for pod in client.pods("default", job.name)}
    deadline = time.monotonic() + 10
    while (left := _processes_of(uids, home)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, f"seed {seed}: still running: {left}"


def _processes_of(uids: set[str], home: Path) -> list[str]:
    """Replicas' processes by their mark, and supervisors by the folder they watch."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            marks = [
                entry.removeprefix(b"REGATTA_RUN=").decode("utf-8", "replace").split("/")[0]
                for entry in (folder / "environ").read_bytes().split(b"\0")
                if entry.startswith(b"REGATTA_RUN=")
            ]
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            command = words.decode("utf-8", "replace")
            if uids & set(marks) or ("supervisor" in command and str(home) in command):
                found.append(f"{folder.name}: {command}")
    return found
