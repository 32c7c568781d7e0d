"""What of a job that exists may change, as CEL expressions that an API server evaluates.

Pods are made once, so what they are made of (a template, a task's ports) stays unless the job is
suspended and has none. Replicas, their bounds and a task's completion are read whenever they
matter. There is no such thing in `api.checks.rules`: the local engine has no way to edit a job.
The changes that every door offers are judged by their twin, `controller.changes`.
"""

from __future__ import annotations

from regatta.api.crd.cel_rules import ROLES, Rule

#: Of spec, what stays as it was created.
FIXED = ("mode", "cleanPodPolicy", "cleanPolicy", "withGloo", "intranet", "elastic")


def of_the_spec() -> list[Rule]:
    suspended = _in_run_policy("suspend", "oldSelf")
    instead = (
        "the pods that run would not follow. Suspend the job first (spec.runPolicy.suspend: true), "
        "or delete it and apply it again"
    )
    rules = [
        Rule(
            f".{field}",
            f"{suspended} || {_kept(field)}",
            f"it cannot change after creation: {instead}",
        )
        for field in FIXED
    ]
    for role in ROLES:
        template = _kept("template", f"self.{role}", f"oldSelf.{role}")
        rules.append(
            Rule(
                f".{role}",
                f"{suspended} || (has(self.{role}) ? has(oldSelf.{role}) && {template} "
                f": !has(oldSelf.{role}))",
                f"only replicas, requests and limits may change after creation, because {instead}",
            )
        )
    of_pods = " && ".join(_kept(field, "t", "o") for field in ("template", "ports", "alias"))
    rules.append(
        Rule(
            ".tasks",
            f"{suspended} || (has(self.tasks) == has(oldSelf.tasks) && (!has(self.tasks) || "
            "(size(self.tasks) == size(oldSelf.tasks) && self.tasks.all(t, oldSelf.tasks.exists("
            f"o, o.name == t.name && {of_pods})))))",
            "only replicas, requests, limits and completion may change after creation, because "
            f"{instead}",
        )
    )
    rules.append(
        Rule(
            ".runPolicy.abort",
            f"!{_in_run_policy('abort', 'oldSelf')} || {_in_run_policy('abort', 'self')}",
            "an aborted job cannot be taken back: its pods are being stopped; delete it and apply "
            "it again",
        )
    )
    return rules


def _in_run_policy(flag: str, spec: str) -> str:
    return f"{spec}.?runPolicy.?{flag}.orValue(false)"


def _kept(field: str, now: str = "self", before: str = "oldSelf") -> str:
    # Not as an equation of two optional values: their cost is estimated as without bounds.
    now, before = f"{now}.{field}", f"{before}.{field}"
    return f"(has({now}) ? has({before}) && {now} == {before} : !has({before}))"
