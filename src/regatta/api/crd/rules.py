"""What a schema cannot say about a PaddleJob, as CEL expressions that an API server evaluates.

The same rules as `regatta.api.rules`, so that `kubectl apply` refuses what `regatta submit` would,
with the same sense in its sentence. Rules about a changed job stand only here: the local engine has
no way to edit one. CEL's cost is estimated from the sizes that the schema allows, so every text and
list that a rule walks through is bounded there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regatta.api.crd.structural import Schema
from regatta.api.job import Mode
from regatta.api.names import LONGEST
from regatta.api.rules import MAX_REPLICAS, MAX_STRING, PORTS_PER_REPLICA

ROLES = ("ps", "worker", "heter")
#: Of spec, what stays as it was created; a role's own are in `_kept_role`.
FIXED = ("mode", "cleanPodPolicy", "cleanPolicy", "withGloo", "intranet", "elastic")

_NAME = "self.metadata.name"
_LABEL_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_LABEL_1123 = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class Rule:
    holds: str
    #: What is found and what would be right, in words that need no other.
    message: str
    #: The same with values of the job in it, as a CEL expression.
    message_expression: str = ""

    def as_validation(self) -> Schema:
        validation = {"rule": self.holds, "message": self.message}
        if self.message_expression:
            validation["messageExpression"] = self.message_expression
        return validation


def of_the_job() -> list[Rule]:
    """Rules that need the job's name."""
    rules = [
        Rule(
            f"{_NAME}.matches('{_LABEL_1035}')",
            "metadata.name becomes host names: write lower-case letters, digits and -, starting "
            "with a letter and ending with a letter or digit",
        )
    ]
    rules += [_pod_name(role) for role in ROLES]
    rules.append(
        Rule(
            f"!has(self.spec.tasks) || self.spec.tasks.all(t, size({_NAME}) + size(t.name) + 2 "
            f"+ size(string({_most('t')} - 1)) <= {LONGEST})",
            f"metadata.name: with a task's name and a number it makes pod names of more than "
            f"{LONGEST} characters, which no host name may have; make one of them shorter",
        )
    )
    rules += [_endpoints(role) for role in ROLES]
    return rules


def of_the_spec() -> list[Rule]:
    classic = " || ".join(f"has(self.{role})" for role in ROLES)
    return [
        Rule(
            "has(self.worker) || has(self.tasks)",
            "spec.worker is missing; a job needs workers (or tasks)",
        ),
        Rule(
            f"!has(self.tasks) || !({classic})",
            "spec.tasks cannot stand beside ps, worker or heter; write every role as a task, or "
            "none",
        ),
        Rule(
            "!has(self.heter) || has(self.ps)",
            "spec.ps is missing; heter trainers work beside parameter servers",
        ),
        Rule(
            "!has(self.cleanPodPolicy) || !has(self.cleanPolicy) || "
            "self.cleanPodPolicy == self.cleanPolicy",
            "spec.cleanPodPolicy and spec.cleanPolicy are one field, and they differ; keep one",
        ),
        _mode(),
        Rule(
            "!has(self.elastic) || !has(self.tasks)",
            "spec.elastic: only workers are elastic, and this job has tasks; remove it",
        ),
        Rule(
            f"{_total(_most)} <= {MAX_REPLICAS}",
            f"the job has too many replicas: at most {MAX_REPLICAS:,} can be told of each other, "
            "because the list of their addresses is one environment variable of at most 128 KiB",
        ),
        Rule(
            "!has(self.schedulingPolicy) || !has(self.schedulingPolicy.minAvailable) || "
            f"self.schedulingPolicy.minAvailable <= {_total(_replicas)}",
            "spec.schedulingPolicy.minAvailable is above the number of the job's replicas; it "
            "would wait for ever",
        ),
        *_replica_scope(),
        *_changes(),
    ]


