"""The schema of `spec`: the drafts that read a job file, with defaults and a line on each field.

Defaults stand here only for fields that have one spelling. `cleanPodPolicy` is also written
`cleanPolicy`, and a default on either would contradict a job that says the other; they, and
`withGloo`, which means something only beside `ps`, are defaulted when the job is read.
"""

from __future__ import annotations

from typing import Any

from regatta.api.checks.names import ALIAS, LONGEST, LONGEST_ALIAS
from regatta.api.checks.schema import SpecDraft
from regatta.api.checks.task_rules import MAX_TASKS, PORTS_PER_REPLICA
from regatta.api.crd import cel_changes, cel_rules
from regatta.api.crd.pod_template import pod_template
from regatta.api.crd.structural import JUDGED_QUANTITY, Schema, structural
from regatta.api.job import Intranet, RunPolicy, TaskPort

#: For `kubectl explain`. Pod templates have none: they would not fit.
_EXPLAINED = {
    "cleanPodPolicy": "When the pods of a finished job are removed. OnCompletion unless set.",
    "cleanPolicy": "Another spelling of cleanPodPolicy.",
    "elastic": "Its presence lets the number of workers move between requests and limits.",
    "heter": "Heter trainers, beside ps.",
    "intranet": "How replicas name each other: by pod address, by Service, or on the host network.",
    "mode": "Derived from the roles unless set.",
    "ps": "Parameter servers. They do not hold the job's completion back.",
    "runPolicy": "Restarts, deadlines, suspension.",
    "schedulingPolicy": "The gang, for Volcano or Kubernetes' own gang scheduling.",
    "tasks": "Roles with names of their own, instead of ps, worker and heter.",
    "withGloo": "Of jobs with ps: 0 off, 1 workers, 2 workers and servers. 1 unless set.",
    "worker": "Trains. The job completes when all workers have succeeded.",
    "completion.minFailed": "So many failed replicas fail the job. 1 unless set; null: none do.",
    "completion.minSucceeded": "So many succeeded replicas complete it.",
    "limits": "The most workers that an elastic job grows to.",
    "replicas": "How many pods.",
    "requests": "The fewest workers that an elastic job runs with.",
    "runPolicy.abort": "Ends the job as Aborted.",
    "runPolicy.activeDeadlineSeconds": "The job fails after so long; waiting and suspension "
    "do not count.",
    "runPolicy.backoffLimit": "Failures after which the job is tried again; -1: after each.",
    "runPolicy.hangTimeoutSeconds": "No progress for so long counts as a failure. "
    "Not on clusters yet.",
    "runPolicy.noRetry": "Exit codes and reasons of failures after which it is not.",
    "runPolicy.restartScope": "What starts again after a failure. Only with intranet Service "
    "can it be less than the whole job.",
    "runPolicy.suspend": "Held without pods until it is false again.",
    "runPolicy.ttlSecondsAfterFinished": "A finished job is deleted after so long.",
    "schedulingPolicy.minAvailable": "How many pods must start together.",
    "schedulingPolicy.minResources": "What the gang needs in all.",
    "schedulingPolicy.priorityClass": "The gang's priority class.",
    "schedulingPolicy.queue": "Volcano's queue.",
}


def spec_schema() -> Schema:
    drafted = SpecDraft.model_json_schema()
    spec = structural(drafted, drafted["$defs"])
    fields = spec["properties"]
    fields["intranet"]["default"] = str(Intranet.POD_IP)
    for role in cel_rules.ROLES:
        _complete_role(fields[role], cel_rules.of_a_role(), may_run_for_ever=role == "ps")
    _complete_tasks(fields["tasks"])
    gang = fields["schedulingPolicy"]["properties"]
    gang["minResources"]["additionalProperties"] = JUDGED_QUANTITY
    policy = fields["runPolicy"]
    policy["default"] = {}
    for field in ("suspend", "abort", "backoffLimit", "restartScope"):
        policy["properties"][field]["default"] = _default(RunPolicy(), field)
    checks = [*cel_rules.of_the_spec(), *cel_changes.of_the_spec()]
    spec["x-kubernetes-validations"] = [check.as_validation() for check in checks]
    _explain(spec)
    return spec


def _complete_role(
    role: Schema, checks: list[cel_rules.Rule], *, may_run_for_ever: bool = False
) -> None:
    role["required"] = ["replicas"]
    template = role["properties"]["template"] = pod_template()
    if not may_run_for_ever:
        check = cel_rules.of_a_restart_policy().as_validation()
        template["properties"]["spec"]["properties"]["restartPolicy"] |= {
            "x-kubernetes-validations": [check]
        }
    role["x-kubernetes-validations"] = [check.as_validation() for check in checks]


def _complete_tasks(tasks: Schema) -> None:
    tasks |= {"minItems": 1, "maxItems": MAX_TASKS}
    tasks["x-kubernetes-validations"] = [rule.as_validation() for rule in cel_rules.of_the_tasks()]
    task = tasks["items"]
    _complete_role(task, cel_rules.of_a_task())
    task["required"] = ["name", "replicas"]
    task["properties"]["name"]["maxLength"] = LONGEST
    task["properties"]["alias"] |= {"pattern": f"^{ALIAS.pattern}$", "maxLength": LONGEST_ALIAS}
    task["properties"]["completion"]["properties"]["minFailed"]["nullable"] = True
    ports = task["properties"]["ports"]
    ports["maxItems"] = PORTS_PER_REPLICA
    ports["items"]["required"] = ["label"]
    ports["items"]["properties"]["count"]["default"] = TaskPort(label="").count


def _default(struct: Any, field: str) -> Any:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in field)
    value = getattr(struct, snake)
    return str(value) if isinstance(value, str) else value


def _explain(spec: Schema) -> None:
    fields = spec["properties"]
    for path, line in _EXPLAINED.items():
        holder, _, field = path.rpartition(".")
        if holder == "completion":
            places = [fields["tasks"]["items"]["properties"]["completion"]["properties"]]
        elif holder:
            places = [fields[holder]["properties"]]
        elif field in fields:
            places = [fields]
        else:
            roles = [fields[role] for role in cel_rules.ROLES] + [fields["tasks"]["items"]]
            places = [role["properties"] for role in roles]
        for place in places:
            place[field]["description"] = line
