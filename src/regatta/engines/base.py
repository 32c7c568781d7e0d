"""The one contract between doors and engines.

A door (the command, a server's routes, a program) speaks to an `Engine` and does not know who
answers: the processes of this machine, a Kubernetes cluster, or a Regatta server over HTTP. All
that crosses is here: what is asked, what is answered and what streams carry; what is shown of jobs,
replicas and machines is in `engines/inventory.py`. Refusals are those of `regatta.api.errors`.
`engines/blocking.py` is the same for callers that block.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from regatta.api.job import Job
from regatta.api.problems import Problem
from regatta.engines.inventory import (
    Capacity,
    EventView,
    PodView,
    Removal,
    RunView,
    Storage,
    Traits,
)

# Handing a job in


class Submission(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is to run: a file's text and what the door changes in it. It says nothing of where it
    was said, so it means the same on every engine."""

    #: The YAML or JSON text of the file, perhaps several documents.
    text: str
    #: Where the text came from, for messages: a path, or `-`.
    source: str = "-"
    name: str | None = None
    namespace: str | None = None
    #: `--env K=V` for every replica, and `--set path=value`.
    env: dict[str, str] = {}
    sets: tuple[str, ...] = ()
    #: `--command LINE`, by role; `*` is every role that is not named.
    commands: dict[str, str] = {}
    #: Unknown fields in pod templates are errors.
    strict: bool = False
    #: Replace a job of the same name even while it is live.
    replace: bool = False
    #: A submission that is sent again with the key of one that arrived is that one.
    key: str = ""
    #: For one of OpenPAI's configs: who hands it in, and what $PAI_DEFAULT_FS_URI stands for.
    user: str = ""
    default_fs_uri: str = ""
    #: What only a server says that takes other people's jobs (`SAID_BY_SERVERS`): its own settings
    #: say what that stands for; this is what its client said, in vain; it runs as an account of the
    #: machine that is its user's alone.
    fs_uri_is_servers: bool = False
    unheard_fs_uri: str = ""
    accounts: bool = False


#: Of a submission.
SAID_BY_SERVERS = frozenset({"fsUriIsServers", "unheardFsUri", "accounts"})


class RunAs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An account of this machine, as which everything of a submission runs."""

    uid: int
    gid: int
    #: For $USER and $HOME.
    name: str
    home: str
    #: What it belongs to besides its gid.
    groups: tuple[int, ...] = ()


class Shell(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a submission was said: the machine of its author, which only an engine of that same
    machine can make use of. Others refuse it (`ShellRefused`)."""

    #: Where commands run; empty: at the root.
    directory: str = ""
    #: The short list of variables that a replica inherits.
    environment: dict[str, str] = {}
    #: What `python` means; None: the first of the PATH above.
    python: str | None = None
    #: none (plain processes), docker or podman.
    runtime: Literal["none", "docker", "podman"] = "none"
    #: Directories of this machine for volumes of the job, by their names.
    volumes: dict[str, str] = {}
    #: Run a job that asks for GPUs on a machine without any.
    no_gpu: bool = False
    #: Skip the checks that need the training environment.
    no_preflight: bool = False
    #: What only a server says that takes other people's jobs (`OF_SERVERS`). As whom it runs; None:
    #: as the engine itself does.
    run_as: RunAs | None = None
    #: The folders of this machine that it may mount; None: any.
    folders: tuple[str, ...] | None = None
    #: A folder of the engine's, beside its own, for what replicas write and the engine reads;
    #: empty: it is kept with the rest, where nobody else may look.
    runs: str = ""
    #: Where replicas find what they may import of us; empty: where we are installed.
    library: str = ""
    #: Which interpreter `python` is in which image; None: nobody says.
    images: dict[str, str] | None = None
    #: Variables that every replica gets, whatever their names.
    given: dict[str, str] = {}


