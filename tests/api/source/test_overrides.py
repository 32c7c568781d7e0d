"""What the command line changes before a job is judged."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.load import load_job
from regatta.api.source.overrides import set_value
from regatta.api.source.paths import split
from tests.api.builders import a_job, a_pod_group, errors_of, problems_of

SET: dict[str, tuple[str, Any]] = {
    "a number": ("spec.worker.replicas=4", 4),
    "text": ("metadata.name=other", "other"),
    "quoted text": ('metadata.labels.version="3"', "3"),
    "a flag": ("spec.runPolicy.suspend=true", True),
    "a list in flow style": ("spec.worker.template.spec.containers[0].args=[a, 'b']", ["a", "b"]),
    "a value with = in it": ("spec.worker.template.spec.containers[0].args[0]=--lr=1", "--lr=1"),
    "nothing at all": ("spec.worker.template.spec.containers[0].workingDir=", ""),
    "a map that is made on the way": ("spec.schedulingPolicy.queue=gold", "gold"),
    "a key with dots in brackets": ("metadata.labels[example.com/team]=nlp", "nlp"),
    "the next item of a list": ("spec.worker.template.spec.containers[1].name=side", "side"),
    "null": ("spec.worker.template=null", None),
}


@pytest.mark.parametrize(("option", "value"), SET.values(), ids=SET)
def test_set_puts_a_typed_value_at_a_path(option: str, value: Any) -> None:
    document: Any = a_job().doc()
    set_value(document, option)
    for step in split(option.partition("=")[0]):
        document = document[step]
    assert document == value


REFUSED = {
    "no =": ("spec.worker.replicas", "write path=value, such as spec.worker.replicas=4"),
    "no path": ("=4", "the path is empty"),
    "another root": ("worker.replicas=4", 'a path starts with spec or metadata; found "worker"'),
    "a misspelt root": (
        "sepc.worker.replicas=4",
        'a path starts with spec or metadata; did you mean spec? found "sepc"',
    ),
    "below a number": (
        "spec.worker.replicas.min=1",
        "spec.worker.replicas is 2, not a map, so min cannot be set in it",
    ),
    "an item of a map": (
        "spec.worker[0]=1",
        "spec.worker is a map, not a list, so it has no item [0]",
    ),
    "an item too far": (
        "spec.worker.template.spec.containers[3].name=x",
        "spec.worker.template.spec.containers has no item [3]; the last is [0], and [1] adds one",
    ),
    "a path with a hole": ("spec..worker=1", "cannot read '..worker' as the next step of a path"),
    "a value that is no YAML": (
        "spec.worker.replicas=[1",
        'cannot read the value "[1": a quote or bracket is opened and never closed',
    ),
    "a tag": (
        "metadata.name=!!python/name:os.system x",
        'cannot read the value "!!python/name:os.system x": the tag !!python/name:os.system is not '
        "allowed; write a plain value",
    ),
}


@pytest.mark.parametrize(("option", "sentence"), REFUSED.values(), ids=REFUSED)
def test_set_says_which_step_cannot_be_taken(option: str, sentence: str) -> None:
    assert errors_of(a_job(), sets=[option]) == [f"--set {option}: {sentence}"]


def test_a_misspelt_step_is_told_as_any_other_unknown_field() -> None:
    [problem] = problems_of(a_job().text(), sets=["spec.wroker.replicas=3"])
    assert problem.path == "spec.wroker"
    assert "did you mean worker?" in problem.message


def test_name_and_namespace_replace_those_of_the_file_and_take_its_pod_group_along() -> None:
    loaded = load_job(a_job().text(a_pod_group(2)), name="other", namespace="team")
    assert (loaded.job.namespace, loaded.job.name) == ("team", "other")
    group = loaded.companions.pod_group("team", "other")
    assert group is not None
    assert group.min_member == 2


def test_a_name_from_the_command_line_is_judged_like_any_other() -> None:
    [problem] = problems_of(a_job().text(), name="Not A Name")
    assert problem.path == "metadata.name"
    assert problem.line is None


def test_env_reaches_every_container_and_replaces_what_was_there() -> None:
    job = a_job().with_ps()
    job.container()["env"] = [{"name": "A", "value": "old"}, {"name": "B", "value": "b"}]
    job.pod(initContainers=[{"name": "first", "command": ["true"]}])
    spec = job.load(env={"A": "1"}).job.spec
    assert spec.ps is not None
    assert spec.worker is not None
    pod = spec.worker.template["spec"]
    assert pod["containers"][0]["env"] == [{"name": "B", "value": "b"}, {"name": "A", "value": "1"}]
    assert pod["initContainers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert spec.ps.template["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_env_with_an_impossible_name_is_refused() -> None:
    assert errors_of(a_job(), env={"Ä": "1"}) == [
        '--env Ä: found "Ä"; a variable\'s name has printable ASCII characters and no ='
    ]


def test_volume_puts_a_directory_in_the_place_of_whatever_it_was() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "nfs"}}
    job = a_job().pod(volumes=[claim])
    volumes = job.load(volumes={"data": "/srv/data"}).job.spec.roles()["worker"].template["spec"]
    assert volumes["volumes"] == [{"name": "data", "hostPath": {"path": "/srv/data"}}]


def test_a_volume_that_no_role_has_is_refused_with_those_there_are() -> None:
    job = a_job().pod(volumes=[{"name": "data", "emptyDir": {}}, {"name": "logs", "emptyDir": {}}])
    assert errors_of(job, volumes={"date": "/srv"}) == [
        '--volume date=/srv: no template has a volume "date"; did you mean data? '
        "the job's volumes are data and logs"
    ]
    assert errors_of(job, volumes={"data": "srv"}) == [
        '--volume data=srv: found "srv"; write a directory that starts with /'
    ]
