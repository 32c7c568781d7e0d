"""What must hold in every history of a job, whatever happens to it (`histories.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from regatta.api.job import CleanPodPolicy, JobStatus, Phase, RoleStatus
from regatta.controller.observe import is_current
from regatta.controller.plan import Plan
from regatta.controller.policies.wrong_spec import INVALID_SPEC
from regatta.controller.reconcile import reconcile
from regatta.controller.world import Children, Pod, PodPhase

if TYPE_CHECKING:
    from tests.controller.histories import History


def plan_is_sound(history: History, plan: Plan) -> None:
    old = history.job.status
    for new in plan.pods:
        history.claim(new.name not in history.pods, f"{new.name} is created though it exists")
    names = [new.name for new in plan.pods]
    history.claim(len(names) == len(set(names)), "one plan creates a name twice")
    history.claim(not (history.over and plan.pods), "a finished job makes pods")
    for ref in (*plan.stop, *plan.delete):
        known = history.pods.get(ref.name)
        history.claim(ref.kind != "Pod" or known is not None, f"{ref.name} ended, but is unknown")
        twice = ref.kind == "Pod" and known is not None and known.deleting
        history.claim(not twice, f"{ref.name} is ended twice")
    for ref in plan.stop:
        history.claim(not history.pods[ref.name].stopping, f"{ref.name} is stopped twice")
    if plan.status is None:
        return
    new_status = plan.status
    history.claim(new_status != old, "a status is written that did not change")
    history.claim(not history.over or _only_counts(old, new_status), "a final status changes")
    if new_status.reason == "DeadlineExceeded":
        _ran_for_so_long(history)
    history.claim(new_status.attempt >= old.attempt, "attempts go backwards")
    history.claim(new_status.revision >= old.revision, "revisions go backwards")
    limit = max(history.limits)
    history.claim(new_status.restarts <= limit, "restarted more often than backoffLimit")
    if new_status.phase is Phase.COMPLETED:
        _completed_by_all(history)


def _only_counts(old: JobStatus, new: JobStatus) -> bool:
    """They differ in nothing but how many servers still run."""

    def without(status: JobStatus) -> JobStatus:
        return replace(status, ps=status.ps and replace(status.ps, running=0, ready=""))

    return without(old) == without(new)


def wrong_specs_do_nothing_new(history: History, plan: Plan, children: Children) -> None:
    """A wrong spec ends and makes nothing that the last right one would not, or, where nobody
    remembers that one, beyond the size on record."""
    for new in plan.pods:
        command = new.manifest["spec"]["containers"][0]["command"]
        history.claim(command == ["true"], f"{new.name} is made of a template that was never right")
    if not history.author.problem or history.job.deleting:
        return
    ended, made = _touched(plan)
    followed = history.author.followed
    if followed is None or not history.job.spec.roles():
        history.claim(not ended and not made, "a job that has nothing to go on with does something")
        return
    right = replace(followed, run_policy=history.job.spec.run_policy)
    as_before = reconcile(replace(history.job, spec=right), children, history.instant)
    ends, makes = _touched(as_before)
    shape, forgotten = history.job.status.shape, history.author.remembered is None
    waiting = {pod.name for pod in history.pods.values() if pod.index >= shape.get(pod.role, 0)}
    history.claim(ended <= ends | waiting, f"a wrong edit ends {ended}, not {ends}")
    on_record = {n.name for n in plan.pods if forgotten and n.index < shape.get(n.role, 0)}
    history.claim(made <= makes | on_record, f"a wrong edit makes {made}, not {makes}")
    if not forgotten and history.pods:
        history.claim((ended, made) == (ends, makes), "a wrong edit keeps the job from going on")


def work_is_not_done_twice(history: History, plan: Plan) -> None:
    """A trainer's share of the work is never done twice for the sake of another size."""
    status = history.job.status
    done = bool(status.worker and status.worker.done) or any(
        pod.role == "worker" and pod.phase is PodPhase.SUCCEEDED and not pod.stopping
        for pod in history.pods.values()
        if is_current(pod, status.worker or RoleStatus())
        and pod.index < status.shape.get(pod.role, 0)
    )
    if not done:
        return
    scales = [event.message for event in plan.events if event.reason == "Scaling"]
    history.claim(not scales, f"a done worker's work is done again: {scales}")
    grown = [n.name for n in plan.pods if n.index >= status.shape.get(n.role, 0)]
    history.claim(not grown, f"{grown} come too late")


