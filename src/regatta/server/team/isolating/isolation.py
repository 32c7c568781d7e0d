"""Whose process a team's job is, on the machine of its server: `--isolation users|container|none`.

Makes the shell of a submission: where it runs, as whom and with what. A client's own directory,
environment and interpreter mean nothing on a server.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from regatta.api.errors import BadSetting
from regatta.engines.base import Shell
from regatta.engines.local.replicas.containers import RUNTIMES
from regatta.engines.local.replicas.variables import INHERITED, inherited_by_client
from regatta.engines.local.submit.container_check import why_no_runtime
from regatta.server.accounts.unix_accounts import ensure_unix_uid
from regatta.server.accounts.users import User
from regatta.server.records.team_database import Database
from regatta.server.team.isolating.given_uids import REGISTER, GivenUids
from regatta.server.team.isolating.outputs import make_own
from regatta.server.team.isolating.unix_uids import (
    DEFAULT_UIDS,
    check_uids,
    find_account,
    same_named,
    take_next,
    why_given,
    why_no_jobs,
)
from regatta.server.team.isolating.work_folders import HOME, RUNS, WorkFolders, can_be_passed

Kind = Literal["users", "container", "none"]
KINDS: tuple[Kind, ...] = ("users", "container", "none")

#: What the ids of previews begin with, which are no jobs.
PREVIEW = "preview-"
#: Where no settings say otherwise.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORK_OF_ROOT = Path("/var/lib/regatta/work")


@dataclass(frozen=True, slots=True)
class IsolationSettings:
    kind: Kind
    #: None: `default_work`.
    work: Path | None = None
    #: For accounts that are nobody of this machine.
    uids: range = DEFAULT_UIDS
    #: Where the machine keeps which of its servers gave which of them.
    register: Path = REGISTER
    #: Of this machine, those that jobs may mount. None: with `users` whatever the account can
    #: reach, in containers none.
    folders: tuple[str, ...] | None = None
    #: Which interpreter `python` is, by image.
    images: Mapping[str, str] = field(default_factory=dict)
    #: podman or docker; empty: whichever there is.
    runtime: str = ""
    #: Of every job.
    environment: Mapping[str, str] = field(default_factory=dict)


def default_work(kind: Kind, state: Path) -> Path:
    """Beside the state folder; for accounts that cannot reach that place, where they can."""
    beside = state.parent / "work"
    if kind == "users" and not can_be_passed(beside):
        return WORK_OF_ROOT
    return beside


def why_not_uid(user: User, uid: int, work: Path, register: Path) -> str:
    """Why a submit of this user's would be refused with this uid; empty: it would not be, as far as
    can be seen by whoever asks. `work`: where jobs work."""
    if why := why_no_jobs(uid) or why_given(uid, GivenUids(register, work)):
        return why
    try:
        return WorkFolders(work, others_pass=True).why_anothers(str(uid), _owner(user))
    except PermissionError:  # not the server's own user: a submit will tell
        return ""


class Isolation:
    def __init__(self, settings: IsolationSettings, database: Database, state: Path) -> None:
        """`state`: the engine's folder. Raises BadSetting with what to do about it."""
        self.kind = settings.kind
        self._settings = settings
        self._database = database
        self._runtime = _check(settings)
        work = settings.work or default_work(settings.kind, state)
        self._work = WorkFolders(work, others_pass=settings.kind == "users")
        self._work.open(state)
        self._given_uids = GivenUids(settings.register, self._work.path)
        if settings.kind == "users":
            self._given_uids.open()
        #: One at a time, or two would take the same uid for the next.
        self._choosing = asyncio.Lock()
        self._given = {"PATH": PATH, "LANG": "C.UTF-8", **settings.environment}

    def remarks(self) -> tuple[str, ...]:
        """What whoever starts the server has to know."""
        return (*self._about_kind(), *self._about_runtime(), *self._about_images())

    def describe(self) -> str:
        """In a line, for whoever starts the server."""
        where = f"jobs work in {self._work.path}"
        if self.kind != "container":
            return f"{self.kind}; {where}"
        outside = ", and root inside of them is root outside" if os.geteuid() == 0 else ""
        return f"container, run by {self._runtime}{outside}; {where}"

    def _about_runtime(self) -> Iterator[str]:
        if self.kind != "container":
            return
        client = {**inherited_by_client(os.environ), "PATH": self._given["PATH"]}
        if why := why_no_runtime(self._runtime, client):
            yield (
                f"isolation is container, and {self._runtime} does not work here ({why}): no job "
                f"can start until `{self._runtime} version` succeeds"
            )

    def _about_images(self) -> Iterator[str]:
        if self.kind == "container":  # whose images bring their own
            return
        for image, python in self._settings.images.items():
            if shutil.which(python, path=self._given["PATH"]) is None:
                yield (
                    f"images: {image} stands for {python}, which is no program of this machine; "
                    "jobs of that image will not find their python"
                )

    def _about_kind(self) -> tuple[str, ...]:
        if self.kind != "none":
            return ()
        if os.geteuid() == 0:
            return (
                "isolation is none and the server is root: every member's job runs as root, and "
                "can do anything to this machine. Use --isolation users or container.",
            )
        return (
            "isolation is none: jobs run as the server's own user, so members can read each "
            "other's files and the server's, its database and credentials included. Use "
            "--isolation users (as root) or container where that matters.",
        )

    async def shell_for(self, user: User, job_id: str, own_output: str = "") -> Shell:
        """How this user's job runs, in a folder of its own, which is there afterwards. With
        accounts so is `own_output`, where it writes, or its tasks make that themselves. Raises
        NotPossible where the account cannot be anybody of this machine, or that is another's."""
        if self.kind == "users" and user.unix_uid is None:
            async with self._choosing:
                user = await ensure_unix_uid(self._database, user.name, self._choose)
        # Names of accounts may be asked for over the network, and disks take their time.
        return await asyncio.to_thread(self._shell_for, user, job_id, own_output)

    def _shell_for(self, user: User, job_id: str, own_output: str) -> Shell:
        if self.kind == "users":
            return self._as_account(user, job_id, own_output)
        part = _owner(user)
        folder = self._work.of(part, part, os.getuid(), os.getgid())
        job = self._work.make_job(folder, job_id, os.getuid(), os.getgid())
        if self.kind == "none":
            ours = {"HOME": str(folder / HOME), "USER": user.name}
            return self._shell(job, {**ours, **self._inherited()})
        client = {**inherited_by_client(os.environ), "PATH": self._given["PATH"]}
        return replace(
            self._shell(job, client),
            runtime=self._runtime,
            folders=self._settings.folders or (),
            runs=str(folder / RUNS),
            images=None,
        )

    def _as_account(self, user: User, job_id: str, own_output: str) -> Shell:
        assert user.unix_uid is not None
        account = find_account(user.name, user.unix_uid, self._given_uids)
        folder = self._work.of(str(account.uid), _owner(user), account.uid, account.gid)
        if own_output:
            make_own(Path(own_output), user.name, account.uid, account.gid)
        home = account.home if account.home and os.path.isdir(account.home) else folder / HOME
        job = self._work.make_job(folder, job_id, account.uid, account.gid)
        return replace(
            self._shell(job, self._inherited()),
            run_as=account.run_as(str(home)),
            folders=self._settings.folders,
            runs=str(folder / RUNS),
            library=str(self._work.library),
        )

    def forget(self, job_id: str) -> OSError | None:
        """What keeps the folder of a job that is gone from being removed; None: nothing does."""
        return self._work.forget(job_id)

    def forget_previews(self) -> list[OSError]:
        """The same, of previews that were cut off. A job's folder is never taken for a leftover,
        whatever is on record of it: the record may be in another database."""
        return self._work.forget_like(PREVIEW)

    def _choose(self, user: User, held: Collection[int]) -> int:
        named = same_named(user.name, held)
        if named is not None:
            return named
        return take_next(self._settings.uids, self._work.path, held, self._given_uids)

    def _shell(self, directory: Path, environment: Mapping[str, str]) -> Shell:
        given = {k: v for k, v in self._given.items() if not _is_inherited(k)}
        return Shell(
            directory=str(directory),
            environment=dict(environment),
            images=dict(self._settings.images),
            given=given,
        )

    def _inherited(self) -> dict[str, str]:
        return {k: v for k, v in self._given.items() if _is_inherited(k)}


