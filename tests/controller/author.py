"""Who writes a job's spec, rightly and wrongly, and an engine that reads it and may forget it."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from regatta.api.errors import RegattaError
from regatta.api.job import Job, JobSpec, JobStatus, RoleSpec
from regatta.api.problems import Problem
from regatta.controller.changes import deleted, replaced, scaled, stopped, suspended
from regatta.controller.policies.wrong_spec import WrongSpec, spec_in_force, was_found_right
from tests.controller.builders import at

OTHER_TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "main", "command": ["no"]}]}}


class Author:
    def __init__(self, random: Random, spec: JobSpec) -> None:
        self.random = random
        self.spec = spec
        self.deadline = spec.run_policy.active_deadline_seconds
        self.generation = 1
        #: What is wrong with it; and whether it can be read at all.
        self.mistake: Problem | None = None
        self.readable = True
        #: The last right spec that the engine has read; and the same, until it forgets.
        self.followed: JobSpec | None = None
        self.remembered: JobSpec | None = None

    @property
    def problem(self) -> str:
        return str(self.mistake) if self.mistake else ""

    # -- what is written -------------------------------------------------------------------

    def write(self, spec: JobSpec) -> None:
        self.spec = spec
        self.generation += 1

    def ask(self, **policy: Any) -> None:
        self.write(replace(self.spec, run_policy=replace(self.spec.run_policy, **policy)))

    def err(self) -> None:
        """A wrong spec, whatever was there: one of few mistakes, and much else changed with it."""
        assert self.spec.worker is not None
        worker = self.spec.worker
        policy = replace(self.spec.run_policy, active_deadline_seconds=self.deadline)
        place = f"spec.field{self.random.randint(1, 3)}"
        roll = self.random.random()
        if roll < 0.3:
            worker = replace(worker, replicas=self.random.randint(1, 4))
        elif roll < 0.5:
            worker = RoleSpec(replicas=worker.replicas, template=OTHER_TEMPLATE)
        elif roll < 0.7:
            policy = replace(policy, active_deadline_seconds=-1)
            place = "spec.runPolicy.activeDeadlineSeconds"
        self.mistake = Problem(place, "it is wrong")
        self.readable = self.random.random() < 0.7
        self.write(replace(self.spec, worker=worker, run_policy=policy))

    def correct(self, right: JobSpec) -> None:
        """What was asked for meanwhile stays asked for."""
        self.mistake, self.readable = None, True
        asked = self.spec.run_policy
        policy = replace(right.run_policy, suspend=asked.suspend, abort=asked.abort)
        assert right.worker is not None
        workers = self.random.choice([right.worker.replicas, self.random.randint(1, 4)])
        worker = replace(right.worker, replicas=workers)
        self.write(replace(right, run_policy=policy, worker=worker))

    # -- what is read ----------------------------------------------------------------------

    def forget(self) -> None:
        """The engine starts again and knows only what is stored."""
        self.remembered = None

    def read(self, status: JobStatus) -> JobSpec:
        """The spec that holds."""
        if self.mistake is None:
            self.followed = self.remembered = self.spec
            return self.spec
        assert not was_found_right(status, self.generation), f"{self.mistake} passes as right"
        wrong = WrongSpec(
            problems=(self.mistake,),
            spec=self.spec if self.readable else None,
            run_policy=self.spec.run_policy,
        )
        return spec_in_force(status, wrong, self.remembered)


CHANGES = ("stop", "suspend", "resume", "scale", "delete", "replace", "take its name")


def change(job: Job, kind: str, replicas: int, now: float, *, runs_on: bool) -> Job | None:
    """What a person wants of a job through a door; None where that is refused."""
    try:
        match kind:
            case "stop":
                return stopped(job, runs_on=runs_on)
            case "suspend" | "resume":
                return suspended(job, kind == "suspend")
            case "scale":
                return scaled(job, "worker", replicas)
            case "delete":
                return deleted(job, at(now).wall)
            case _:
                return replaced(job, even_live=kind == "replace")
    except RegattaError:
        return None


def is_forbidden(job: Job, kind: str) -> bool:
    """The same in other words than the rules have."""
    policy, status = job.spec.run_policy, job.status
    over = status.phase is not None and status.phase.final
    trainers = [status.worker, status.heter]
    done = any(trainer is not None and trainer.done for trainer in trainers)
    going = job.metadata.deletion_timestamp is not None
    return {
        "stop": going,
        "suspend": going or over or policy.abort or policy.suspend,
        "resume": going or over or policy.abort or not policy.suspend,
        "scale": going or over or policy.abort or done,
        "delete": False,
        "replace": False,
        "take its name": not over,
    }[kind]