def of_a_role(role: str) -> list[Rule]:
    """`role` is ps, worker, heter or task."""
    rules = [
        Rule(
            "has(self.template) && has(self.template.spec)",
            "template is missing; write the pod to run: template.spec.containers",
        ),
        Rule(
            "!has(self.requests) || self.requests <= self.replicas",
            "requests is above replicas; it is the smallest number of replicas that an elastic "
            "job may run with",
        ),
        Rule(
            "!has(self.limits) || self.limits >= self.replicas",
            "limits is below replicas; it is the largest number of replicas that an elastic job "
            "may run with",
        ),
    ]
    if role != "ps":
        policy = "self.template.spec.restartPolicy"
        rules.append(
            Rule(
                f"!has(self.template) || !has(self.template.spec) || !has({policy}) || "
                f"{policy} != 'Always'",
                "template.spec.restartPolicy is Always: a replica would start again after "
                "success, and the job would never complete; write OnFailure or Never",
            )
        )
    return rules


def of_a_task() -> list[Rule]:
    rules = of_a_role("task")
    rules.append(
        Rule(
            f"self.name.matches('{_LABEL_1123}')",
            "name: a task's name is at most 63 lower-case letters, digits and -, starting and "
            "ending with a letter or digit",
        )
    )
    for count in ("minFailed", "minSucceeded"):
        rules.append(
            Rule(
                f"!has(self.completion) || !has(self.completion.{count}) || "
                f"self.completion.{count} <= self.replicas",
                f"completion.{count} is above replicas; it can never happen",
            )
        )
    rules.append(
        Rule(
            "!has(self.ports) || self.ports.map(p, has(p.count) ? p.count : 1).sum() <= "
            f"{PORTS_PER_REPLICA}",
            f"ports: more than {PORTS_PER_REPLICA} in all; each replica owns a block of "
            f"{PORTS_PER_REPLICA}",
        )
    )
    return rules


def of_the_tasks() -> list[Rule]:
    return [
        Rule(
            "self.all(t, self.exists_one(other, other.name == t.name))",
            "two tasks have the same name; a task's name stands once in a job",
        )
    ]


def _replicas(role: str) -> str:
    return f"{role}.replicas"


def _most(role: str) -> str:
    """The replicas a role may grow to."""
    return f"(has({role}.limits) ? {role}.limits : {role}.replicas)"


def _total(count: Callable[[str], str]) -> str:
    classic = " + ".join(f"(has(self.{role}) ? {count(f'self.{role}')} : 0)" for role in ROLES)
    return f"({classic} + (has(self.tasks) ? self.tasks.map(t, {count('t')}).sum() : 0))"


def _pod_name(role: str) -> Rule:
    here = f"self.spec.{role}"
    number = f"string({_most(here)} - 1)"
    length = f"size({_NAME}) + {len(role) + 2} + size({number})"
    return Rule(
        f"!has({here}) || {length} <= {LONGEST}",
        f"metadata.name is too long: the pods' names, <name>-{role}-<number>, would have more "
        f"than {LONGEST} characters, which no host name may have",
        f"'the job\\'s longest pod name would be ' + {_NAME} + '-{role}-' + {number} + ', ' + "
        f"string({length}) + ' characters; a host name has at most {LONGEST}: make the job\\'s "
        f"name ' + string({length} - {LONGEST}) + ' shorter'",
    )


def _endpoints(role: str) -> Rule:
    here = f"self.spec.{role}"
    each = f"(size({_NAME}) + {len(f'-{role}-:36000,')} + size(string({_most(here)} - 1)))"
    room = MAX_STRING - len("PADDLE_PSERVERS_IP_PORT_LIST=")
    return Rule(
        f"!has({here}) || self.spec.intranet != 'Service' || {_most(here)} * {each} <= {room}",
        f"spec.{role}.replicas: with intranet Service the list of all names is one environment "
        "variable of at most 128 KiB, and these do not fit; use fewer replicas, a shorter job "
        "name or intranet: PodIP",
    )


