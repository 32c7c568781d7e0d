"""What replicas print, whoever keeps it: real programs, here and on a real node, directly and
through a server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from regatta.api.errors import NotPossible, RegattaError
from regatta.api.job import Job, Phase
from regatta.client.connect import connect
from regatta.engines.base import JobUpdate, LogBatch, LogQuery, LogUpdate, Shell, Submission
from regatta.engines.blocking import Blocking
from regatta.engines.kubernetes.engine.engine import open_cluster
from regatta.server.team.account_namespaces import account_namespace
from tests.conformance.conftest import ways
from tests.conformance.stages import a_shell
from tests.doors import Regatta, eventually
from tests.engines.updates import lines_of
from tests.kubernetes.conftest import real_cluster, real_namespace, real_turn
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.images import base_image
from tests.kubernetes.controlplane.node import import_image
from tests.kubernetes.operator.conftest import install_crd
from tests.kubernetes.operator.running import RunningOperator
from tests.server.team.serving import TeamServer

__all__ = ["real_cluster", "real_namespace", "real_turn"]

COUNTING = "for i in $(seq 1 30); do echo line $i of $PADDLE_TRAINER_ID; sleep 0.05; done"
ALL = LogQuery()


class Printing(NamedTuple):
    """An engine on which programs really print."""

    engine: Blocking
    namespace: str
    image: str
    shell: Shell | None

    def run(self, script: str, *, workers: int = 1, wait: bool = True) -> None:
        container = {
            "name": "main",
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
        }
        pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
        document: dict[str, Any] = {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": "said"},
            "spec": {
                "cleanPodPolicy": "Never",
                "worker": {"replicas": workers, "template": {"spec": pod}},
            },
        }
        submission = Submission(text=json.dumps(document), namespace=self.namespace, replace=True)
        self.engine.submit(submission, self.shell)
        if wait:
            eventually(lambda: self.phase is Phase.COMPLETED, "the job's end")

    @property
    def phase(self) -> Phase | None:
        return self.engine.get(self.namespace, "said").status.phase

    def logs(self, query: LogQuery = ALL) -> Iterator[LogUpdate]:
        return self.engine.logs(self.namespace, "said", query)

    def follow(self, query: LogQuery = ALL) -> Iterator[JobUpdate]:
        return self.engine.follow(self.namespace, "said", query)


@pytest.fixture(params=ways("real_cluster"))
def printing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Printing]:
    give = request.getfixturevalue
    if request.param == "local":
        yield Printing(give("engine"), "default", "none", a_shell(tmp_path))
    elif request.param == "local through REST":
        yield Printing(give("local_server"), "said", "none", a_shell(tmp_path))
    elif request.param == "local for a team":
        team: TeamServer = give("team_server")
        member = connect(team.url, token=team.token("printer"))
        yield Printing(member, account_namespace("printer"), "none", None)
    else:
        cluster: Access = give("real_cluster")
        namespace = give("real_namespace")
        install_crd(cluster)  # type: ignore[arg-type]
        image = import_image(base_image())
        with (
            RunningOperator(cluster.admin_kubeconfig, namespace=namespace),
            _opened(request.param, cluster.admin_kubeconfig, tmp_path) as engine,
        ):
            yield Printing(engine, namespace, image, None)


@contextlib.contextmanager
def _opened(way: str, kubeconfig: Path, folder: Path) -> Iterator[Blocking]:
    if way == "kubernetes":
        engine = open_cluster(kubeconfig, None, "")
        try:
            yield engine
        finally:
            engine.close()
    else:
        words = ("--engine", "kubernetes", "--kubeconfig", str(kubeconfig))
        with Regatta(folder).serving(*words) as engine:
            yield engine


def test_what_was_printed_is_read_cut_and_searched(printing: Printing) -> None:
    before = datetime.now(UTC)
    printing.run(COUNTING, workers=2)
    for index in (0, 1):
        expected = [f"line {number} of {index}" for number in range(1, 31)]
        assert lines_of(printing.logs(), f"worker-{index}") == expected
    assert lines_of(printing.logs(LogQuery(tail=2))) == ["line 29 of 0", "line 30 of 0"]
    assert lines_of(printing.logs(LogQuery(tail=0))) == []
    assert lines_of(printing.logs(LogQuery(grep="line 1.* of"))) == [
        f"line {number} of 0" for number in (1, *range(10, 20))
    ]
    assert lines_of(printing.logs(LogQuery(grep="line [12] ", tail=1))) == ["line 2 of 0"]
    assert lines_of(printing.logs(LogQuery(index=1))) == []
    assert len(lines_of(printing.logs(LogQuery(index=1)), "worker-1")) == 30
    assert len(lines_of(printing.logs(LogQuery(since=before)))) == 30
    assert lines_of(printing.logs(LogQuery(since=datetime.now(UTC)))) == []
    with pytest.raises(NotPossible, match="its roles are worker"):
        list(printing.logs(LogQuery(role="ps")))
    with pytest.raises(RegattaError, match="is not a regular expression"):
        list(printing.logs(LogQuery(grep="(")))


def test_a_follower_reads_along_to_the_end_and_hears_of_it_last(printing: Printing) -> None:
    printing.run(COUNTING, wait=False)
    updates = list(printing.follow())
    assert lines_of(iter(updates)) == [f"line {number} of 0" for number in range(1, 31)]
    assert isinstance(updates[-1], Job)
    assert updates[-1].status.phase is Phase.COMPLETED


def test_a_follower_who_is_cut_off_again_and_again_misses_and_repeats_nothing(
    printing: Printing,
) -> None:
    printing.run(COUNTING, workers=2, wait=False)
    told: list[LogBatch] = []
    after: dict[str, str] = {}
    over = False
    while not over:
        over = True
        with contextlib.closing(printing.follow(LogQuery(after=after))) as stream:  # type: ignore[type-var]
            for update in stream:
                if isinstance(update, LogBatch) and update.lines:
                    told.append(update)
                    after = update.after
                    over = False
                    break
    for index in (0, 1):
        expected = [f"line {number} of {index}" for number in range(1, 31)]
        assert lines_of(iter(told), f"worker-{index}") == expected