def _owner(user: User) -> str:
    """In another database its number may be another's, but not from that moment on."""
    return f"account-{user.id}-{user.created}"


def _is_inherited(name: str) -> bool:
    return name in INHERITED or name.startswith("LC_")


def _check(settings: IsolationSettings) -> Literal["none", "docker", "podman"]:
    """The runtime."""
    if settings.kind not in KINDS:
        raise BadSetting(f"isolation: is {settings.kind!r}; it is one of {', '.join(KINDS)}")
    _check_folders(settings)
    for image, python in settings.images.items():
        if not python or ("/" in python and not os.path.isabs(python)):
            raise BadSetting(
                f"images: {image} is {python!r}; write the full path of an interpreter, or the "
                "name of one on PATH"
            )
    if settings.kind == "users":
        if os.geteuid() != 0:
            raise BadSetting(
                "isolation: users needs root, who alone can start processes of other accounts; "
                "start the server as root, or choose container or none"
            )
        check_uids(settings.uids)
    if settings.kind != "container":
        return "none"
    if settings.runtime and settings.runtime not in RUNTIMES:
        raise BadSetting(f"runtime: is {settings.runtime!r}; it is podman or docker")
    for runtime in (settings.runtime,) if settings.runtime else ("podman", "docker"):
        if shutil.which(runtime, path=settings.environment.get("PATH", PATH)) is not None:
            return "podman" if runtime == "podman" else "docker"
    wanted = settings.runtime or "podman or docker"
    raise BadSetting(
        f"isolation: container needs {wanted}, which is not on PATH; install it, or choose users "
        "(as root) or none"
    )


def _check_folders(settings: IsolationSettings) -> None:
    folders = settings.folders or ()
    for folder in folders:
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise BadSetting(f"folders: {folder} is no folder of this machine; write its full path")
    resolved = {os.path.realpath(folder) for folder in folders}
    for one, other in itertools.permutations(sorted(resolved), 2):
        if settings.kind == "container" and Path(other).is_relative_to(one):
            raise BadSetting(
                f"folders: {other} is in {one}; a container that has the one could lay the way to "
                "the other anew, so name only one of them"
            )
