"""The client that nobody here wrote: OpenPAI's own JavaScript SDK, and the end-to-end suite in it.

Fetched with npm, once, into the tests' cache. For a run it is copied beside its packages, told
which server to speak to, and asked for what it found as JSON.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.kubernetes.controlplane.build import cache_folder

NAME = "@microsoft/openpai-js-sdk"
#: The SDK, and what its suite needs beside it.
PACKAGES = {
    NAME: "0.1.5",
    "ajv": "6.12.6",
    "chai": "4.5.0",
    "dirty-chai": "2.0.1",
    "mocha": "8.4.0",
    "nock": "12.0.3",
}
_TRIES = 4


class CannotFetch(Exception):
    """npm is not there, or could not; the message says what to do."""


class Outcome(NamedTuple):
    passed: list[str]
    pending: list[str]
    #: Title and message of each.
    failed: dict[str, str]
    #: What it printed, for a person.
    said: str


def sdk_folder() -> Path:
    """Where its packages are, fetched first if they have to be."""
    wanted = hashlib.sha256(json.dumps(PACKAGES, sort_keys=True).encode()).hexdigest()[:12]
    finished = cache_folder() / f"openpai-js-sdk-{wanted}"
    if finished.is_dir():  # it gets its name when everything is in it
        return finished
    finished.parent.mkdir(parents=True, exist_ok=True)
    with (finished.parent / "openpai-js-sdk.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.is_dir():
            _fetch(finished)
    return finished


def swagger() -> dict[str, Any]:
    """The contract that the SDK ships. The one schema that is elsewhere is any object."""
    path = sdk_folder() / "node_modules" / NAME / "lib/src/api/v2/swagger.yaml"
    contract: dict[str, Any] = yaml.safe_load(path.read_text())
    contract["components"]["schemas"]["JobProtocol"] = {"type": "object"}
    return contract


def run_suite(url: str, username: str, password: str, token: str) -> Outcome:
    """`url`: of the server, as `http://127.0.0.1:1234`. `token`: of an admin who signed in."""
    with tempfile.TemporaryDirectory(prefix="regatta-openpai-sdk-") as folder:
        work = Path(folder)
        (work / "node_modules").symlink_to(sdk_folder() / "node_modules")
        lib = work / "lib"
        shutil.copytree(work / "node_modules" / NAME / "lib", lib)
        (work / "swagger.yaml").write_text(yaml.safe_dump(swagger(), sort_keys=False))
        (lib / ".tests").mkdir(exist_ok=True)
        cluster = {
            "alias": "regatta",
            "username": username,
            "password": password,
            "token": token,
            "rest_server_uri": f"{url}/rest-server",
        }
        (lib / ".tests/clusters.json").write_text(json.dumps([cluster]))
        cases = ["tests/common/apiTestCaseGenerator.js", "--", str(work / "swagger.yaml")]
        # Job names are chosen here, at random: each run has its own.
        _node(lib, *cases, ".tests/apiTestCase.json")
        mocha = str(work / "node_modules/mocha/bin/mocha")
        report = work / "report.json"
        said = _node(
            lib,
            mocha,
            "--timeout",
            "20000",
            "--reporter",
            "json",
            "tests/api_tests/v2/api.v2.spec.js",
            report=report,
        )
        found = json.loads(report.read_text())
    return Outcome(
        passed=[case["fullTitle"] for case in found["passes"]],
        pending=[case["fullTitle"] for case in found["pending"]],
        failed={case["fullTitle"]: case["err"].get("message", "") for case in found["failures"]},
        said=said,
    )


def _node(folder: Path, *words: str, report: Path | None = None) -> str:
    """mocha 8 writes its report among all that the suite prints: the last object is the report."""
    command = [_program("node"), *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if report is not None:
        start = ended.stdout.rfind('{\n  "stats": {')
        assert start >= 0, ended.stdout[-4000:] + ended.stderr[-4000:]
        report.write_text(ended.stdout[start:])
    else:
        assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CannotFetch(
            f"OpenPAI's own client is a program for Node.js, and there is no `{name}` here. "
            "Install Node.js 20 or newer with npm and put both on PATH."
        )
    return found


def _fetch(finished: Path) -> None:
    partial = finished.with_name(finished.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    (partial / "package.json").write_text('{"private": true}')
    print(f"fetching {NAME} into {finished} (half a minute, once)", file=sys.stderr, flush=True)
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--save-exact"]
    for attempt in range(1, _TRIES + 1):
        ended = subprocess.run(
            [_program("npm"), "install", *quiet, *wanted],
            cwd=partial,
            env={**os.environ, "npm_config_loglevel": "error"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode == 0:
            partial.rename(finished)
            return
        if attempt < _TRIES:  # a registry turns away bursts now and then
            time.sleep(5 * attempt)
    raise CannotFetch(f"npm could not fetch {', '.join(wanted)}:\n{ended.stderr[-2000:]}")
