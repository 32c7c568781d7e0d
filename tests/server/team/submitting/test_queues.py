"""A queue is a virtual cluster that is granted, wherever a file names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from regatta.api.errors import InvalidJob, NotAllowed
from regatta.api.load import Loaded
from regatta.engines.base import Submission
from regatta.engines.submission import read_submission
from regatta.server.accounts.users import User
from regatta.server.openpai_errors import OpenPaiError
from regatta.server.team.submitting.queues import check_queues, cluster_of
from regatta.server.team.team_settings import TeamSettings
from tests.doors import shell_job
from tests.openpai_configs import version_two
from tests.server.team.serving import NO_LIMITS, a_team_server

EVERY = ("default", "gpu")
CONFIG = version_two("config", ["echo hello"])


def _user(*, admin: bool = False) -> User:
    return User(1, "ann", "", admin, {}, (), ("default",), 0, None, None)


def _load(text: str, **more: Any) -> Loaded:
    return read_submission(Submission(text=text, namespace="user-ann", user="ann", **more))


def _named(queue: str, **more: Any) -> Loaded:
    return _load(shell_job("job", schedulingPolicy={"queue": queue}), **more)


def _beside(queue: str) -> Loaded:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "job"},
        "spec": {"minMember": 1, "queue": queue},
    }
    return _load(shell_job("job") + "---\n" + yaml.safe_dump(group))


def _annotated(queue: str) -> Loaded:
    job = yaml.safe_load(shell_job("job"))
    annotations = {"scheduling.volcano.sh/queue-name": queue}
    job["spec"]["worker"]["template"]["metadata"] = {"annotations": annotations}
    return _load(yaml.safe_dump(job))


def _set_on_a_config(queue: str) -> Loaded:
    return _load(CONFIG, sets=(f"spec.schedulingPolicy.queue={queue}",))


WAYS = {
    "the policy": (_named, "spec.schedulingPolicy.queue"),
    "a PodGroup beside it": (_beside, 'PodGroup "job": spec.queue'),
    "a pod": (
        _annotated,
        "spec.worker.template.metadata.annotations[scheduling.volcano.sh/queue-name]",
    ),
    "what is set on a config": (_set_on_a_config, "spec.schedulingPolicy.queue"),
}


@pytest.mark.parametrize("on_cluster", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_virtual_cluster_is_for_those_who_were_granted_it(way: str, on_cluster: bool) -> None:
    make, place = WAYS[way]
    with pytest.raises(NotAllowed) as refused:
        check_queues(make("gpu"), _user(), ["default"], EVERY, on_cluster=on_cluster)
    assert str(refused.value) == (
        f"{place}: gpu is a virtual cluster that ann was not granted; write default"
    )
    check_queues(make("gpu"), _user(), EVERY, EVERY, on_cluster=on_cluster)
    check_queues(make("gpu"), _user(admin=True), EVERY, EVERY, on_cluster=on_cluster)


@pytest.mark.parametrize("way", WAYS)
def test_a_queue_that_nobody_grants_is_unknown_on_a_cluster_but_to_admins(way: str) -> None:
    make, place = WAYS[way]
    with pytest.raises(InvalidJob) as refused:
        check_queues(make("gold"), _user(), EVERY, EVERY, on_cluster=True)
    [problem] = refused.value.problems
    assert problem.path in (place, "defaults.virtualCluster")  # as its author knows it
    said = 'found "gold", which is no virtual cluster here; write default or gpu'
    assert problem.message == said
    check_queues(make("gold"), _user(admin=True), EVERY, EVERY, on_cluster=True)


def test_on_a_machine_such_a_queue_means_nothing() -> None:
    check_queues(_named("gold"), _user(), EVERY, EVERY, on_cluster=False)
    assert cluster_of(_named("gold"), EVERY, on_cluster=False) == "default"
    assert cluster_of(_named("gpu"), EVERY, on_cluster=False) == "gpu"
    assert cluster_of(_named("gold"), EVERY, on_cluster=True) == "gold"


@pytest.mark.parametrize("job", [_load(shell_job("job")), _named("gold")], ids=["none", "unknown"])
def test_who_names_none_of_them_is_in_the_first_and_needs_it(job: Loaded) -> None:
    with pytest.raises(NotAllowed, match="is in default, which ann was not granted; write gpu"):
        check_queues(job, _user(), ["gpu"], EVERY, on_cluster=False)
    with pytest.raises(NotAllowed, match="not granted; ask an admin for one"):
        check_queues(job, _user(), [], EVERY, on_cluster=False)


def test_a_config_is_refused_in_its_own_words() -> None:
    asks = {
        name: _load(version_two("config", ["echo hello"], defaults={"virtualCluster": name}))
        for name in EVERY
    }
    with pytest.raises(OpenPaiError) as refused:
        check_queues(asks["gpu"], _user(), ["default"], EVERY, on_cluster=True)
    assert str(refused.value) == (
        "User ann is not allowed to do operation in gpu. For its virtualCluster write default."
    )
    with pytest.raises(OpenPaiError) as refused:
        check_queues(asks["gpu"], _user(), ["default"], ["default"], on_cluster=True)
    assert str(refused.value) == (
        "Virtual cluster gpu is not found. For its virtualCluster write default."
    )
    check_queues(asks["default"], _user(), ["default"], EVERY, on_cluster=True)
    assert cluster_of(asks["gpu"], EVERY, on_cluster=False) == "gpu"


def test_a_server_asks_for_the_grant_whichever_door_a_job_comes_through(tmp_path: Path) -> None:
    settings = TeamSettings(rates=NO_LIMITS, virtual_clusters=EVERY)
    with a_team_server(tmp_path, settings=settings) as server:
        boss, ann = server.admin_token(), server.token("ann")
        body = {"text": shell_job("job", schedulingPolicy={"queue": "gpu"})}
        for path in ("/regatta/v1/jobs", "/regatta/v1/jobs?dryRun=true"):
            assert server.ask("POST", path, ann, body=body).code == (403, "NotAllowed")
        sent = server.ask("POST", "/api/v2/jobs", ann, text=body["text"])
        assert sent.code == (403, "NotAllowed")
        assert server.ask("GET", "/api/v2/jobs", boss).json == []
        grant = {"virtualCluster": ["gpu"]}
        server.ask("PUT", "/api/v2/users/ann/virtualcluster", boss, body=grant)
        assert server.ask("POST", "/regatta/v1/jobs", ann, body=body).status == 201
        [listed] = server.ask("GET", "/api/v2/jobs?vc=gpu", boss).json
        assert listed["name"] == "job"
