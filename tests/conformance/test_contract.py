"""What the engine contract promises, whoever answers. Logs are in `test_logs`: simulated nodes
have none."""

from __future__ import annotations

import pytest

from regatta.api.errors import (
    InvalidJob,
    JobIsLive,
    JobNotFound,
    NotPossible,
    RegattaError,
    ShellRefused,
)
from regatta.api.job import Job, Phase
from regatta.engines.base import LogQuery, Shell, Submission
from tests.conformance.stages import Stage
from tests.engines.updates import told, until

SUSPENDED = {"suspend": True}


def test_what_an_engine_says_of_itself_is_true(play: Stage) -> None:
    traits = play.engine.traits()
    assert traits.engine in ("local", "kubernetes")
    assert traits.takes_shell is play.gives_shell
    assert play.engine.version()


def test_a_submission_sent_twice_with_its_key_is_one_job(play: Stage) -> None:
    first = play.submit("once", key="k", runPolicy=SUSPENDED)
    again = play.submit("once", key="k", runPolicy=SUSPENDED)
    assert again.job.uid == first.job.uid
    with pytest.raises(JobIsLive):
        play.submit("once", key="another", runPolicy=SUSPENDED)
    assert play.job("once").uid == first.job.uid


def test_a_live_job_keeps_its_name_unless_it_is_to_be_replaced(play: Stage) -> None:
    first = play.submit("name", runPolicy=SUSPENDED)
    with pytest.raises(JobIsLive, match="--replace"):
        play.submit("name", runPolicy=SUSPENDED)
    second = play.submit("name", replace=True, runPolicy=SUSPENDED)
    assert second.replaced == first.job.uid
    assert play.job("name").uid == second.job.uid


def test_a_bad_file_gets_every_problem_with_its_place(play: Stage) -> None:
    document = play.document("bad", cleanPodPolicy="Nerver")
    document["spec"]["worker"]["replicas"] = -1
    with pytest.raises(InvalidJob) as refused:
        play.send(document)
    paths = {problem.path for problem in refused.value.problems}
    assert paths == {"spec.cleanPodPolicy", "spec.worker.replicas"}
    with pytest.raises(JobNotFound):
        play.job("bad")


def test_a_submission_says_what_its_roles_run(play: Stage) -> None:
    said = {"ps": "sleep 600", "*": "sh -c 'echo trained'"}
    job = play.submit("said", ps=1, commands=said).job
    commands = {
        name: role.template["spec"]["containers"][0]["command"]
        for name, role in job.spec.roles().items()
    }
    assert commands == {"ps": ["sleep", "600"], "worker": ["sh", "-c", "echo trained"]}


def test_a_preview_shows_what_would_be_and_creates_nothing(play: Stage) -> None:
    preview = play.preview("paper", ps=1, workers=2)
    pods = ["paper-ps-0", "paper-worker-0", "paper-worker-1"]
    assert sorted(preview.environment) == pods
    assert sorted(preview.ports) == pods
    assert preview.environment["paper-worker-1"]["PADDLE_TRAINER_ID"] == "1"
    assert "Pod" in {made["kind"] for made in preview.objects}
    with pytest.raises(JobNotFound):
        play.job("paper")


def test_a_shell_is_used_or_refused_by_name(play: Stage) -> None:
    document = '{"apiVersion": "v1"}'  # not looked at where the shell is refused already
    submission = Submission(text=document, namespace=play.namespace)
    shell = Shell(python="/usr/bin/python3", volumes={"data": "/tmp"})
    if play.engine.traits().takes_shell:
        with pytest.raises(InvalidJob):
            play.engine.submit(submission, shell)
        return
    with pytest.raises(ShellRefused) as refused:
        play.engine.submit(submission, shell)
    assert {problem.path for problem in refused.value.problems} == {"--python", "--volume"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda play: play.engine.get(play.namespace, "nobody"),
        lambda play: play.engine.stop(play.namespace, "nobody"),
        lambda play: play.engine.delete(play.namespace, "nobody"),
        lambda play: play.engine.scale(play.namespace, "nobody", "worker", 2),
        lambda play: play.engine.suspend(play.namespace, "nobody"),
        lambda play: play.engine.pods(play.namespace, "nobody"),
        lambda play: play.engine.events(play.namespace, "nobody"),
        lambda play: next(play.engine.logs(play.namespace, "nobody", LogQuery())),
        lambda play: next(play.engine.follow(play.namespace, "nobody", LogQuery())),
        lambda play: next(play.engine.follow_events(play.namespace, "nobody")),
    ],
    ids=["get", "stop", "delete", "scale", "suspend", "pods", "events", "logs", "follow", "story"],
)
def test_a_job_that_is_not_there_is_named(play: Stage, ask) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(JobNotFound, match="there is no job named nobody in namespace"):
        ask(play)