#: Fields of a shell, as JSON has them, that are no client's to say.
OF_SERVERS = frozenset({"runAs", "folders", "runs", "library", "images", "given"})


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    warnings: tuple[Problem, ...] = ()
    #: The uid of the job of this name that made room, if any.
    replaced: str = ""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission would create, exactly, and nothing created."""

    job: Job
    warnings: tuple[Problem, ...] = ()
    #: In creation order.
    objects: tuple[dict[str, Any], ...] = ()
    #: Per pod name: the environment its first container would see, and its port block.
    environment: dict[str, dict[str, str]] = {}
    ports: dict[str, tuple[int, int]] = {}
    #: What a person should know: that addresses are the next free ones, what is ignored.
    notes: tuple[str, ...] = ()


# Logs


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    #: The run that is meant; empty: the job that has the name now.
    uid: str = ""
    role: str | None = None
    index: int | None = None
    #: The run before the present one of each replica.
    previous: bool = False
    #: As it was in that try of the job, from 0; None: in the present one. It is not followed.
    attempt: int | None = None
    since: datetime | None = None
    tail: int | None = None
    grep: str | None = None
    #: Whose searches are one's own, and leave room for those of others; empty: nobody's.
    asker: str = ""
    #: Resume positions, per pod uid, as a LogBatch gave them.
    after: dict[str, str] = {}


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    pod: str  # `worker-0`: role and index
    at: str  # RFC 3339, in UTC with nine digits: text compares as time does
    stream: str  # stdout, stderr
    text: str


class LogBatch(msgspec.Struct, frozen=True):
    lines: tuple[LogLine, ...]
    #: Where to go on from, per pod uid. Only the engine that wrote it can read it.
    after: dict[str, str] = {}


# What comes along streams, besides log batches, events and jobs


class Remark(NamedTuple):
    """Something a person should know about the stream itself, such as a log that is gone."""

    text: str


class Gone(NamedTuple):
    """The job is no more: deleted, or its time to live is over."""

    namespace: str
    name: str


class Synced(NamedTuple):
    """Everything that was there when the watch began has been told; or, after a `Lost`, everything
    that changed meanwhile."""


class Lost(NamedTuple):
    """The other end is away; the stream looks for it."""

    why: str


LogUpdate = LogBatch | Remark
JobUpdate = LogBatch | Remark | Job | Gone | Lost
WatchUpdate = Job | Gone | Synced | Lost


class Engine(Protocol):
    """Every call may raise a `RegattaError`; so may a stream, at its first item or later.

    A stream is an asynchronous generator: whoever leaves it early closes it (`aclosing`).
    """

    async def traits(self) -> Traits: ...

    async def version(self) -> str:
        """Of what answers: the server, or the cluster."""
        ...

    async def close(self) -> None:
        """Let go. Jobs run on."""
        ...

    # Jobs

    async def submit(self, submission: Submission, shell: Shell | None = None) -> Accepted:
        """Acknowledged means kept. Sent again with the same `key`, it is the same submit: the job
        that it made is answered, or a refusal says what became of it. This machine remembers a key
        for two days; a cluster keeps it on the job, and forgets it with a job that is deleted."""
        ...

    async def preview(
        self, submission: Submission, shell: Shell | None = None, *, stored: bool = False
    ) -> Preview:
        """Nothing is created. `stored`: only what would be stored, as whoever stores it says."""
        ...

    async def get(self, namespace: str, name: str, uid: str = "") -> Job:
        """The job that has the name now; with `uid` that run of it, whoever has the name."""
        ...

    async def list(
        self, namespace: str | None = None, *, finished: int | None = None
    ) -> builtins.list[Job]:
        """In order of submission; of all namespaces when none is named. `finished`: of those that
        have ended only so many, the ones that ended last."""
        ...

    async def history(
        self,
        namespace: str | None = None,
        name: str | None = None,
        *,
        uid: str = "",
        limit: int | None = None,
    ) -> builtins.list[RunView]:
        """Runs on record, the last submitted first. A machine keeps the records of runs that were
        replaced, or deleted when their time to live was over; a cluster knows only the jobs that
        are there. With `uid` that run, or JobNotFound says what became of it."""
        ...

    async def stop(self, namespace: str, name: str) -> Job:
        """Abort a live job; end the servers that a finished one left running."""
        ...

    async def delete(self, namespace: str, name: str) -> None:
        """The job, its logs, and every run of that name on record."""
        ...

    async def delete_many(
        self, namespace: str, *, live: bool = False, ended_before: datetime | None = None
    ) -> Removal:
        """All finished jobs of the namespace and every run that ended, or of both those that ended
        before a time; with `live` every job there is. Some hundreds a call: `left` says whether to
        ask again."""
        ...

    async def scale(self, namespace: str, name: str, role: str, replicas: int) -> Job: ...

    async def suspend(self, namespace: str, name: str) -> Job: ...

    async def resume(self, namespace: str, name: str) -> Job: ...

    # What happened to them

    async def pods(self, namespace: str, name: str, uid: str = "") -> builtins.list[PodView]: ...

    async def events(
        self, namespace: str | None, name: str | None, after: int = 0, uid: str = ""
    ) -> builtins.list[EventView]:
        """In order; those after the event with that id. `uid`: of that run of the job."""
        ...

    async def capacity(self, namespace: str | None = None) -> Capacity:
        """All nodes, and the replicas that run in this namespace (None: in all)."""
        ...

    async def storage(self) -> Storage:
        """What is kept of jobs, and how much room it takes; a cluster says nothing of it."""
        ...

    # Streams

    def logs(self, namespace: str, name: str, query: LogQuery) -> AsyncGenerator[LogUpdate, None]:
        """What was written so far. Lines of one pod come in order; pods interleave by time within
        a batch."""
        ...

    def follow(
        self, namespace: str, name: str, query: LogQuery, *, status: bool = True
    ) -> AsyncGenerator[JobUpdate, None]:
        """1. Lines as `logs` gives them, then as they are written; with `status` also the job, now
           and whenever it changed.
        2. Ends when the job is final (or gone) and every log is drained; its last word is then the
           job as it ended, or `Gone`. Servers that run on on purpose do not hold it.
        3. `after` of any batch, in another query, resumes without loss or repetition: across
           rotation, restarts and a broken connection.
        4. `Lost` is told once when the other end is away; it is looked for, and the stream goes on.
        """
        ...

    def watch(
        self, namespace: str | None = None, name: str | None = None
    ) -> AsyncGenerator[WatchUpdate, None]:
        """Every matching job as it is now, oldest first, `Synced`, then each one again when it
        changed and `Gone` when it is no more. Has no end. A change costs what changed, however
        many jobs there are."""
        ...

    def follow_events(
        self, namespace: str | None = None, name: str | None = None, after: int = 0
    ) -> AsyncGenerator[EventView | Lost, None]:
        """Events from the first one kept (or after that id), then as they happen. Has no end."""
        ...
