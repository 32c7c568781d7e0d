"""What the API server itself refuses, so that `kubectl apply` of a mistake ends with a sentence."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from regatta.api.errors import InvalidJob
from regatta.api.load import validate_document
from tests.deploy.jobs import (
    Document,
    a_job,
    on_the_host,
    refusal_of,
    role,
    task,
    with_pod,
    with_policy,
)
from tests.kubernetes.controlplane.plane import ControlPlane

API_FILES = Path(__file__).parents[1] / "api/files"

REPLICA_SCOPE = {"restartScope": "Replica"}

#: What is wrong → the job, the field that the answer names, and words of its sentence.
BAD: dict[str, tuple[Document, str, str]] = {
    "a name that starts with a digit": (
        a_job("2048"),
        "metadata.name",
        "starting with a letter",
    ),
    "a name with a dot": (a_job("wide.deep"), "metadata.name", "it becomes host names"),
    "a name that makes pod names too long": (
        a_job("a" * 55, worker=role(2)),
        "metadata.name",
        "<name>-worker-<number>, would have more than 63 characters",
    ),
    "a name that is too long once the job has grown": (
        a_job("a" * 54, elastic=1, worker=role(9, limits=11)),
        "metadata.name",
        "more than 63 characters",
    ),
    "a name too long for its servers": (
        a_job("a" * 59, ps=role(), worker=role()),
        "metadata.name",
        "<name>-ps-<number>",
    ),
    "a name too long beside a task's": (
        a_job("a" * 40, tasks=[task("b" * 21)]),
        "metadata.name",
        "with a task's name",
    ),
    "no role at all": (a_job(worker=None), "spec.worker", "missing; a job needs workers"),
    "only servers": (a_job(ps=role()), "spec.worker", "missing; a job needs workers (or tasks)"),
    "heter trainers without servers": (
        a_job(worker=role(), heter=role()),
        "spec.ps",
        "heter trainers work beside parameter servers",
    ),
    "tasks beside workers": (
        a_job(worker=role(), tasks=[task("a")]),
        "spec.tasks",
        "write every role as a task, or none",
    ),
    "no template": (
        a_job(worker={"replicas": 2}),
        "spec.worker.template",
        "write the pod to run: template.spec.containers",
    ),
    "a template without a pod": (
        a_job(worker={"replicas": 2, "template": {}}),
        "spec.worker.template",
        "write the pod to run",
    ),
    "servers without a template": (
        a_job(worker=role(), ps={"replicas": 1}),
        "spec.ps.template",
        "write the pod to run",
    ),
    "no containers": (
        a_job(worker={"replicas": 1, "template": {"spec": {"containers": []}}}),
        "spec.worker.template.spec.containers",
        "should have at least 1 items",
    ),
    "no replicas": (a_job(worker={"template": role()["template"]}), "spec.worker.replicas", ""),
    "zero replicas": (a_job(worker=role(0)), "spec.worker.replicas", "greater than or equal to 1"),
    "replicas as text": (
        a_job(worker=role() | {"replicas": "2"}),
        "spec.worker.replicas",
        "must be of type integer",
    ),
    "ten thousand replicas": (a_job(worker=role(10_000)), "spec", "at most 6,000"),
    "too many names for one variable": (
        a_job("a-rather-long-name-for-a-job", intranet="Service", worker=role(4_000)),
        "spec.worker.replicas",
        "a shorter job name or intranet: PodIP",
    ),
    "too many names of one task for one variable": (
        a_job("a-rather-long-name-for-a-job", intranet="Service", tasks=[task("rower", 4_000)]),
        "spec.tasks",
        "a shorter job name or intranet: PodIP",
    ),
    "a misspelt clean policy": (
        a_job(cleanPodPolicy="OnFailed"),
        "spec.cleanPodPolicy",
        "OnFailure",
    ),
    "a misspelt Never": (a_job(cleanPodPolicy="Nerver"), "spec.cleanPodPolicy", "Never"),
    "two clean policies": (
        a_job(cleanPodPolicy="Always", cleanPolicy="Never"),
        "spec.cleanPolicy",
        "they are one field, keep one",
    ),
    "gloo out of range": (a_job(withGloo=3), "spec.withGloo", "less than or equal to 2"),
    "an unknown network": (a_job(intranet="podip"), "spec.intranet", "PodIP"),
    "a mode against the roles": (
        a_job(mode="PS", worker=role(2)),
        "spec.mode",
        "found PS, but the roles make it Collective",
    ),
    "Single with many": (a_job(mode="Single", worker=role(2)), "spec.mode", "found Single"),
    "an unknown mode": (a_job(mode="Solo"), "spec.mode", "Collective"),
    "requests above replicas": (
        a_job(elastic=1, worker=role(2, requests=3)),
        "spec.worker.requests",
        "it is above replicas",
    ),
    "limits below replicas": (
        a_job(elastic=1, worker=role(3, limits=2)),
        "spec.worker.limits",
        "it is below replicas",
    ),
    "more failures than tasks": (
        a_job(tasks=[task("a", 2, completion={"minFailed": 3})]),
        "spec.tasks[0].completion.minFailed",
        "it is above replicas; it can never happen",
    ),
    "zero failures": (
        a_job(tasks=[task("a", 2, completion={"minFailed": 0})]),
        "spec.tasks[0].completion.minFailed",
        "greater than or equal to 1",
    ),
    "fixed ports beyond the last": (
        a_job(tasks=[task("a", ports=[{"label": "http", "beginAt": 65535, "count": 2}])]),
        "spec.tasks[0].ports",
        "a beginAt goes beyond 65535",
    ),
    "an alias with a space": (
        a_job(tasks=[task("a", alias="a b")]),
        "spec.tasks[0].alias",
        "",
    ),
    "an exit code that there is not": (
        a_job(runPolicy={"noRetry": {"exitCodes": [256]}}),
        "spec.runPolicy.noRetry.exitCodes",
        "less than or equal to 255",
    ),
    "a limit below no limit": (
        a_job(runPolicy={"backoffLimit": -2}),
        "spec.runPolicy.backoffLimit",
        "greater than or equal to -1",
    ),
    "elastic tasks": (
        a_job(elastic=1, tasks=[task("a")]),
        "spec.elastic",
        "only workers are elastic",
    ),
    "a gang larger than the job": (
        a_job(ps=role(), worker=role(2), schedulingPolicy={"minAvailable": 4}),
        "spec.schedulingPolicy.minAvailable",
        "it would wait for ever",
    ),
    "a gang that needs lots": (
        a_job(schedulingPolicy={"minResources": {"cpu": "lots"}}),
        "spec.schedulingPolicy.minResources.cpu",
        "should match",
    ),
    "a gang that needs less than nothing": (
        a_job(schedulingPolicy={"minResources": {"cpu": -1}}),
        "spec.schedulingPolicy.minResources.cpu",
        "greater than or equal to 0",
    ),
    "a gang that needs a yes": (
        a_job(schedulingPolicy={"minResources": {"cpu": True}}),
        "spec.schedulingPolicy.minResources.cpu",
        "must not validate",
    ),
    "a gang that needs a map": (
        a_job(schedulingPolicy={"minResources": {"cpu": {"cores": 2}}}),
        "spec.schedulingPolicy.minResources.cpu",
        "at most 0",
    ),
    "a gang that needs a list": (
        a_job(schedulingPolicy={"minResources": {"cpu": []}}),
        "spec.schedulingPolicy.minResources.cpu",
        "at least 1 items",
    ),
    "workers that always restart": (
        a_job(worker=role(template=with_policy("Always"))),
        "spec.worker.template.spec.restartPolicy",
        "would never complete; write OnFailure or Never",
    ),
    "tasks that always restart": (
        a_job(tasks=[task("a", template=with_policy("Always"))]),
        "spec.tasks[0].template.spec.restartPolicy",
        "would never complete",
    ),
    "workers on the host network with addresses of pods": (
        a_job(worker=role(2, template=on_the_host())),
        "spec.worker.template.spec.hostNetwork",
        "found true, but intranet is PodIP, where all replicas listen on the same port",
    ),
    "one server on the host network with names of Services": (
        a_job(intranet="Service", ps=role(template=on_the_host()), worker=role()),
        "spec.ps.template.spec.hostNetwork",
        "found true, but intranet is Service",
    ),
    "tasks on the host network": (
        a_job(tasks=[task("a"), task("b", template=on_the_host())]),
        "spec.tasks",
        "a template has hostNetwork: true, but intranet is PodIP",
    ),
    "a misspelt restart policy": (
        a_job(worker=role(template=with_policy("onfailure"))),
        "spec.worker.template.spec.restartPolicy",
        "OnFailure",
    ),
    "a replica alone in a Collective job": (
        a_job(worker=role(2), runPolicy=REPLICA_SCOPE),
        "spec.runPolicy.restartScope",
        "the others of a Collective job abort",
    ),
    "a replica alone with gloo": (
        a_job(ps=role(), worker=role(), intranet="Service", runPolicy=REPLICA_SCOPE),
        "spec.runPolicy.restartScope",
        "use Job, or withGloo: 0",
    ),
    "a replica alone with a new address": (
        a_job(ps=role(), worker=role(), withGloo=0, runPolicy=REPLICA_SCOPE),
        "spec.runPolicy.restartScope",
        "use Job, or intranet: Service",
    ),
    "no tasks in the list": (a_job(tasks=[]), "spec.tasks", "at least 1 items"),
    "thirty-three tasks": (
        a_job(tasks=[task(f"t{i}") for i in range(33)]),
        "spec.tasks",
        "at most 32 items",
    ),
    "a task's name in capitals": (
        a_job(tasks=[task("Rower")]),
        "spec.tasks[0].name",
        "lower-case letters, digits and -",
    ),
    "two tasks of one name": (
        a_job(tasks=[task("a"), task("b"), task("a")]),
        "spec.tasks",
        "two tasks have the same name",
    ),
    "more failures than replicas": (
        a_job(tasks=[task("a", completion={"minFailed": 2})]),
        "spec.tasks[0].completion.minFailed",
        "it can never happen",
    ),
    "more successes than replicas": (
        a_job(tasks=[task("a", completion={"minSucceeded": 2})]),
        "spec.tasks[0].completion.minSucceeded",
        "it can never happen",
    ),
    "more ports than a replica has": (
        a_job(tasks=[task("a", ports=[{"label": "x", "count": 15}, {"label": "y", "count": 6}])]),
        "spec.tasks[0].ports",
        "each replica owns a block of 20",
    ),
    "a port without a label": (
        a_job(tasks=[task("a", ports=[{"count": 1}])]),
        "spec.tasks[0].ports[0].label",
        "Required value",
    ),
    "a misspelt role": (a_job(wroker=role(), worker=role()), "spec.wroker", "unknown field"),
    "a misspelt policy": (
        a_job(runPolicy={"backofLimit": 1}),
        "spec.runPolicy.backofLimit",
        "unknown field",
    ),
    "less than no time to end": (
        a_job(worker=role(template=with_pod(terminationGracePeriodSeconds=-1))),
        "spec.worker.template.spec.terminationGracePeriodSeconds",
        "greater than or equal to 0",
    ),
    "more than a week to end": (
        a_job(worker=role(template=with_pod(terminationGracePeriodSeconds=604_801))),
        "spec.worker.template.spec.terminationGracePeriodSeconds",
        "less than or equal to 604800",
    ),
    "a command that is no list": (
        a_job(
            worker=role(
                template={"spec": {"containers": [{"name": "main", "command": "python train.py"}]}}
            )
        ),
        "spec.worker.template.spec.containers[0].command",
        "must be of type array",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_the_api_server_refuses(plane: ControlPlane, case: str) -> None:
    job, field, words = BAD[case]
    job["spec"] = {name: value for name, value in job["spec"].items() if value is not None}
    refusal = refusal_of(plane, job)
    assert field in refusal
    assert words in refusal


@pytest.mark.parametrize("case", BAD)
def test_a_job_file_with_that_is_refused_without_a_cluster_as_well(case: str) -> None:
    with pytest.raises(InvalidJob):
        validate_document(copy.deepcopy(BAD[case][0]))


GOOD: dict[str, Document] = {
    "the smallest job": a_job(),
    "servers that always restart": a_job(ps=role(template=with_policy("Always")), worker=role()),
    "the longest name that fits": a_job("a" * 54, worker=role(9)),
    "one worker to be scaled later": a_job(mode="Collective", worker=role(1)),
    "the same clean policy twice": a_job(cleanPodPolicy="Never", cleanPolicy="Never"),
    "only the other spelling": a_job(cleanPolicy="Never"),
    "the tutorials' word for Host": a_job(intranet="HostNetwork"),
    "one single replica on the host network": a_job(worker=role(1, template=on_the_host())),
    "the host network where Host is written": a_job(
        intranet="Host", worker=role(2, template=on_the_host())
    ),
    "the host network where the tutorials' word is": a_job(
        intranet="HostNetwork", tasks=[task("a", 2, template=on_the_host())]
    ),
    "a replica alone where it can work": a_job(
        ps=role(), worker=role(2), withGloo=0, intranet="Service", runPolicy=REPLICA_SCOPE
    ),
    "one single replica restarted alone": a_job(worker=role(1), runPolicy=REPLICA_SCOPE),
    "six thousand replicas": a_job(worker=role(6_000)),
    "thirty-two tasks": a_job(tasks=[task(f"t{i}") for i in range(32)]),
    "elastic level nought": a_job(elastic=0, worker=role(2, requests=1, limits=3)),
    "heter trainers": a_job(ps=role(), worker=role(), heter=role(), withGloo=0),
    "twenty ports": a_job(tasks=[task("a", ports=[{"label": "x", "count": 20}])]),
    "the whole job as the gang": a_job(
        ps=role(2), worker=role(2), schedulingPolicy={"minAvailable": 4, "minResources": {"cpu": 4}}
    ),
    "every spelling of a quantity": a_job(
        schedulingPolicy={
            "minResources": {"a": "500m", "b": 0.5, "c": "1Gi", "d": "+1.5e3", "e": ".5", "f": 0}
        }
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_the_api_server_takes(plane: ControlPlane, case: str) -> None:
    assert refusal_of(plane, GOOD[case]) == ""


#: Mistakes in files that only our own reader can tell, and where they show on a cluster.
TOLD_LATER = {
    "mount-without-volume",  # at the pod's creation, on the job
    "nothing-to-run",  # an image is needed on a cluster
    "misspelt-command",  # likewise
    "quantities",
    "requests-above-limits",
    "memory-limit-below-a-page",
    "volumes-twice",
    "pod-group-of-wrong-type",  # another object of the file
    "several-jobs",  # two jobs are two jobs to an API server
    "yaml-words-as-keys",  # read by kubectl's YAML as text
    "duplicate-key",  # likewise
}


def bad_files() -> list[Path]:
    """Bad job files that can be sent at all and are one PaddleJob of our group."""
    found = []
    for path in sorted((API_FILES / "bad").glob("*.yaml")):
        try:
            job = yaml.safe_load(path.read_bytes())
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if not isinstance(job, dict) or path.stem in TOLD_LATER or "alias" in path.stem:
            continue
        if job.get("apiVersion") == "batch.paddlepaddle.org/v1" and job.get("kind") == "PaddleJob":
            found.append(path)
    return found


@pytest.mark.parametrize("path", bad_files(), ids=lambda path: path.stem)
def test_a_bad_job_file_does_not_get_past_the_api_server(plane: ControlPlane, path: Path) -> None:
    assert refusal_of(plane, yaml.safe_load(path.read_bytes())) != ""


def test_enough_bad_files_are_tried() -> None:
    assert len(bad_files()) > 30
