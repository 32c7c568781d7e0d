"""What a job may not be: one function per rule, each yielding what it refuses.

Rules see the draft, in which whatever was malformed is absent; they stay silent about what they
cannot know. Warnings live in `advice`, pod templates in `template_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from regatta.api import quantity
from regatta.api.checks import names
from regatta.api.checks.schema import JobDraft, MetadataDraft, RoleDraft, SpecDraft
from regatta.api.checks.suggestions import shown
from regatta.api.checks.task_rules import check_tasks
from regatta.api.checks.template_rules import check_labels
from regatta.api.defaults import NAMESPACE, gloo_of, intranet_of, mode_of, scope_of
from regatta.api.job import Intranet, Mode, RestartScope
from regatta.api.problems import Problem
from regatta.api.source.companions import Companions
from regatta.api.source.limits import MAX_STRING
from regatta.api.source.paths import join

#: What one variable holds (`MAX_STRING`), which is a list of all of them.
MAX_REPLICAS = 6_000
#: Why a template cannot ask for the host network by itself.
ON_ONE_PORT = (
    "where all replicas listen on the same port, which on the host network only one of a node can "
    "have; write intranet: Host"
)


def check(draft: JobDraft, companions: Companions) -> Iterator[Problem]:
    spec = draft.spec
    yield from _check_metadata(draft.metadata)
    if spec is None:
        yield Problem("spec", "missing; write the job's roles here, at least spec.worker")
        return
    for rule in _RULES:
        yield from rule(spec)
    yield from _check_pod_names(draft, spec)
    yield from _check_endpoints(draft, spec)
    yield from _check_gang(draft, spec, companions)


def total_replicas(spec: SpecDraft) -> int:
    return sum(role.replicas or 0 for _, role in spec.roles().values())


def _most(role: RoleDraft) -> int:
    """The replicas a role may grow to."""
    return max(role.replicas or 0, role.limits or 0)


def _pod(role: RoleDraft) -> dict[str, Any]:
    pod = (role.template or {}).get("spec")
    return pod if isinstance(pod, dict) else {}


def _check_metadata(metadata: MetadataDraft | None) -> Iterator[Problem]:
    if metadata is None or metadata.name is None:
        yield Problem("metadata.name", "missing; write a name of lower-case letters, digits and -")
    elif message := names.about_job_name(metadata.name):
        yield Problem("metadata.name", message)
    if metadata is None:
        return
    if metadata.namespace and (message := names.about_namespace(metadata.namespace)):
        yield Problem("metadata.namespace", message)
    yield from check_labels(metadata.labels, "metadata.labels")
    for key in metadata.annotations or {}:
        if message := names.about_key(key):
            yield Problem(join("metadata.annotations", key), message)


def _check_clean_policy(spec: SpecDraft) -> Iterator[Problem]:
    policy, other = spec.clean_pod_policy, spec.clean_policy
    if policy and other and policy != other:
        yield Problem(
            "spec.cleanPolicy",
            f"found {other}, and cleanPodPolicy says {policy}; they are one field, keep one",
        )


def _check_roles(spec: SpecDraft) -> Iterator[Problem]:
    classic = [name for name in ("ps", "worker", "heter") if getattr(spec, name) is not None]
    if spec.tasks is not None and classic:
        yield Problem(
            "spec.tasks",
            f"tasks cannot stand beside {' and '.join(classic)}; write every role as a task, or "
            "none",
        )
    elif spec.tasks is None and spec.worker is None:
        beside = f": a job with only {' and '.join(classic)} trains nothing" if classic else ""
        yield Problem("spec.worker", f"missing; a job needs workers (or tasks){beside}")
    if spec.heter is not None and spec.ps is None:
        yield Problem("spec.ps", "missing; heter trainers work beside parameter servers")


def _check_sizes(spec: SpecDraft) -> Iterator[Problem]:
    for path, (_, role) in spec.roles().items():
        if role.replicas is None:
            yield Problem(f"{path}.replicas", "missing; write how many replicas, such as 2")
        if role.template is None:
            yield Problem(
                f"{path}.template", "missing; write the pod to run: template.spec.containers"
            )
        if role.replicas is not None:
            yield from _check_range(path, role, role.replicas)
        elif role.requests and role.limits and role.requests > role.limits:
            yield Problem(
                f"{path}.requests", f"found {role.requests}, above limits, which is {role.limits}"
            )
    total = sum(_most(role) for _, role in spec.roles().values())
    if total > MAX_REPLICAS:
        yield Problem(
            "spec",
            f"the job has {total:,} replicas; at most {MAX_REPLICAS:,} can be told of each other, "
            "because the list of their addresses is one environment variable, and Linux gives one "
            "128 KiB: room for about 6,200 addresses of 21 characters",
        )


def _check_range(path: str, role: RoleDraft, replicas: int) -> Iterator[Problem]:
    if role.requests is not None and role.requests > replicas:
        yield Problem(
            f"{path}.requests",
            f"found {role.requests}, above replicas, which is {replicas}; requests is the smallest "
            "number of replicas that an elastic job may run with",
        )
    if role.limits is not None and role.limits < replicas:
        yield Problem(
            f"{path}.limits",
            f"found {role.limits}, below replicas, which is {replicas}; limits is the largest "
            "number of replicas that an elastic job may run with",
        )


def _check_mode(spec: SpecDraft) -> Iterator[Problem]:
    mode = spec.mode
    if mode is None:
        return
    derived = mode_of(spec.model_copy(update={"mode": None}))
    alone = spec.worker is not None and spec.ps is None and spec.heter is None
    grows = mode is Mode.COLLECTIVE and alone  # one worker today, more after a scale
    if mode is not derived and not grows:
        yield Problem(
            "spec.mode",
            f"found {mode}, but the roles make it {derived}; remove mode, or change the roles "
            f"({_NEEDS[mode]})",
        )


_NEEDS = {
    Mode.PS: "PS has ps and worker",
    Mode.COLLECTIVE: "Collective has worker and no ps",
    Mode.HETER: "Heter has ps, worker and heter",
    Mode.SINGLE: "Single has one worker and no ps",
    Mode.CUSTOM: "Custom has tasks",
}


def _check_restarts(spec: SpecDraft) -> Iterator[Problem]:
    for path, (name, role) in spec.roles().items():
        policy = _pod(role).get("restartPolicy")
        if policy == "Always" and path != "spec.ps":
            yield Problem(
                f"{path}.template.spec.restartPolicy",
                f"found Always: {name or 'the role'} would start again after success, and the job "
                "would never complete; write OnFailure or Never",
            )
    if scope_of(spec) is not RestartScope.REPLICA or total_replicas(spec) < 2:
        return
    mode, gloo = mode_of(spec), gloo_of(spec)
    if mode is Mode.COLLECTIVE:
        why, instead = "the others of a Collective job abort when one ends", "Job"
    elif mode in (Mode.PS, Mode.HETER) and gloo:
        why, instead = "gloo lets nobody join a group again", "Job, or withGloo: 0"
    elif intranet_of(spec) is Intranet.POD_IP:
        why = "with intranet PodIP a new replica has a new address, which the others do not know"
        instead = "Job, or intranet: Service"
    else:
        return
    yield Problem(
        "spec.runPolicy.restartScope",
        f"found Replica, but {why}; use {instead}",
    )


def _check_host_network(spec: SpecDraft) -> Iterator[Problem]:
    """Two replicas of one node would answer for each other, and train against themselves."""
    network = intranet_of(spec)
    if network is Intranet.HOST or total_replicas(spec) < 2:
        return
    for path, (_, role) in spec.roles().items():
        if _pod(role).get("hostNetwork") is True:
            yield Problem(
                f"{path}.template.spec.hostNetwork",
                f"found true, but intranet is {network}, {ON_ONE_PORT}",
            )


def _check_elastic(spec: SpecDraft) -> Iterator[Problem]:
    if spec.elastic is not None and spec.worker is None and spec.tasks is not None:
        yield Problem("spec.elastic", "only workers are elastic, and this job has tasks; remove it")


def _check_min_resources(spec: SpecDraft) -> Iterator[Problem]:
    policy = spec.scheduling_policy
    for name, value in ((policy and policy.min_resources) or {}).items():
        try:
            quantity.parse(0 if value is None else value)
        except ValueError as error:
            path = join("spec.schedulingPolicy.minResources", name)
            yield Problem(path, f"found {shown(value)}; {error}")


def _check_pod_names(draft: JobDraft, spec: SpecDraft) -> Iterator[Problem]:
    job = (draft.metadata and draft.metadata.name) or ""
    if names.about_job_name(job):
        return
    longest = ""
    for name, role in spec.roles().values():
        pod = f"{job}-{name}-{max(_most(role), 1) - 1}"
        longest = pod if len(pod) > len(longest) else longest
    if len(longest) > names.LONGEST:
        too_many = len(longest) - names.LONGEST
        unit = "character" if too_many == 1 else "characters"
        yield Problem(
            "metadata.name",
            f"the job's longest pod name would be {longest}, {len(longest)} characters; a host "
            f"name has at most {names.LONGEST}: make the job's name {too_many} {unit} shorter",
        )


def _check_endpoints(draft: JobDraft, spec: SpecDraft) -> Iterator[Problem]:
    """Service endpoints are longer than addresses, so fewer of them fit."""
    job = (draft.metadata and draft.metadata.name) or ""
    if intranet_of(spec) is not Intranet.SERVICE or not job:
        return
    for path, (name, role) in spec.roles().items():
        count = _most(role)
        each = len(f"{job}-{name}-{max(count, 1) - 1}:36000,")
        room = (MAX_STRING - len("PADDLE_PSERVERS_IP_PORT_LIST=")) // each
        if room < count <= MAX_REPLICAS:
            yield Problem(
                f"{path}.replicas",
                f"found {count:,}; with intranet Service the list of all names is one environment "
                f"variable of at most 128 KiB, room for {room:,} of these {each - 1} characters; "
                "use fewer replicas, a shorter job name or intranet: PodIP",
            )


def _check_gang(draft: JobDraft, spec: SpecDraft, companions: Companions) -> Iterator[Problem]:
    total = total_replicas(spec)
    known = all(role.replicas for _, role in spec.roles().values())
    if not total or not known:
        return
    policy = spec.scheduling_policy
    if policy and policy.min_available and policy.min_available > total:
        yield Problem(
            "spec.schedulingPolicy.minAvailable",
            f"found {policy.min_available}, but the job has {total} replicas; it would wait for "
            "ever",
        )
    metadata = draft.metadata or MetadataDraft()
    group = companions.pod_group(metadata.namespace or NAMESPACE, metadata.name or "")
    if group and group.min_member and group.min_member > total:
        yield Problem(
            f"PodGroup {group.name}: spec.minMember",
            f"found {group.min_member}, but the job has {total} replicas; it would wait for ever",
        )


_RULES: tuple[Callable[[SpecDraft], Iterator[Problem]], ...] = (
    _check_clean_policy,
    _check_roles,
    _check_sizes,
    _check_mode,
    check_tasks,
    _check_restarts,
    _check_host_network,
    _check_elastic,
    _check_min_resources,
)
