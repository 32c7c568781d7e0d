"""What a job of somebody else's may not have of this machine: folders beyond those that a server's
settings name, and rights beyond those of a plain container."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from regatta.api.problems import Problem
from regatta.engines.local.replicas.runspec import Mount

#: A runtime's `--mount` is a line of comma-separated values.
_SPLITS_A_MOUNT = re.compile(r'[,"\n\r]')

#: Podman also makes images of folders and archives, which it reads with its own rights.
_OF_FILES = re.compile(
    r"(dir|oci|oci-archive|docker-archive|docker-daemon|containers-storage|ostree|sif|tarball):"
)
#: What changes which code a program loads or whom it trusts, and how runtimes are told where
#: things are.
_READ_BY_CLIENTS = re.compile(
    r"(LD_|DYLD_|GLIBC_|GCONV_|MALLOC_|XDG_|DOCKER_|CONTAINERS?_|PODMAN_|BUILDAH_|DBUS_|SSL_CERT_"
    r"|CRUN|RUNC|CONMON|NETAVARK|CNI_|LISTEN_|SYSTEMD_|BASH|PYTHON|PERL|LC_|NVIDIA_|CUDA_|_)"
    r"|(LOCPATH|NLSPATH|RES_OPTIONS|HOSTALIASES|LOCALDOMAIN|TMP|TMPDIR|TEMP|TEMPDIR|STORAGE_DRIVER"
    r"|STORAGE_OPTS|REGISTRY_AUTH_FILE|SSH_AUTH_SOCK|SSH_ASKPASS|HTTPS?_PROXY|FTP_PROXY|ALL_PROXY"
    r"|NO_PROXY|GODEBUG|GOTRACEBACK|GOGC|GOMAXPROCS|GOMEMLIMIT|NOTIFY_SOCKET|ENV|IFS|SHELL|PATH"
    r"|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|TZDIR|PWD)$"
)
_OF_POD = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "runtimeClassName")
_SECURITY = (
    "privileged", "allowPrivilegeEscalation", "procMount", "seLinuxOptions", "seccompProfile",
    "appArmorProfile", "windowsOptions", "sysctls",
)  # fmt: skip


def why_not_allowed(
    path: str, resolved: str, folders: Sequence[str], *, own: str = "", whole: bool = False
) -> str:
    """What is wrong with mounting it, in a sentence; empty: nothing. `own`: the job's work folder,
    which nobody has to allow. `whole`: it has to be one of the folders itself. A container runtime
    finds the way to a folder as root, and a container can lay the way through its own anew."""
    allowed = [os.path.realpath(folder) for folder in (*folders, own) if folder]
    if resolved in allowed or (not whole and _is_within(resolved, allowed)):
        return ""
    leads = f", which leads to {resolved}," if resolved != os.path.normpath(path) else ""
    if whole and _is_within(resolved, allowed):
        folder = next(above for above in allowed if _is_within(resolved, [above]))
        return f"{path}{leads} is in {folder}, which containers of this server mount whole or not"
    if not folders:
        return f"{path}{leads} is a folder of the server's, and its settings allow none"
    either = "" if whole else ", nor in one"
    named = ", ".join(folders)
    return f"{path}{leads} is not one of the folders that the server allows{either}: {named}"


def _is_within(path: str, folders: Sequence[str]) -> bool:
    """All of them free of links."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def not_for_a_runtime(
    path: str, image: str, mounts: Iterable[Mount], secret: Iterable[str]
) -> Iterator[Problem]:
    """What of a container at this path a runtime would take for something else than it is.
    `secret`: variables whose values its client hands on, and so has itself."""
    if _OF_FILES.match(image):
        yield Problem(
            f"{path}.image",
            f"is {image!r}, which is made of files of the server's machine; name an image of a "
            "registry",
        )
    for mount in mounts:
        if _SPLITS_A_MOUNT.search(mount.source + mount.target):
            yield Problem(
                f"{path}.volumeMounts",
                f"mounts {mount.source!r} at {mount.target!r}; a container's mount can have no "
                "comma, quote or line end in its path",
            )
    for name in secret:
        if _READ_BY_CLIENTS.match(name.upper()):
            yield Problem(
                f"{path}.env[{name}]",
                "is a variable that programs of the server read themselves, so it cannot come from "
                "a secret; give it another name",
            )


def widened_rights(spec: dict[str, Any]) -> Iterator[Problem]:
    """Every field of a pod that asks for more than a plain container has."""
    for field in _OF_POD:
        if spec.get(field):
            yield Problem(f"spec.{field}", _refusal(spec[field]))
    yield from _of_security(spec.get("securityContext") or {}, "spec.securityContext")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(kind) or ()):
            path = f"spec.{kind}[{number}]"
            security = container.get("securityContext") or {}
            yield from _of_security(security, f"{path}.securityContext")
            added = (security.get("capabilities") or {}).get("add")
            if added:
                yield Problem(f"{path}.securityContext.capabilities.add", _refusal(added))
            if container.get("volumeDevices"):
                yield Problem(f"{path}.volumeDevices", _refusal("there"))


def _of_security(security: dict[str, Any], path: str) -> Iterator[Problem]:
    for field in _SECURITY:
        if security.get(field):
            yield Problem(f"{path}.{field}", _refusal(security[field]))


def _refusal(found: object) -> str:
    return (
        f"is {_short(found)}; the server runs everybody's jobs in plain containers, which may have "
        "no more rights than that. Leave it out"
    )


def _short(found: object) -> str:
    text = str(found).lower() if isinstance(found, bool) else str(found)
    return text if len(text) <= 80 else text[:77] + "..."
