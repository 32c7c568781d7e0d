"""From a pod's volumes to directories of this machine.

Every volume that a container mounts becomes a directory and a bind mount from it, or a problem
that names the `--volume` which helps. A mount path that already is that directory needs nothing.
"""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from regatta.api import quantity
from regatta.api.problems import Problem
from regatta.api.source.companions import Companions, PersistentVolume
from regatta.controller.environment.references import TOO_LONG, TooLong
from regatta.engines.local.on_behalf.bounds import why_not_allowed
from regatta.engines.local.on_behalf.looking import Looking
from regatta.engines.local.on_behalf.members_advice import AT_HOME, Advice
from regatta.engines.local.replicas.removing import PAUSE, TURN, remove_tree
from regatta.engines.local.replicas.runspec import VOLUMES_FOLDER, Mount

SHARED_MEMORY = "/dev/shm"


class Place(msgspec.Struct, frozen=True):
    """Where a volume is on this machine."""

    directory: str
    #: What names it, in the pod or on the command line; empty: it is the pod's own.
    named: str = ""
    #: It is ours to make, and what is in it too.
    make: bool = False
    read_only: bool = False


_LOOKING = Looking()


class _Refused(Exception):
    def __init__(self, path: str, message: str) -> None:
        self.problem = Problem(path, message)


