"""What one run of one replica is: the file that the engine writes and its supervisor reads.

A run folder holds `run.json` (this), `claim` (locked while the supervisor lives), `state.json`,
`stop.json`, `exit.json`, `left.json` (who did not die with the rest), `logs/` and `volumes/`. A
pod's folder holds its runs as `runs/<n>`. The supervisor has no msgspec: it reads the JSON, so
field names here are its contract.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from regatta.api.secrets import MASK
from regatta.controller.world import PORTS_PER_REPLICA

RUN_FILE = "run.json"
CLAIM_FILE = "claim"
STATE_FILE = "state.json"
STOP_FILE = "stop.json"
EXIT_FILE = "exit.json"
LEFT_FILE = "left.json"
LOGS_FOLDER = "logs"
VOLUMES_FOLDER = "volumes"
PADDLE_LOGS_FOLDER = "paddle"
PROGRESS_FILE = "progress.jsonl"

MIB = 1024 * 1024


def run_folder(pod_folder: Path, run: int) -> Path:
    return pod_folder / "runs" / str(run)


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory (or file) that the replica sees at another path."""

    source: str
    target: str
    read_only: bool = False
    #: The volume's name in the pod, for the `--volume name=dir` of an error message.
    volume: str = ""


class Contained(msgspec.Struct, frozen=True, kw_only=True):
    """The container that a process, a runtime's client, has an image run in."""

    image: str
    #: As the runtimes say it: always, missing or never.
    pull: str = "missing"
    #: What the image's program sees; the process's own variables are the client's.
    env: dict[str, str]
    #: As the job file writes it; empty: none.
    memory_limit: str = ""
    #: A command that prints `true` where the container ran out of that.
    asks_out_of_memory: tuple[str, ...]


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """As whom a process runs, by numbers."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    #: Folders that may be mounted; None: what the account can reach.
    folders: tuple[str, ...] | None = None


class OwnFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run of an account keeps what the account writes: not in the run folder, which is
    closed to it."""

    path: str
    uid: int
    gid: int
    #: In it, those that are the account's.
    folders: tuple[str, ...] = ()


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One container of the pod, as a process."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    mounts: tuple[Mount, ...] = ()
    #: A command that ends what killing the process does not (a container outlives its client).
    cleanup: tuple[str, ...] = ()
    container: Contained | None = None
    #: Variables that the supervisor fills from the job's secrets: each by a Secret's name and a
    #: key of it.
    secrets: dict[str, tuple[str, str]] = {}
    #: None: as the supervisor does.
    account: Account | None = None
    #: What the account has to make before it starts, and does as itself.
    makes: tuple[str, ...] = ()

    @property
    def sees(self) -> dict[str, str]:
        """The variables of the program that is run, in a container or not."""
        env = self.env if self.container is None else self.container.env
        return env | dict.fromkeys(self.secrets, MASK)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A name that the supervisor holds as an abstract unix socket while the run lives.

    Abstract names belong to the network namespace, as ports do, and vanish with their holder: two
    state folders, or two users, never hold the same block.
    """

    name: str
    #: `port` or `gpu`: which reason (PortTaken, GpuTaken) a taken hold gives.
    kind: str
    #: Ports to try by binding as well, first and count: a foreign server may listen there.
    first_port: int = 0
    ports: int = 0


def port_hold(base: int, count: int = PORTS_PER_REPLICA) -> Hold:
    return Hold(name=f"regatta-ports-{base}", kind="port", first_port=base, ports=count)


def gpu_hold(device: str) -> Hold:
    return Hold(name=f"regatta-gpu-{device}", kind="gpu")


class LogLimits(msgspec.Struct, frozen=True, kw_only=True):
    segment_bytes: int = 8 * MIB
    segments: int = 8


class BackOff(msgspec.Struct, frozen=True, kw_only=True):
    """The kubelet's: the pause doubles from base to limit, and a long run resets it."""

    base_seconds: float = 10.0
    limit_seconds: float = 300.0
    reset_seconds: float = 600.0


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The run's control group, and what it bounds: the whole replica, however many containers."""

    #: One for each hierarchy; none where no group can be had. The runtime chooses them.
    folders: tuple[str, ...] = ()
    #: 0 for no limit.
    memory_bytes: int = 0
    cpus: float = 0.0


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    #: `<pod uid>/<run>`, carried by every process of the replica as REGATTA_RUN.
    run_id: str
    pod: str
    #: Absolute path of the run folder.
    folder: str
    init: tuple[Process, ...] = ()
    #: They run together; the first decides the exit.
    containers: tuple[Process, ...]
    #: Never, OnFailure or Always, in place.
    restart_policy: str = "Never"
    back_off: BackOff = BackOff()
    grace_seconds: float = 30.0
    holds: tuple[Hold, ...] = ()
    group: Group = Group()
    #: The number by which its processes are known (`supervisor/marks.py`); 0 for none.
    mark: int = 0
    #: The file that holds the job's secrets; empty: it has none.
    secrets_file: str = ""
    log_limits: LogLimits = LogLimits()
    #: Folders whose `workerlog.<n>` files (n >= 1) belong to the replica's log.
    tail_folders: tuple[str, ...] = ()
    #: Made before the supervisor starts: what emptyDir volumes and Paddle's logs need. An account's
    #: are made by itself, or in its own folder.
    make_folders: tuple[str, ...] = ()
    own: OwnFolder | None = None


encode_run = msgspec.json.Encoder().encode
