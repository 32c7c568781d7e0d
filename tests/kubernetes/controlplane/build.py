"""Builds the cluster's programs from source, once, into a cache outside the checkout.

    python -m tests.kubernetes.controlplane.build [name...]

A cold build takes minutes and 5 GB of Go caches. The caches live in a work folder that is removed
when the programs are there; what stays is about half a gigabyte. One builder works at a time: the
others wait at its lock and find the programs ready. A module is built whole, because its second
program costs seconds while the first costs minutes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.kubernetes.controlplane.programs import CLUSTER, MODULE_LIST, Module, module_of

#: Programs that a folder named by KUBEBUILDER_ASSETS may provide instead.
ASSETS = ("etcd", "kube-apiserver", "kubectl")
_OLDEST_GO = (1, 21)  # the first that fetches the newer toolchain which a go.mod asks for
_ATTEMPTS, PAUSE_SECONDS = 4, 10.0
#: In what Go says when it is Go itself that crashed, as it does once in hours of compiling.
_CRASHED = "\ngoroutine "


class CannotBuild(Exception):
    """A program could not be built; the message says what to do."""


def cache_folder() -> Path:
    """$REGATTA_TEST_CACHE, or ~/.cache/regatta-tests."""
    named = os.environ.get("REGATTA_TEST_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "regatta-tests"


def program(name: str) -> Path:
    """The program of that name, built first if it has to be."""
    asset = _asset(name)
    if asset is not None:
        return asset
    module = module_of(name)
    build(name)
    return _folder(module) / name


def kept(name: str) -> Path:
    """A folder of data files kept from a module's source, such as `volcano-crds`."""
    build(name)
    return _folder(module_of(name)) / name


def missing(*names: str) -> list[Module]:
    """The modules among these (or of these programs) that are not built yet, each once."""
    wanted = {module_of(name).name for name in names if _asset(name) is None}
    return [module for module in MODULE_LIST if module.name in wanted and not _is_built(module)]


def build(*names: str) -> None:
    """Build what is missing of these modules and programs; all of the cluster if none is named."""
    names = names or CLUSTER
    if not missing(*names):
        return
    root = cache_folder()
    root.mkdir(parents=True, exist_ok=True)
    with _only_builder(root):
        modules = missing(*names)  # another builder may have made them meanwhile
        if not modules:
            return
        work = root / "work"
        _remove(work)  # what a killed builder left
        started = time.monotonic()
        _say(f"building {', '.join(m.name for m in modules)} into {root} (minutes, once)", started)
        try:
            go = find_go(work)
            for module in modules:
                _build_module(go, module, work, started)
        finally:
            _remove(work)
        _say("all built", started)


def find_go(work: Path) -> str:
    """$GO, or the `go` of the PATH or of /usr/local/go, or one of our own, for this build only."""
    named = os.environ.get("GO")
    for go in [named] if named else [shutil.which("go"), "/usr/local/go/bin/go"]:
        if go and os.access(go, os.X_OK) and _is_new_enough(go):
            return go
    if named:
        raise CannotBuild(
            f"GO names {named}, which is no Go of version 1.21 or newer. Name another, or none: "
            "then one is installed for this build."
        )
    return _install_go(work)


def _is_new_enough(go: str) -> bool:
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    version = re.match(r"go(\d+)\.(\d+)", said.stdout)
    return version is None or (int(version[1]), int(version[2])) >= _OLDEST_GO


def _install_go(work: Path) -> str:
    checkout = Path(__file__).parents[3]
    command = [str(checkout / "scripts/make-venv"), str(work / "go"), "requirements/go.txt"]
    environment = {**os.environ, "PYTHON": sys.executable}
    if subprocess.run(command, cwd=checkout, env=environment, check=False).returncode:
        raise CannotBuild(
            "The test cluster is built with Go, and none was found or could be installed. Install "
            "Go 1.21 or newer and put it on PATH, or name it in $GO."
        )
    return str(work / "go/bin/go")


def _asset(name: str) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder or name not in ASSETS:
        return None
    asset = Path(folder) / name
    return asset if asset.exists() else None


def _folder(module: Module) -> Path:
    return cache_folder() / f"{module.name}-{module.digest()}"


def _is_built(module: Module) -> bool:
    return _folder(module).is_dir()  # it gets its name when everything is in it


def _build_module(go: str, module: Module, work: Path, started: float) -> None:
    finished = _folder(module)
    partial = finished.with_name(finished.name + ".partial")
    _remove(partial)
    partial.mkdir(parents=True)
    environment = {
        **os.environ,
        "GOCACHE": str(work / "build"),
        "GOMODCACHE": str(work / "modules"),
        "GOTMPDIR": str(work),
        "GOWORK": "off",
        "GOFLAGS": "-modcacherw -mod=readonly",
        "CGO_ENABLED": "0",
    }
    if module.unlisted:
        environment["GONOSUMDB"] = ",".join(module.unlisted)
    work.mkdir(parents=True, exist_ok=True)
    _say(f"{module.name}: fetching sources", started)
    _go(go, module, environment, "mod", "download")
    for name, package in module.programs.items():
        _say(f"{module.name}: compiling {name}", started)
        flags = ("-trimpath", "-buildvcs=false", "-ldflags", " ".join(module.ldflags))
        _go(go, module, environment, "build", *flags, "-o", str(partial / name), package)
    for path, folder, name in module.keep:
        source = _go(go, module, environment, "list", "-m", "-f", "{{.Dir}}", path).strip()
        shutil.copytree(Path(source) / folder, partial / name)
    partial.rename(finished)


def _go(go: str, module: Module, environment: dict[str, str], *arguments: str) -> str:
    nice = [found, "-n", "19"] if (found := shutil.which("nice")) else []
    # The module proxy turns away bursts now and then. What was fetched or compiled stays so.
    for attempt in range(1, _ATTEMPTS + 1):
        ended = subprocess.run(
            [*nice, go, *arguments],
            cwd=module.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode == 0:
            return ended.stdout
        if arguments[0] != "mod" and _CRASHED not in ended.stderr:
            break
        if attempt < _ATTEMPTS:
            time.sleep(PAUSE_SECONDS * attempt)
    lines = [line for line in ended.stderr.splitlines() if "downloading" not in line]
    raise CannotBuild(
        f"`go {' '.join(arguments)}` failed in {module.folder}:\n" + "\n".join(lines[-20:])
    )


@contextlib.contextmanager
def _only_builder(root: Path) -> Iterator[None]:
    with (root / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building the test cluster; waiting for it", time.monotonic())
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _say(message: str, started: float) -> None:
    print(f"[{time.monotonic() - started:5.0f} s] {message}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    try:
        build(*arguments)
    except (CannotBuild, KeyError) as problem:
        print(problem.args[0], file=sys.stderr)
        return 1
    for name in arguments or CLUSTER:
        print(_folder(module_of(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
