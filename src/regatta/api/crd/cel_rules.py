"""What a schema cannot say about a PaddleJob, as CEL expressions that an API server evaluates.

The same rules as `api.checks.rules`, so that `kubectl apply` refuses what `regatta submit` would,
with the same sense in its sentence; what of a job may change is in `cel_changes`. CEL's
cost is estimated from the sizes that the schema allows, so every text and list that a rule walks
through is bounded there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regatta.api.checks.names import LONGEST
from regatta.api.checks.rules import MAX_REPLICAS, ON_ONE_PORT
from regatta.api.checks.schema import MOST_PORT
from regatta.api.checks.task_rules import PORTS_PER_REPLICA
from regatta.api.crd.structural import Schema
from regatta.api.job import Intranet, Mode
from regatta.api.source.limits import MAX_STRING

ROLES = ("ps", "worker", "heter")

_NAME = "self.metadata.name"
_LABEL_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_LABEL_1123 = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


@dataclass(frozen=True, slots=True)
class Rule:
    #: The field that the API server names in its answer, below where the rule stands.
    field: str
    holds: str
    #: What is wrong with that field and what would be right.
    message: str
    #: The same with values of the job in it, as a CEL expression.
    message_expression: str = ""
    #: Judged at creation, too. Otherwise a rule that names `oldSelf` is judged at changes only.
    also_at_creation: bool = False

    def as_validation(self) -> Schema:
        validation: Schema = {"rule": self.holds, "message": self.message}
        if self.field:
            validation["fieldPath"] = self.field
        if self.message_expression:
            validation["messageExpression"] = self.message_expression
        if self.also_at_creation:
            validation["optionalOldSelf"] = True
        return validation


def of_the_job() -> list[Rule]:
    """Rules that need the job's name.

    They leave alone what was there before: an API server evaluates rules of the whole object at
    every write, and a job of the former operator, whose name would be refused today, must still
    get its status and lose its finalizer.
    """
    rules = [
        Rule(
            ".metadata.name",
            f"oldSelf.hasValue() || {_NAME}.matches('{_LABEL_1035}')",
            "it becomes host names, so write lower-case letters, digits and -, starting "
            "with a letter and ending with a letter or digit",
            also_at_creation=True,
        )
    ]
    rules += [_pod_name(role) for role in ROLES]
    rules.append(
        Rule(
            ".metadata.name",
            f"{_unchanged_tasks()} || !has(self.spec.tasks) || "
            f"self.spec.tasks.all(t, size({_NAME}) + size(t.name) + 2 "
            f"+ size(string({_most('t')} - 1)) <= {LONGEST})",
            f"with a task's name and a number it makes pod names of more than "
            f"{LONGEST} characters, which no host name may have; make one of them shorter",
            also_at_creation=True,
        )
    )
    rules += [_endpoints(role) for role in ROLES]
    rules.append(_endpoints_of_tasks())
    return rules


def of_the_spec() -> list[Rule]:
    classic = " || ".join(f"has(self.{role})" for role in ROLES)
    return [
        Rule(
            ".worker",
            "has(self.worker) || has(self.tasks)",
            "missing; a job needs workers (or tasks)",
        ),
        Rule(
            ".tasks",
            f"!has(self.tasks) || !({classic})",
            "tasks cannot stand beside ps, worker or heter; write every role as a task, or none",
        ),
        Rule(
            ".ps",
            "!has(self.heter) || has(self.ps)",
            "missing; heter trainers work beside parameter servers",
        ),
        Rule(
            ".cleanPolicy",
            "!has(self.cleanPodPolicy) || !has(self.cleanPolicy) || "
            "self.cleanPodPolicy == self.cleanPolicy",
            "cleanPodPolicy says something else; they are one field, keep one",
        ),
        _mode(),
        Rule(
            ".elastic",
            "!has(self.elastic) || !has(self.tasks)",
            "only workers are elastic, and this job has tasks; remove it",
        ),
        Rule(
            "",
            f"{_total(_most)} <= {MAX_REPLICAS}",
            f"the job has too many replicas: at most {MAX_REPLICAS:,} can be told of each other, "
            "because the list of their addresses is one environment variable of at most 128 KiB",
        ),
        Rule(
            ".schedulingPolicy.minAvailable",
            "!has(self.schedulingPolicy) || !has(self.schedulingPolicy.minAvailable) || "
            f"self.schedulingPolicy.minAvailable <= {_total(_replicas)}",
            "it is above the number of the job's replicas; it would wait for ever",
        ),
        *_replica_scope(),
        *_host_network(),
    ]


def of_a_role() -> list[Rule]:
    return [
        Rule(
            ".template",
            "self.?template.?spec.hasValue()",
            "missing; write the pod to run: template.spec.containers",
        ),
        Rule(
            ".requests",
            "!has(self.requests) || self.requests <= self.replicas",
            "it is above replicas; requests is the smallest number of replicas that an elastic "
            "job may run with",
        ),
        Rule(
            ".limits",
            "!has(self.limits) || self.limits >= self.replicas",
            "it is below replicas; limits is the largest number of replicas that an elastic job "
            "may run with",
        ),
    ]


def of_a_restart_policy() -> Rule:
    """Of every role but ps."""
    return Rule(
        "",
        "self != 'Always'",
        "found Always: a replica would start again after "
        "success, and the job would never complete; write OnFailure or Never",
    )


def of_a_task() -> list[Rule]:
    rules = of_a_role()
    rules.append(
        Rule(
            ".name",
            f"self.name.matches('{_LABEL_1123}')",
            "a task's name is at most 63 lower-case letters, digits and -, starting and "
            "ending with a letter or digit",
        )
    )
    for count in ("minFailed", "minSucceeded"):
        rules.append(
            Rule(
                f".completion.{count}",
                f"!has(self.completion) || !has(self.completion.{count}) || "
                f"self.completion.{count} <= self.replicas",
                "it is above replicas; it can never happen",
            )
        )
    rules.append(
        Rule(
            ".ports",
            "!has(self.ports) || self.ports.map(p, has(p.count) ? p.count : 1).sum() <= "
            f"{PORTS_PER_REPLICA}",
            f"more than {PORTS_PER_REPLICA} in all; each replica owns a block of "
            f"{PORTS_PER_REPLICA}",
        )
    )
    rules.append(
        Rule(
            ".ports",
            "!has(self.ports) || self.ports.all(p, !has(p.beginAt) || "
            f"p.beginAt + (has(p.count) ? p.count : 1) - 1 <= {MOST_PORT})",
            f"with its count a beginAt goes beyond {MOST_PORT}, the highest port there is",
        )
    )
    return rules


def of_the_tasks() -> list[Rule]:
    return [
        Rule(
            "",
            "self.all(t, self.exists_one(other, other.name == t.name))",
            "two tasks have the same name; a task's name stands once in a job",
        )
    ]


def _replicas(role: str) -> str:
    return f"{role}.replicas"


def _most(role: str) -> str:
    """The replicas a role may grow to."""
    return f"(has({role}.limits) ? {role}.limits : {role}.replicas)"


def _total(count: Callable[[str], str], spec: str = "self") -> str:
    classic = " + ".join(f"(has({spec}.{role}) ? {count(f'{spec}.{role}')} : 0)" for role in ROLES)
    return f"({classic} + (has({spec}.tasks) ? {spec}.tasks.map(t, {count('t')}).sum() : 0))"


def _pod_name(role: str) -> Rule:
    here = f"self.spec.{role}"
    length = f"size({_NAME}) + {len(role) + 2} + size(string({_most(here)} - 1))"
    # No messageExpression: the API server takes a name for text without end, and its use as too
    # dear.
    return Rule(
        ".metadata.name",
        f"{_unchanged(role)} || !has({here}) || {length} <= {LONGEST}",
        f"it is too long: the pods' names, <name>-{role}-<number>, would have more "
        f"than {LONGEST} characters, which no host name may have; make it shorter",
        also_at_creation=True,
    )


def _endpoints(role: str) -> Rule:
    here = f"self.spec.{role}"
    each = f"(size({_NAME}) + {len(f'-{role}-:36000,')} + size(string({_most(here)} - 1)))"
    return Rule(
        f".spec.{role}.replicas",
        f"{_unchanged(role)} || !has({here}) || {_MET_OTHERWISE} || "
        f"{_most(here)} * {each} <= {_ROOM}",
        _TOO_MANY_NAMES,
        also_at_creation=True,
    )


def _endpoints_of_tasks() -> Rule:
    letters = f"size({_NAME}) + size(t.name) + {len('--:36000,')}"
    each = f"({letters} + size(string({_most('t')} - 1)))"
    return Rule(
        ".spec.tasks",
        f"{_unchanged_tasks()} || !has(self.spec.tasks) || {_MET_OTHERWISE} || "
        f"self.spec.tasks.all(t, {_most('t')} * {each} <= {_ROOM})",
        _TOO_MANY_NAMES,
        also_at_creation=True,
    )


_MET_OTHERWISE = "self.spec.intranet != 'Service'"
_ROOM = MAX_STRING - len("PADDLE_PSERVERS_IP_PORT_LIST=")
_TOO_MANY_NAMES = (
    "with intranet Service the list of all names is one environment variable of at most 128 KiB, "
    "and these do not fit; use fewer replicas, a shorter job name or intranet: PodIP"
)


def _unchanged(role: str) -> str:
    """Whether as many as before meet in the same way: all that these rules ask of a role."""
    before = "oldSelf.value().spec"
    counts = " && ".join(
        f"{before}.?{role}.?{count} == self.spec.?{role}.?{count}"
        for count in ("replicas", "limits")
    )
    return f"(oldSelf.hasValue() && {counts} && {before}.intranet == self.spec.intranet)"


def _unchanged_tasks() -> str:
    before = "oldSelf.value().spec"
    return (
        f"(oldSelf.hasValue() && has({before}.tasks) && has(self.spec.tasks) && "
        f"{before}.tasks == self.spec.tasks && {before}.intranet == self.spec.intranet)"
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
        ".mode",
        f"!has(self.mode) || self.mode == {derived} || "
        f"(self.mode == '{Mode.COLLECTIVE}' && {alone})",
        "it is not what the roles make of the job; remove mode, or change the roles",
        f"'found ' + self.mode + ', but the roles make it ' + {derived} + "
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
    where, found = ".runPolicy.restartScope", "found Replica, but "
    return [
        Rule(
            where,
            f"!({scoped} && {collective})",
            f"{found}the others of a Collective job abort when one ends; use Job",
        ),
        Rule(
            where,
            f"!({scoped} && {gloo})",
            f"{found}gloo lets nobody join a group again; use Job, or withGloo: 0",
        ),
        Rule(
            where,
            f"!({scoped} && !({collective}) && !({gloo}) && self.intranet == 'PodIP')",
            f"{found}with intranet PodIP a new replica has a new address, which the others do "
            "not know; use Job, or intranet: Service",
        ),
    ]


def _host_network() -> list[Rule]:
    """As in `api.checks.rules`, but a job that was so before may be changed: also to end it."""

    def rule(field: str, on_host: Callable[[str], str], found: str) -> Rule:
        here, before = (
            f"({on_host(spec)} && !({spec}.intranet in ['{Intranet.HOST}', 'HostNetwork']) && "
            f"{_total(_replicas, spec)} > 1)"
            for spec in ("self", "oldSelf.value()")
        )
        return Rule(
            field,
            f"!{here} || (oldSelf.hasValue() && {before})",
            f"{found}, but intranet is not {Intranet.HOST}, {ON_ONE_PORT}",
            f"'{found}, but intranet is ' + self.intranet + ', {ON_ONE_PORT}'",
            also_at_creation=True,
        )

    def of_a(role: str) -> Rule:
        return rule(
            f".{role}.template.spec.hostNetwork",
            lambda spec: _asks_for_host(f"{spec}.?{role}"),
            "found true",
        )

    tasks = rule(
        ".tasks",
        lambda spec: f"has({spec}.tasks) && {spec}.tasks.exists(t, {_asks_for_host('t')})",
        "a template has hostNetwork: true",
    )
    return [*map(of_a, ROLES), tasks]


def _asks_for_host(role: str) -> str:
    return f"{role}.?template.?spec.?hostNetwork.orValue(false)"