def test_what_a_job_is_in_no_state_for_is_refused_with_the_state(play: Stage) -> None:
    play.submit("paused", runPolicy=SUSPENDED)
    play.reaches("paused", Phase.SUSPENDED)
    space, engine = play.namespace, play.engine
    refusals = {
        "already suspended": lambda: engine.suspend(space, "paused"),
        "its roles are worker": lambda: engine.scale(space, "paused", "ps", 1),
        "not 0": lambda: engine.scale(space, "paused", "worker", 0),
    }
    for sentence, ask in refusals.items():
        with pytest.raises(NotPossible, match=sentence):
            ask()
    engine.stop(space, "paused")
    play.reaches("paused", Phase.ABORTED)
    for ask in (engine.stop, engine.resume):
        with pytest.raises(NotPossible, match="Aborted"):
            ask(space, "paused")


def test_a_watch_tells_what_is_there_then_what_changes(play: Stage) -> None:
    play.submit("seen", runPolicy=SUSPENDED)
    play.reaches("seen", Phase.SUSPENDED)
    watch = play.engine.watch(play.namespace)
    assert told(watch) == "seen Suspended"
    assert told(watch) == "Synced()"
    play.submit("new", runPolicy=SUSPENDED)
    assert set(until(watch, "new Suspended")) <= {"new new", "new Pending", "new Suspended"}
    play.engine.delete(play.namespace, "seen")
    until(watch, "seen gone")
    watch.close()


def test_a_watch_of_one_job_hears_of_no_other(play: Stage) -> None:
    watch = play.engine.watch(play.namespace, "mine")
    assert told(watch) == "Synced()"
    play.submit("other", runPolicy=SUSPENDED)
    play.submit("mine", runPolicy=SUSPENDED)
    assert {seen.split()[0] for seen in until(watch, "mine Suspended")} == {"mine"}
    watch.close()


def test_events_tell_a_jobs_story_and_go_on_from_where_one_was(play: Stage) -> None:
    play.submit("story")
    play.reaches("story", Phase.RUNNING)
    play.until("an event", lambda: bool(play.engine.events(play.namespace, "story")))
    first = play.engine.events(play.namespace, "story")[0]
    play.end("story-worker-0", 0)
    play.reaches("story", Phase.COMPLETED)
    stream = play.engine.follow_events(play.namespace, "story", first.id)
    for event in stream:
        assert not isinstance(event, tuple), event
        assert event.id > first.id
        assert event.job == "story"
        if event.reason == "Completed":
            break
    stream.close()
    later = play.engine.events(play.namespace, "story", first.id)
    assert first.id not in [event.id for event in later]


def test_a_job_that_is_followed_tells_its_status_and_its_end_last(play: Stage) -> None:
    play.submit("followed")
    play.reaches("followed", Phase.RUNNING)
    stream = play.engine.follow(play.namespace, "followed", LogQuery())
    jobs = [next(update for update in stream if isinstance(update, Job))]
    play.end("followed-worker-0", 0)
    last = None
    for last in stream:
        if isinstance(last, Job):
            jobs.append(last)
    assert isinstance(last, Job)
    assert (jobs[0].status.phase, last.status.phase) == (Phase.RUNNING, Phase.COMPLETED)


def test_what_is_held_and_by_whom_is_told(play: Stage) -> None:
    play.submit("holder", workers=2)
    play.reaches("holder", Phase.RUNNING)
    capacity = play.engine.capacity(play.namespace)
    assert {use.replica for use in capacity.replicas if use.job == "holder"} == {
        "worker-0",
        "worker-1",
    }
    assert sum(node.pods_held for node in capacity.nodes) >= 2
    assert all(node.cpus > 0 for node in capacity.nodes)


def test_a_list_is_of_one_namespace_or_of_all(play: Stage) -> None:
    for name in ("b", "a"):
        play.submit(name, runPolicy=SUSPENDED)
        play.reaches(name, Phase.SUSPENDED)
    assert {job.name for job in play.engine.list(play.namespace)} == {"a", "b"}
    everywhere = [job for job in play.engine.list(None) if job.namespace == play.namespace]
    assert {job.name for job in everywhere} == {"a", "b"}
    assert play.engine.list("somewhere-else") == []


def test_every_refusal_has_its_code(play: Stage) -> None:
    with pytest.raises(RegattaError) as refused:
        next(play.engine.follow(play.namespace, "nobody", LogQuery()))
    assert refused.value.code == "JobNotFound"
