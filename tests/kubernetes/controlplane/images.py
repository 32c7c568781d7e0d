"""Images for the real node, built from Dockerfiles without any registry.

podman builds them in a store of its own inside the test cache, on a Debian base that debootstrap
makes once. A Dockerfile takes its base as `ARG BASE`.
"""

from __future__ import annotations

import configparser
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.kubernetes.controlplane.build import cache_folder, program

BASE = "registry.local/python:3.11"
PAUSE = "registry.local/pause:1"
_LIMITS = {"nofile": 1024, "nproc": 1000}
_PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"


class CannotBuildImage(Exception):
    """podman or debootstrap failed; the message ends with what it said."""


def base_image() -> str:
    """A Debian image with Python, in podman's store; made on first use (about a minute)."""
    if _exists(BASE):
        return BASE
    with _lock("base-image"):
        if not _exists(BASE):
            archive = _debian_archive()
            with archive.open("rb") as packed:
                changes = ("--change", "ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
                _podman("import", *changes, "-", BASE, stdin=packed.fileno())
    return BASE


def build_image(
    dockerfile_folder: Path,
    tag: str,
    base: str | None = None,
    *,
    dockerfile: str = "Dockerfile",
    context: Path | None = None,
    build_args: Mapping[str, str] | None = None,
) -> str:
    """Build a Dockerfile on `base` (our Debian base if None); returns the tag."""
    arguments = {"BASE": base or base_image(), **(build_args or {})}
    with tempfile.TemporaryDirectory(prefix="regatta-build-") as scratch:
        _podman(
            "build",
            *("--network=host", "--isolation=chroot", "--pull=never", "--tag", tag),
            *_pip_settings(Path(scratch)),
            *(part for item in arguments.items() for part in ("--build-arg", "=".join(item))),
            *("--file", str(dockerfile_folder / dockerfile)),
            str(context or dockerfile_folder),
        )
    return tag


def save_images(archive: Path, *tags: str) -> Path:
    """Write images as one archive that containerd imports; layers they share are in it once."""
    archive.unlink(missing_ok=True)
    form = ("--multi-image-archive", "--format", "docker-archive")
    _podman("save", *form, "--output", str(archive), *tags)
    return archive


def remove_image(tag: str) -> None:
    _podman("rmi", "--force", tag)


def remove_old_leftovers() -> None:
    """Remove layers that no image needs any more and no build of the last day made."""
    _podman("image", "prune", "--force", "--filter", "until=24h")


def write_pause_image(archive: Path) -> Path:
    """The image of every pod's first container: one layer that holds one program."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as packed:
        packed.add(program("pause"), arcname="pause")
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps(
        {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(
                os.uname().machine, os.uname().machine
            ),
            "os": "linux",
            "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    manifest = json.dumps(
        [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    ).encode()
    with tarfile.open(archive, "w") as image:
        for name, content in (
            ("config.json", config),
            ("layer.tar", layer.getvalue()),
            ("manifest.json", manifest),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            image.addfile(entry, io.BytesIO(content))
    return archive


def _debian_archive() -> Path:
    release = _os_release()
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(f"{release}{_PACKAGES}".encode()).hexdigest()[:12]
    archive = folder / f"debian-{release}-{name}.tar"
    if archive.exists():
        return archive
    print(f"making a Debian {release} base image with debootstrap (once)", file=sys.stderr)
    tree = Path(tempfile.mkdtemp(prefix="debootstrap-", dir=folder))
    try:
        mirror = _mirror()
        command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", release, str(tree)]
        _run([*command, *([mirror] if mirror else [])])
        shutil.rmtree(tree / "var/cache/apt", ignore_errors=True)
        shutil.rmtree(tree / "var/lib/apt/lists", ignore_errors=True)
        # As images that carry Python do: `python` is the command Dockerfiles write.
        (tree / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        partial = archive.with_suffix(".partial")
        _run(["tar", "-C", str(tree), "--one-file-system", "-cf", str(partial), "."])
        partial.rename(archive)
    finally:
        for mount in ("proc", "sys", "dev/pts", "dev"):
            subprocess.run(["umount", "-l", tree / mount], capture_output=True, check=False)
        shutil.rmtree(tree, ignore_errors=True)
    return archive


def _os_release() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    return "stable"


def _mirror() -> str | None:
    """The mirror this machine's own apt uses; debootstrap's default where none is found."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    plain = [uri for uri in said.stdout.split() if uri.rstrip("/").endswith("/debian")]
    return plain[0] if plain else None


def _pip_settings(scratch: Path) -> list[str]:
    """Show this machine's pip settings and certificates to the build, without keeping them."""
    merged: dict[str, str] = {}
    for path in (Path("/etc/pip.conf"), Path.home() / ".config/pip/pip.conf"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(path)
        if parser.has_section("global"):
            merged.update(parser.items("global"))
    for variable, value in os.environ.items():
        if variable.startswith("PIP_") and variable != "PIP_CONFIG_FILE":
            merged[variable[4:].lower().replace("_", "-")] = value
    mounted = [Path("/etc/ssl/certs/ca-certificates.crt")]
    mounted += [Path(v) for k in ("cert", "find-links") if (v := merged.get(k, "")).startswith("/")]
    settings = "\n".join(f"{key} = {value}" for key, value in merged.items())
    (scratch / "pip.conf").write_text(f"[global]\n{settings}\n")
    volumes = ["--volume", f"{scratch / 'pip.conf'}:/etc/pip.conf:ro"]
    for path in dict.fromkeys(mounted):
        if path.exists():
            volumes += ["--volume", f"{path}:{path}:ro"]
    return volumes


def _exists(tag: str) -> bool:
    return _podman("image", "exists", tag, check=False).returncode == 0


def _podman(
    *arguments: str, stdin: int | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    store = cache_folder() / "podman"
    store.mkdir(parents=True, exist_ok=True)
    settings = store / "containers.conf"
    # podman would raise these, which a machine without CAP_SYS_RESOURCE refuses.
    limits = ", ".join(f'"{name}={limit}:{limit}"' for name, limit in _LIMITS.items())
    settings.write_text(
        f"[containers]\ndefault_ulimits = [{limits}]\n"
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
    )
    command = ["podman", "--root", str(store / "root"), "--runroot", str(store / "run")]
    return _run(
        [*command, *arguments],
        stdin=stdin,
        check=check,
        environment={"CONTAINERS_CONF": str(settings)},
    )


def _run(
    command: list[str],
    *,
    stdin: int | None = None,
    check: bool = True,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, **(environment or {})},
    )
    if check and ended.returncode != 0:
        tail = "\n".join((ended.stdout + ended.stderr).splitlines()[-25:])
        raise CannotBuildImage(f"`{' '.join(command)}` failed:\n{tail}")
    return ended


class _lock:
    def __init__(self, name: str) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)
        self._path = cache_folder() / f"{name}.lock"

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()