class Volumes:
    """The volumes of one pod; collects problems and the folders to make as mounts are asked for."""

    def __init__(
        self,
        pod_spec: dict[str, Any],
        *,
        namespace: str,
        overrides: Mapping[str, str],
        companions: Companions,
        directory: str,
        folder: Path,
        mounted: Callable[[], Iterable[tuple[str, str]]] | None = None,
        looking: Looking = _LOOKING,
        allowed: Sequence[str] | None = None,
        whole: bool = False,
        reader: str = "",
        advice: Advice = AT_HOME,
    ) -> None:
        """`allowed`: the folders that may be mounted; None: any. `whole`: nothing inside of them by
        itself. `reader`: the account that has to be able to read them; empty: nobody asks."""
        self._named = {
            volume.get("name", ""): (number, volume)
            for number, volume in enumerate(pod_spec.get("volumes") or ())
        }
        self._namespace = namespace
        self._overrides = overrides
        self._companions = companions
        self._directory = directory
        self._folder = folder
        self._mounted = mounted or mounted_devices
        self._looking = looking
        self._allowed = allowed
        self._whole = whole
        self._reader = reader
        self._advice = advice
        self.problems: list[Problem] = []
        #: Where something would be mounted that cannot be had.
        self.unmet: list[str] = []
        self.folders: list[str] = []

    def mounts(
        self, container: dict[str, Any], path: str, expand: Callable[[str], str]
    ) -> list[Mount]:
        """The container's mounts, outer ones first."""
        mounts = []
        for number, wanted in enumerate(container.get("volumeMounts") or ()):
            try:
                mounts.append(self._mount(wanted, f"{path}.volumeMounts[{number}]", expand))
            except _Refused as refused:
                self.problems.append(refused.problem)
                self.unmet.append(os.path.normpath(wanted.get("mountPath", "")))
        return sorted(mounts, key=lambda mount: mount.target.count("/"))

    def _mount(self, wanted: dict[str, Any], path: str, expand: Callable[[str], str]) -> Mount:
        name, target = wanted.get("name", ""), wanted.get("mountPath", "")
        if not target.startswith("/"):
            raise _Refused(f"{path}.mountPath", f"is {target!r}; it must begin with /")
        target = os.path.normpath(target)
        place = self._place(name, target, path)
        source = place.directory
        try:
            inner = wanted.get("subPath") or expand(wanted.get("subPathExpr") or "")
        except TooLong as too_long:
            raise _Refused(f"{path}.subPathExpr", TOO_LONG) from too_long
        if inner:
            if self._whole:
                what = "is set; containers of this server mount a volume whole or not"
                raise _Refused(f"{path}.subPath", what)
            if inner.startswith("/") or ".." in inner.split("/"):
                raise _Refused(f"{path}.subPath", f"is {inner!r}; it must stay inside the volume")
            source = os.path.join(source, inner)
        if place.make and source != SHARED_MEMORY:
            self.folders.append(source)
        elif not self._looking.exists(source):
            raise _Refused(path, f"{source} is not there; make it, or {self._advice.volume(name)}")
        return Mount(
            source=self._bounded(source, place),
            target=target,
            read_only=bool(wanted.get("readOnly")) or place.read_only,
            volume=name,
        )

    def _bounded(self, source: str, place: Place) -> str:
        """The same, refused where it is not for this job; without links where that matters."""
        if not place.named or not self._looking.sees:
            return source  # who does not see leaves it to the supervisor, which mounts as it looks
        source = self._allow(source, place.named)
        if self._reader and self._looking.exists(source) and not self._looking.may_read(source):
            why = f"{source} cannot be read by {self._reader}, as whom the job runs"
            raise _Refused(place.named, why)
        return source

    def _allow(self, path: str, named: str) -> str:
        """Before anything is said about it: whether it is there is not for everybody to know."""
        if self._allowed is None or not self._looking.sees:
            return path
        resolved = self._looking.resolved(path)
        if why := why_not_allowed(
            path, resolved, self._allowed, own=self._directory, whole=self._whole
        ):
            raise _Refused(named, why)
        return resolved

    def _place(self, name: str, target: str, path: str) -> Place:
        if name in self._overrides:
            given = f"--volume {name}"
            return Place(os.path.join(self._directory, self._overrides[name]), given)
        if name not in self._named:
            known = ", ".join(sorted(self._named)) or "none"
            raise _Refused(f"{path}.name", f"no volume {name!r}; the pod's volumes: {known}")
        number, volume = self._named[name]
        kind = next(
            (key for key, value in volume.items() if key != "name" and value is not None), ""
        )
        where = f"spec.volumes[{number}].{kind}".rstrip(".")
        source = volume.get(kind) or {}
        match kind:
            case "emptyDir" | "ephemeral" | "":
                return self._scratch(name, source, target)
            case "hostPath":
                return self._host_path(name, source, where)
            case "persistentVolumeClaim":
                return self._claimed(name, source, where)
            case "nfs":
                read_only = bool(source.get("readOnly"))
                return self._nfs(name, source.get("server"), source.get("path"), read_only, where)
        raise _Refused(
            where,
            f"{kind} volumes do not exist on this machine; {self._advice.volume(name)} with what "
            "it holds",
        )

    def _scratch(self, name: str, source: dict[str, Any], target: str) -> Place:
        if target == SHARED_MEMORY:
            return Place(SHARED_MEMORY, make=True)
        return Place(str(self._folder / VOLUMES_FOLDER / name), make=True)

    def _host_path(self, name: str, source: dict[str, Any], where: str) -> Place:
        directory = source.get("path", "")
        if not directory.startswith("/"):
            raise _Refused(f"{where}.path", f"is {directory!r}; it must begin with /")
        self._allow(directory, f"{where}.path")
        if source.get("type") == "DirectoryOrCreate":
            return Place(directory, f"{where}.path", make=True)
        if not self._looking.exists(directory):
            raise _Refused(
                f"{where}.path",
                f"{directory} is not there; make it, or {self._advice.volume(name)}",
            )
        return Place(directory, f"{where}.path")

    def _claimed(self, name: str, source: dict[str, Any], where: str) -> Place:
        claim = source.get("claimName", "")
        volume = self._companions.volume_of(self._namespace, claim)
        if volume is None:
            raise _Refused(
                f"{where}.claimName",
                f"nothing in the job file says which folder claim {claim!r} means; add its "
                "PersistentVolume and PersistentVolumeClaim to the file, or "
                f"{self._advice.volume(name)}",
            )
        read_only = volume.read_only or bool(source.get("readOnly"))
        return self._persistent(name, claim, volume, read_only, where)

    def _persistent(
        self, name: str, claim: str, volume: PersistentVolume, read_only: bool, where: str
    ) -> Place:
        if volume.host_path:
            self._allow(volume.host_path, where)
            if not self._looking.is_folder(volume.host_path):
                raise _Refused(
                    where,
                    f"claim {claim!r} means {volume.host_path} (PersistentVolume {volume.name!r}), "
                    f"which is not there; make it, or {self._advice.volume(name)}",
                )
            return Place(volume.host_path, where, read_only=read_only)
        if volume.nfs_server:
            return self._nfs(name, volume.nfs_server, volume.nfs_path, read_only, where)
        kinds = [key for key, value in volume.spec.items() if isinstance(value, dict)]
        kind = next((k for k in kinds if k not in ("capacity", "claimRef", "nodeAffinity")), "this")
        raise _Refused(
            where,
            f"PersistentVolume {volume.name!r} is a {kind} volume, which cannot be had here; "
            f"{self._advice.volume(name)}",
        )

    def _nfs(
        self, name: str, server: str | None, path: str | None, read_only: bool, where: str
    ) -> Place:
        """A directory of an export that is mounted already, at or above the path wanted."""
        wanted = os.path.normpath("/" + (path or "").lstrip("/"))
        for device, mount_point in self._mounted():
            host, colon, exported = device.partition(":/")
            if not colon or host.strip("[]") != server:
                continue
            exported = os.path.normpath("/" + exported.lstrip("/"))
            if os.path.commonpath([exported, wanted]) == exported:
                inner = os.path.relpath(wanted, exported)
                place = os.path.normpath(os.path.join(mount_point, inner))
                return Place(place, where, read_only=read_only)
        raise _Refused(
            where,
            f"{server}:{wanted} is not mounted on this machine; mount it "
            f"(mount -t nfs {server}:{wanted} /some/folder), or {self._advice.volume(name)}",
        )


