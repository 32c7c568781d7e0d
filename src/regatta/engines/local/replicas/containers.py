"""The command line that runs a replica's image, where Docker or Podman is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regatta.engines.local.replicas.runspec import Mount

RUNTIMES = ("docker", "podman")


def container_name(run_id: str, container: str) -> str:
    return f"regatta-{run_id.replace('/', '-')}-{container}"


def run_argv(
    runtime: str,
    *,
    name: str,
    image: str,
    env: Mapping[str, str],
    mounts: Sequence[Mount] = (),
    command: Sequence[str] = (),
    args: Sequence[str] = (),
    working_dir: str | None = None,
    gpus: Sequence[str] = (),
) -> tuple[str, ...]:
    """The host's network, because a replica's address and ports are the host's own."""
    argv = [runtime, "run", "--rm", "--network", "host", "--name", name]
    for variable, value in env.items():
        argv += ["--env", f"{variable}={value}"]
    for mount in mounts:
        # --mount, not --volume: paths may hold colons.
        options = f"type=bind,source={mount.source},target={mount.target}"
        argv += ["--mount", options + (",readonly" if mount.read_only else "")]
    if working_dir:
        argv += ["--workdir", working_dir]
    if gpus and runtime == "docker":
        argv += ["--gpus", f'"device={",".join(gpus)}"']
    elif gpus:
        argv += [word for gpu in gpus for word in ("--device", f"nvidia.com/gpu={gpu}")]
    if command:
        argv += ["--entrypoint", command[0]]
    return (*argv, image, *command[1:], *args)


def remove_argv(runtime: str, name: str) -> tuple[str, ...]:
    """Ends a container whose client was killed: it lives in the runtime, not below the client."""
    return (runtime, "rm", "--force", name)
