"""Jobs on the real node as a person at a terminal handles them: kubectl, files, logs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.controlplane.build import program
from tests.kubernetes.controlplane.processes import Daemon
from tests.kubernetes.installation import ROOT, operator_log
from tests.kubernetes.operator.running import Jobs
from tests.kubernetes.training.container_images import WIDE_AND_DEEP

EXAMPLES = ROOT / "deploy/examples"
#: More than a job needs on a busy machine, less than a test's own limit.
PATIENCE_SECONDS = 240
#: What kubectl says besides, as when an API group does not answer while it asks what there is.
_REMARK = re.compile(r"[EWI]\d{4} ")
FINAL = ("Completed", "Failed", "Aborted")


class TrainingJobs(Jobs):
    """The jobs of one namespace."""

    def kubectl(self, *arguments: str, **options: Any) -> str:
        ended = self.plane.kubectl("-n", self.namespace, *arguments, **options)
        return ended.stdout

    def apply(self, file: str) -> str:
        """`kubectl apply -f deploy/examples/<file>`, unchanged; returns the job's name."""
        name = str(example(file)["metadata"]["name"])
        said = self.kubectl("apply", "-f", str(EXAMPLES / file))
        assert said == f"paddlejob.batch.paddlepaddle.org/{name} created\n"
        return name

    def wait_for_end(self, name: str) -> dict[str, Any]:
        """The status with which the job ended."""
        try:
            return self.wait(name, lambda s: s.get("phase") in FINAL, "its end", PATIENCE_SECONDS)
        except TimeoutError as problem:
            raise TimeoutError(
                f"{problem}\n{self.logs(name)}\n{operator_log(self.plane)}"
            ) from None

    def logs(self, name: str) -> str:
        """Everything that the job's pods said, each line after its pod's name."""
        selector = f"batch.paddlepaddle.org/job-name={name}"
        return self.kubectl("logs", "--selector", selector, "--tail=-1", "--prefix", check=False)

    @contextlib.contextmanager
    def watched(self, folder: Path) -> Iterator[list[list[str]]]:
        """The rows of `kubectl get pdj --watch`, which are all there when the block has ended."""
        log = folder / "get-pdj.txt"
        log.touch()
        kubeconfig = str(self.plane.admin_kubeconfig)
        command = (program("kubectl"), "--kubeconfig", kubeconfig, "-n", self.namespace)
        home = {"HOME": str(self.plane.folder)}  # its discovery cache stays in there
        watch = Daemon("kubectl", (*command, "get", "pdj", "--watch"), log, home)
        rows: list[list[str]] = []
        watch.start()
        try:
            yield rows
        finally:
            watch.stop()
            lines = log.read_text().splitlines()
            rows += [line.split() for line in lines if not _REMARK.match(line)]


def example(file: str) -> dict[str, Any]:
    """The job of one of deploy/examples."""
    documents = yaml.safe_load_all((EXAMPLES / file).read_text())
    (job,) = (d for d in documents if d["kind"] == "PaddleJob")
    found: dict[str, Any] = job
    return found


def a_short_job(name: str, script: str, replicas: int = 1) -> dict[str, object]:
    """One that runs a line of shell instead of training; its pods stay."""
    container = {
        "name": "paddle",
        "image": WIDE_AND_DEEP,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
    }
    worker = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"cleanPodPolicy": "Never", "worker": worker},
    }
