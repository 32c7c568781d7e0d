"""Containers of people who share a machine, run by a real podman: no more than they were given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import InvalidJob
from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from tests.engines.local import jobs
from tests.engines.local.jobs import a_job, a_submission, eventually, texts, wait_for
from tests.engines.local.podman import IMAGE, Podman, open_podman


@pytest.fixture(scope="module")
def store() -> Iterator[Podman]:
    with tempfile.TemporaryDirectory(prefix="podman-") as folder:
        podman = open_podman(Path(folder))
        yield podman
        podman.close()


@pytest.fixture
def shared(tmp_path: Path) -> dict[str, Any]:
    """Fields of the shell with which a server runs containers of a team."""
    for name in ("job", "runs", "allowed/inner"):
        (tmp_path / name).mkdir(parents=True)
    return {
        "directory": str(tmp_path / "job"),
        "runtime": "podman",
        "environment": {"PATH": "/usr/bin:/bin"},
        "folders": (str(tmp_path / "allowed"),),
        "runs": str(tmp_path / "runs"),
    }


def in_container(script: str = "true", **pod: Any) -> dict[str, Any]:
    job = a_job("job", script)
    spec = job["spec"]["worker"]["template"]["spec"]
    spec["containers"][0]["image"] = IMAGE
    spec |= pod
    return job


def with_volume(job: dict[str, Any], source: dict[str, Any], **mount: Any) -> dict[str, Any]:
    spec = job["spec"]["worker"]["template"]["spec"]
    spec["volumes"] = [{"name": "data", **source}]
    mounted = {"name": "data", "mountPath": "/data", **mount}
    spec["containers"][0]["volumeMounts"] = [mounted]
    return job


def test_it_sees_its_work_folder_and_what_is_its_own_and_nothing_of_the_engines(
    engine: Blocking, home: Home, store: Podman, shared: dict[str, Any]
) -> None:
    (Path(shared["directory"]) / "here").write_text("work\n")
    (Path(shared["folders"][0]) / "part").write_text("allowed\n")
    script = (
        "cat here; cat /data/part; echo kept >made; echo x >/scratch/x; "
        'echo \'{"at": 1800000000, "step": 5}\' >>$REGATTA_PROGRESS; '
        "echo launched >$PADDLE_LOG_DIR/workerlog.1; "
        f'test -e {home.path} && echo sees it; while read -r line; do case "$line" in '
        'NoNewPrivs*|CapEff*) echo $line;; esac; done </proc/self/status; echo "done"'
    )
    job = with_volume(in_container(script), {"hostPath": {"path": shared["folders"][0]}})
    spec = job["spec"]["worker"]["template"]["spec"]
    spec["volumes"] += [{"name": "scratch", "emptyDir": {}}, {"name": "shm", "emptyDir": {}}]
    spec["containers"][0]["volumeMounts"] += [
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    shared["environment"] = store.environment
    jobs.submit(engine, job, **shared)
    wait_for(engine, "job", Phase.COMPLETED)
    said = texts(engine.logs("default", "job", LogQuery()))
    assert said[:2] == ["work", "allowed"]
    assert "sees it" not in said
    assert "NoNewPrivs: 1" in said
    rights = int(next(line for line in said if line.startswith("CapEff")).split()[1], 16)
    assert rights & (1 << 13 | 1 << 27 | 1 << 21) == 0  # raw sockets, devices, administration
    assert "[1] launched" in said
    assert (Path(shared["directory"]) / "made").read_text() == "kept\n"
    progress = engine.get("default", "job").status.progress
    assert progress is not None
    assert progress.step == 5
    eventually(lambda: not list(Path(shared["runs"]).glob("*/*/*/volumes")), "its scratch's end")
    engine.delete("default", "job")
    eventually(lambda: not list(Path(shared["runs"]).iterdir()), "the end of all it wrote")


def problems_of(engine: Blocking, job: dict[str, Any], shared: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidJob) as refused:
        engine.submit(*a_submission(job, **{**shared, "no_preflight": True}))
    under = "spec.worker.template."
    return {problem.path.removeprefix(under): problem.message for problem in refused.value.problems}


def test_what_would_widen_its_rights_is_refused_by_field(
    engine: Blocking, shared: dict[str, Any]
) -> None:
    job = in_container(hostNetwork=True, hostPID=True)
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["securityContext"] = {"privileged": True, "capabilities": {"add": ["NET_ADMIN"]}}
    assert set(problems_of(engine, job, shared)) == {
        "spec.hostNetwork",
        "spec.hostPID",
        "spec.containers[0].securityContext.privileged",
        "spec.containers[0].securityContext.capabilities.add",
    }


@pytest.mark.parametrize("inside", ["outside", "allowed/inner", "allowed/link", "none"])
def test_only_the_folders_of_the_settings_can_be_mounted(
    engine: Blocking, shared: dict[str, Any], tmp_path: Path, inside: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "allowed/link").symlink_to(tmp_path / "outside")
    job = with_volume(in_container(), {"hostPath": {"path": str(tmp_path / inside)}})
    [(path, message)] = problems_of(engine, job, shared).items()
    assert path == "spec.volumes[0].hostPath.path"
    assert str(tmp_path / "allowed") in message


def test_a_part_of_a_volume_is_refused(engine: Blocking, shared: dict[str, Any]) -> None:
    """One container could make a link of it before the next one has it mounted."""
    job = with_volume(in_container(), {"emptyDir": {}}, subPath="part")
    assert list(problems_of(engine, job, shared)) == ["spec.containers[0].volumeMounts[0].subPath"]


def test_words_cannot_become_options_of_the_runtime(
    engine: Blocking, shared: dict[str, Any]
) -> None:
    job = with_volume(in_container(), {"emptyDir": {}}, mountPath="/x,source=/etc,target=/y")
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["image"] = "--privileged"
    found = problems_of(engine, job, shared)
    assert "takes for an option" in found["spec.containers[0].image"]
    assert "no comma" in found["spec.containers[0].volumeMounts"]
