"""Checks before queueing of a job in containers: the runtime answers, and its images can be had.

What is inside an image is not looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping

from regatta.api.problems import Problem
from regatta.engines.local.on_behalf.members_advice import AT_HOME, Advice
from regatta.engines.local.replicas.runspec import Contained, Process, RunSpec

#: For a container runtime to say which one it is.
_RUNTIME_SECONDS = 10.0
#: For all images of a job. A pull that cannot work says so in this time; a large one goes on later.
_PULL_SECONDS = 15.0


def check_containers(
    runs: Mapping[str, RunSpec], may_pull: bool, advice: Advice = AT_HOME
) -> tuple[list[Problem], list[Problem]]:
    """(errors, warnings) of what runs in containers, by role. A dry run pulls nothing."""
    contained = [
        (role, process, process.container)
        for role, run in runs.items()
        for process in (*run.init, *run.containers)
        # None at all, or one that would be an option of the runtime's, is refused already.
        if process.container is not None
        and process.container.image
        and not process.container.image.startswith("-")
    ]
    if not contained:
        return [], []
    _, first, _ = contained[0]  # one runtime for the whole job
    problems = check_runtime(first, advice)
    if problems:
        return problems, []
    warnings: list[Problem] = []
    deadline = time.monotonic() + _PULL_SECONDS
    asked: set[tuple[str, str]] = set()
    for role, process, container in contained:
        if (container.image, container.pull) in asked:
            continue
        asked.add((container.image, container.pull))
        worse, softer = _check_image(role, process, container, may_pull, deadline)
        problems += worse
        warnings += softer
    return problems, warnings


def check_runtime(process: Process, advice: Advice = AT_HOME) -> list[Problem]:
    """Docker needs a daemon that lets this user in, so being installed is not enough."""
    runtime = process.argv[0]
    if shutil.which(runtime, path=process.env.get("PATH", os.defpath)) is None:
        return [
            Problem(
                "",
                f"{runtime} is not on the job's PATH. {advice.no_runtime}",
            )
        ]
    why = why_no_runtime(runtime, process.env)
    if not why:
        return []
    return [
        Problem(
            "",
            f"{runtime} does not work here ({why}); `{runtime} version` has to succeed first. "
            f"{advice.without_runtime}",
        )
    ]


def why_no_runtime(runtime: str, environment: Mapping[str, str]) -> str:
    """What it says where it does not work; empty: it does."""
    return _ask(runtime, environment, "version")


def _check_image(
    role: str, process: Process, container: Contained, may_pull: bool, deadline: float
) -> tuple[list[Problem], list[Problem]]:
    runtime, image = process.argv[0], container.image
    looked = ("image", "inspect", "--format", "here", image)
    missing = bool(_ask(runtime, process.env, *looked))
    if not missing and container.pull != "always":
        return [], []
    if container.pull == "never":
        return [
            Problem(
                role,
                f"image {image} is not in {runtime}'s store, and imagePullPolicy is Never. Fetch "
                f"it with `{runtime} pull {image}`, build it with `{runtime} build --tag {image} "
                "DIR`, or set imagePullPolicy to IfNotPresent.",
            )
        ], []
    found = f"image {image} is " + (f"not in {runtime}'s store" if missing else "always pulled")
    left = deadline - time.monotonic()
    if not may_pull or left <= 0:
        when = "starts" if may_pull else "is submitted"
        return [], [Problem(role, f"{found}: {runtime} pulls it when the job {when}", "warning")]
    try:
        why = _run(runtime, process.env, left, "pull", "--quiet", image)
    except subprocess.TimeoutExpired:
        slow = f"{found}, and pulling it takes longer than {_PULL_SECONDS:.0f} s: "
        return [], [Problem(role, f"{slow}{runtime} goes on when the job starts", "warning")]
    if not why:
        return [], []
    return [
        Problem(
            role,
            f"{found}, and cannot be{' pulled' if missing else ''} ({why}). Check its name and its "
            f"registry with `{runtime} pull {image}`, or build it with `{runtime} build --tag "
            f"{image} DIR`.",
        )
    ], []


def _ask(runtime: str, environment: Mapping[str, str], *words: str) -> str:
    """Why the runtime does not do this; empty: it does."""
    try:
        return _run(runtime, environment, _RUNTIME_SECONDS, *words)
    except subprocess.TimeoutExpired:
        return f"it said nothing for {_RUNTIME_SECONDS:.0f} s"


def _run(runtime: str, environment: Mapping[str, str], seconds: float, *words: str) -> str:
    """Raises subprocess.TimeoutExpired."""
    program = shutil.which(runtime, path=environment.get("PATH", os.defpath))
    try:
        asked = subprocess.run(
            [program or runtime, *words],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
        )
    except OSError as error:
        return str(error)
    if asked.returncode == 0:
        return ""
    said = asked.stderr.decode(errors="replace").strip().splitlines()
    return said[-1][:300] if said else f"it exited with {asked.returncode}"