def remove_scratch(
    runs: Iterable[Path], tell: Callable[[Path, OSError], None]
) -> threading.Thread | None:
    """Remove what the emptyDir volumes of ended runs hold: it lives as long as its pod.

    Beside the engine's own work, since a training may leave a million files. Links in it are
    removed, never followed; other volumes were only shown to the replica, and are not in there.
    `tell` hears, from that thread, of what cannot be removed, and of which run it is. One that
    somebody still writes to lets the others go first.
    """
    held = [run for run in runs if (run / VOLUMES_FOLDER).is_dir()]
    if not held:
        return None

    def remove() -> None:
        waiting = deque(held)
        while waiting:
            run = waiting.popleft()
            folder = run / VOLUMES_FOLDER
            # A link there is the engine's own, and leads to where the account's lie.
            failure = remove_tree(folder.readlink() if folder.is_symlink() else folder, TURN)
            if failure is not None and failure.errno == errno.ETIMEDOUT:
                time.sleep(PAUSE)
                waiting.append(run)
            elif failure is not None:
                tell(run, failure)

    thread = threading.Thread(target=remove, name="regatta-scratch", daemon=True)
    thread.start()
    return thread


def is_there_already(mount: Mount, looking: Looking = _LOOKING) -> bool:
    """The path is that directory as it is, so nothing need be done."""
    return not mount.read_only and looking.resolved(mount.source) == looking.resolved(mount.target)


def take_shared_memory(
    mounts: list[Mount], pod_spec: dict[str, Any]
) -> tuple[list[Mount], tuple[str, ...]]:
    """Without this machine's own shared memory, in which one container could read another's; and
    the options that give the container as much of its own."""
    shared = next((mount for mount in mounts if mount.source == SHARED_MEMORY), None)
    if shared is None:
        return mounts, ()
    volumes = {volume.get("name"): volume for volume in pod_spec.get("volumes") or ()}
    wanted = ((volumes.get(shared.volume) or {}).get("emptyDir") or {}).get("sizeLimit")
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2  # as on a cluster
    size = math.ceil(quantity.parse(wanted)) if wanted else half
    return [mount for mount in mounts if mount is not shared], ("--shm-size", str(size))


def mounted_devices() -> list[tuple[str, str]]:
    """(device, mount point) of what is mounted here, as /proc/mounts has it."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    pairs = [line.split(" ")[:2] for line in lines]
    return [(device, point.replace("\\040", " ")) for device, point in pairs]