def the_spec_that_stands_is_told(history: History, plan: Plan) -> None:
    """What is said of a spec is said of the one that stands, once, and of no other."""
    problem, status = history.author.problem, history.job.status
    for event in plan.events:
        if event.reason == INVALID_SPEC:
            history.claim(event.message == problem, f"{event.message} is told, not {problem}")
            history.claim(event.message != history.told, f"{event.message} is told twice")
            history.told = problem
    if not problem:
        history.told = ""
    written = plan.status is None or status == plan.status
    if history.over or history.job.deleting or not written:
        return
    said = status.message if status.reason == INVALID_SPEC else status.spec_problem
    history.claim(said == problem, f"the job says {said!r}, and {problem!r} is wrong")
    history.claim(
        status.observed_generation == history.author.generation,
        f"generation {history.author.generation} was judged and is not observed",
    )


def _ran_for_so_long(history: History) -> None:
    """Whatever the clock on the wall was set to."""
    limit = history.job.spec.run_policy.active_deadline_seconds or 0
    ran = history.now - (history.job.status.started_awake or 0.0)
    history.claim(ran >= limit, f"its deadline of {limit} s is over after {ran} s")


def _completed_by_all(history: History) -> None:
    """Every worker of the size in effect has succeeded, as far as anybody was told."""
    size = history.job.status.shape.get("worker", 0)
    done = set(history.job.status.worker.done if history.job.status.worker else ())
    done |= {
        p.index
        for p in history.pods.values()
        if p.role == "worker" and p.phase is PodPhase.SUCCEEDED
    }
    history.claim(done >= set(range(size)), "completed without all its workers")


def reads_its_own_place(history: History, pod: Pod) -> None:
    """The pod stands at its own place in the list that it is about to read."""
    data = history.environments[pod.revision]
    key = "PADDLE_PSERVERS_IP_PORT_LIST" if pod.role == "ps" else "PADDLE_TRAINER_ENDPOINTS"
    hosts = [endpoint.rsplit(":", 1)[0] for endpoint in data[key].split(",")]
    mine = hosts[pod.index] if pod.index < len(hosts) else None
    history.claim(mine == pod.host, f"{pod.name} would read {hosts}, and is at {pod.host}")


def ended_as_it_should(history: History) -> None:
    if history.gone:
        return
    history.claim(history.author.followed is not None, "it ended before its spec was right")
    phase, policy = history.job.status.phase, history.job.spec.clean_pod_policy
    assert phase is not None
    cleaned = {
        Phase.COMPLETED: policy in (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_COMPLETION),
        Phase.FAILED: policy in (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_FAILURE),
        Phase.ABORTED: policy is CleanPodPolicy.ALWAYS,
    }[phase]
    alive = [pod for pod in history.pods.values() if not pod.phase.over]
    shown = sum(role.running for role in history.job.status.roles().values())
    serving = [pod for pod in alive if not pod.stopping]
    history.claim(shown == len(serving), f"{shown} run by its status, {len(serving)} in truth")
    if cleaned:
        history.claim(not history.pods, "pods are left behind")
    elif phase is Phase.COMPLETED:
        history.claim(all(p.role == "ps" for p in alive), "more than servers runs on")
    else:
        history.claim(not alive, "a failed or aborted job left something running")
    if phase is Phase.ABORTED:
        history.claim(history.aborted, "aborted though nobody asked")
    if phase is Phase.FAILED:
        _failed_for_a_reason(history)


def _failed_for_a_reason(history: History) -> None:
    status, policy = history.job.status, history.job.spec.run_policy
    if status.reason == "DeadlineExceeded":
        history.claim(
            policy.active_deadline_seconds is not None, "failed by no deadline of its own"
        )
        return
    history.claim(status.failure is not None, "failed without saying who did")
    # A wrong run policy allows no restart where nobody remembers the one before.
    history.claim(status.restarts >= min(history.limits), "failed before its restarts were spent")


def _touched(plan: Plan) -> tuple[set[str], set[str]]:
    """Pods that it ends, and that it makes."""
    ended = {ref.name for ref in (*plan.stop, *plan.delete) if ref.kind == "Pod"}
    return ended, {new.name for new in plan.pods}
