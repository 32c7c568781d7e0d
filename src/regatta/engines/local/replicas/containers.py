"""The command lines of Docker and Podman, where a replica's image is asked to run."""

from __future__ import annotations

import logging
import math
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from regatta.api import quantity
from regatta.engines.local.replicas.runspec import Contained, Mount, Process
from regatta.engines.local.supervisor.contained import REMOVALS

log = logging.getLogger(__name__)

RUNTIMES = ("docker", "podman")

#: Kubernetes' words for when to pull an image, as runtimes say them. Without a word, what is here
#: is used: the image that somebody has just built on this machine is the one that is meant.
_PULL = {"Always": "always", "IfNotPresent": "missing", "Never": "never"}
#: Podman brings no init of its own; this is the one that it means, and where else than on PATH.
_PODMANS_INIT = "catatonit"
_PODMANS_FOLDERS = (
    "/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman",
)  # fmt: skip

#: For containers of people who share this machine. With the host's network, who may open raw
#: sockets reads what everybody sends there.
PLAIN = (
    "--security-opt", "no-new-privileges", "--cap-drop", "NET_RAW", "--cap-drop", "MKNOD",
)  # fmt: skip

#: A runtime that does not answer must not keep the engine from everything else.
_REMOVAL_SECONDS = 20.0


class _Left(msgspec.Struct):
    env: dict[str, str] = {}
    cleanup: tuple[str, ...] = ()


class _Run(msgspec.Struct):
    """What of run.json tells which containers there may be."""

    init: tuple[_Left, ...] = ()
    containers: tuple[_Left, ...] = ()


_read_run = msgspec.json.Decoder(_Run).decode


def container_name(run_id: str, container: str) -> str:
    return f"regatta-{run_id.replace('/', '-')}-{container}"


def pull_word(policy: str | None) -> str:
    return _PULL.get(policy or "", "missing")


def run_argv(
    runtime: str,
    *,
    name: str,
    image: str,
    env: Mapping[str, str],
    passed: Sequence[str] = (),
    mounts: Sequence[Mount] = (),
    command: Sequence[str] = (),
    args: Sequence[str] = (),
    working_dir: str | None = None,
    gpus: Sequence[str] = (),
    limits: Mapping[str, object] | None = None,
    pull: str = "missing",
    init: Sequence[str] = (),
) -> tuple[str, ...]:
    """The host's network, because a replica's address and ports are the host's own.

    No `--rm`: how the container ended is asked for before it is removed. No log of the runtime's
    own: ours is rotated, and a second one would grow for as long as the job runs. Who removes the
    container by force has waited already, hence no time to stop.
    """
    argv = [runtime, "run", "--network", "host", "--name", name, "--pull", pull]
    argv += ["--log-driver", "none", "--stop-timeout", "0"]
    argv += init
    if runtime == "podman":
        argv.append("--http-proxy=false")  # the client's proxy is not the program's
    for variable, value in env.items():
        argv += ["--env", f"{variable}={value}"]
    for variable in passed:  # the client's own, which no command line shows
        argv += ["--env", variable]
    for mount in mounts:
        # --mount, not --volume: paths may hold colons.
        options = f"type=bind,source={mount.source},target={mount.target}"
        argv += ["--mount", options + (",readonly" if mount.read_only else "")]
    if working_dir:
        argv += ["--workdir", working_dir]
    argv += _limits(limits or {})
    if gpus and runtime == "docker":
        argv += ["--gpus", f'"device={",".join(gpus)}"']
    elif gpus:
        argv += [word for gpu in gpus for word in ("--device", f"nvidia.com/gpu={gpu}")]
    if command:
        argv += ["--entrypoint", command[0]]
    return (*argv, image, *command[1:], *args)


def in_container(
    container: Mapping[str, Any],
    *,
    runtime: str,
    run_id: str,
    client: dict[str, str],
    env: dict[str, str],
    passed: Sequence[str],
    mounts: Sequence[Mount],
    command: Sequence[str],
    args: Sequence[str],
    gpus: Sequence[str],
    cwd: str,
    working_dir: str | None,
    options: Sequence[str] = (),
) -> Process:
    """The runtime's client, which has this container of a pod run. `client` are its own variables,
    `env` the program's."""
    image = container.get("image") or ""
    limits = (container.get("resources") or {}).get("limits") or {}
    pull = pull_word(container.get("imagePullPolicy"))
    name = container_name(run_id, container.get("name", ""))
    return Process(
        name=container.get("name", ""),
        argv=run_argv(
            runtime,
            name=name,
            image=image,
            env=env,
            passed=passed,
            mounts=mounts,
            command=command,
            args=args,
            working_dir=working_dir,
            gpus=gpus,
            limits=limits,
            pull=pull,
            init=(*init_options(runtime, client["PATH"]), *options),
        ),
        env=client,
        cwd=cwd,
        cleanup=remove_argv(runtime, name),
        container=Contained(
            image=image,
            pull=pull,
            env=env,
            memory_limit=str(limits.get("memory") or ""),
            asks_out_of_memory=out_of_memory_argv(runtime, name),
        ),
    )


def _limits(limits: Mapping[str, object]) -> list[str]:
    argv = []
    if cpu := quantity.parse(limits.get("cpu") or 0):
        # Docker refuses more than there are, and less than a hundredth.
        cpus = max(0.01, min(float(cpu), float(os.cpu_count() or 1)))
        argv += ["--cpus", f"{cpus:g}"]
    if memory := quantity.parse(limits.get("memory") or 0):
        amount = str(math.ceil(memory))
        # Memory and swap together: no more of it on disk.
        argv += ["--memory", amount, "--memory-swap", amount]
    return argv


def init_options(runtime: str, path: str) -> tuple[str, ...]:
    """What puts an init before the program, where there is one. Without, the program is the first
    process of its container, and the kernel keeps from it what it has no handler for."""
    if runtime == "docker":  # it brings its own
        return ("--init",)
    found = shutil.which(_PODMANS_INIT, path=os.pathsep.join((path, *_PODMANS_FOLDERS)))
    return ("--init", "--init-path", found) if found else ()


def remove_argv(runtime: str, name: str) -> tuple[str, ...]:
    """Ends a container whose client was killed: it lives in the runtime, not below the client."""
    return (runtime, "rm", "--force", name)


def out_of_memory_argv(runtime: str, name: str) -> tuple[str, ...]:
    return (runtime, "inspect", "--format", "{{.State.OOMKilled}}", name)


def remove_containers(run_file: Path) -> None:
    """End and remove whatever containers a run may have left: no kill of ours reaches those of a
    runtime with a server of its own, and of the others the runtime keeps a record."""
    try:
        run = _read_run(run_file.read_bytes())
    except (OSError, msgspec.DecodeError):
        return
    for left in (*run.init, *run.containers):
        # Podman first has to find out that a container which we killed does not run.
        for _ in range(REMOVALS if left.cleanup else 0):
            if _removed(left):
                break


def _removed(left: _Left) -> bool:
    program = shutil.which(left.cleanup[0], path=left.env.get("PATH", os.defpath))
    try:
        done = subprocess.run(
            [program or left.cleanup[0], *left.cleanup[1:]],
            env=left.env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_REMOVAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("`%s` did not remove what may be left: %s", " ".join(left.cleanup), error)
        return True  # asking again would not help
    return done.returncode == 0