def _mode() -> Rule:
    several = "has(self.worker) && self.worker.replicas > 1"
    derived = (
        f"(has(self.tasks) ? '{Mode.CUSTOM}' : has(self.ps) ? "
        f"(has(self.heter) ? '{Mode.HETER}' : '{Mode.PS}') : "
        f"{several} ? '{Mode.COLLECTIVE}' : '{Mode.SINGLE}')"
    )
    alone = "has(self.worker) && !has(self.ps) && !has(self.heter)"
    return Rule(
        f"!has(self.mode) || self.mode == {derived} || "
        f"(self.mode == '{Mode.COLLECTIVE}' && {alone})",
        "spec.mode is not what the roles make of the job; remove mode, or change the roles",
        f"'spec.mode is ' + self.mode + ', but the roles make it ' + {derived} + "
        "'; remove mode, or change the roles'",
    )


def _replica_scope() -> list[Rule]:
    """One rule for each reason why one replica cannot come back alone."""
    scoped = (
        "has(self.runPolicy) && has(self.runPolicy.restartScope) && "
        f"self.runPolicy.restartScope == 'Replica' && {_total(_replicas)} > 1"
    )
    collective = "!has(self.tasks) && !has(self.ps)"
    gloo = "has(self.ps) && (!has(self.withGloo) || self.withGloo > 0)"
    found = "spec.runPolicy.restartScope is Replica, but "
    return [
        Rule(
            f"!({scoped} && {collective})",
            f"{found}the others of a Collective job abort when one ends; use Job",
        ),
        Rule(
            f"!({scoped} && {gloo})",
            f"{found}gloo lets nobody join a group again; use Job, or withGloo: 0",
        ),
        Rule(
            f"!({scoped} && !({collective}) && !({gloo}) && self.intranet == 'PodIP')",
            f"{found}with intranet PodIP a new replica has a new address, which the others do "
            "not know; use Job, or intranet: Service",
        ),
    ]


def _changes() -> list[Rule]:
    """After creation only replicas, runPolicy and schedulingPolicy change, unless suspended."""
    suspended = (
        "(has(oldSelf.runPolicy) && has(oldSelf.runPolicy.suspend) && oldSelf.runPolicy.suspend)"
    )
    instead = (
        "cannot change after creation: the pods that run would not follow. Suspend the job first "
        "(spec.runPolicy.suspend: true), or delete it and apply it again"
    )
    rules = [
        Rule(f"{suspended} || ({_kept('', field)})", f"spec.{field} {instead}") for field in FIXED
    ]
    for role in ROLES:
        rules.append(
            Rule(
                f"{suspended} || (has(self.{role}) == has(oldSelf.{role}) && "
                f"(!has(self.{role}) || ({_kept_role(role)})))",
                f"spec.{role}: only replicas may change after creation, because the pods that run "
                "would not follow. Suspend the job first (spec.runPolicy.suspend: true), or "
                "delete it and apply it again",
            )
        )
    rules.append(
        Rule(
            f"{suspended} || (has(self.tasks) == has(oldSelf.tasks) && (!has(self.tasks) || "
            "(size(self.tasks) == size(oldSelf.tasks) && self.tasks.all(t, oldSelf.tasks.exists("
            "o, o.name == t.name && has(o.template) == has(t.template) && "
            "(!has(t.template) || o.template == t.template))))))",
            "spec.tasks: only replicas may change after creation, because the pods that run would "
            "not follow. Suspend the job first (spec.runPolicy.suspend: true), or delete it and "
            "apply it again",
        )
    )
    return rules


def _kept_role(role: str) -> str:
    return " && ".join(f"({_kept(role, field)})" for field in ("template", "requests", "limits"))


def _kept(holder: str, field: str) -> str:
    path = f"{holder}.{field}" if holder else field
    now, before = f"self.{path}", f"oldSelf.{path}"
    return f"has({now}) == has({before}) && (!has({now}) || {now} == {before})"
