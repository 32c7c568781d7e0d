"""Streams of the engine itself: events that go on, a cluster that goes away, and what is asked."""

from __future__ import annotations

import contextlib
from pathlib import Path

from regatta.api.job import Job
from regatta.engines.base import LogQuery, Lost, Remark, Synced
from regatta.engines.inventory import EventView
from tests.doors import eventually
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.engine import jobfiles
from tests.kubernetes.engine.engines import opened
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.operator.running import Jobs


def test_events_go_on_after_the_one_that_was_told_last(
    plane: ControlPlane, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_phase(name, "Running")
    with opened(plane.admin_kubeconfig, jobs.namespace) as engine:
        eventually(lambda: _of_pods(engine.events(jobs.namespace, name)), "an event of its pod")
        eventually(lambda: len(engine.events(jobs.namespace, name)) >= 3, "some events")
        so_far = engine.events(jobs.namespace, name)
        ids = [event.id for event in so_far]
        assert ids == sorted(set(ids))
        jobs.ends(f"{name}-worker-0")
        told: list[EventView] = []

        with contextlib.closing(engine.follow_events(jobs.namespace, name, ids[1])) as stream:
            for event in stream:
                assert isinstance(event, EventView)
                told.append(event)
                if event.reason == "Completed":
                    break

    assert told[0].id == ids[2]
    assert {event.id for event in told}.isdisjoint(ids[:2])


def test_a_follower_is_told_once_that_a_log_cannot_be_read(
    plane: ControlPlane, jobs: Jobs, name: str
) -> None:
    """Simulated nodes keep none."""
    jobs.create(jobfiles.running(name, workers=2))
    jobs.wait_for_phase(name, "Running")
    with opened(plane.admin_kubeconfig, jobs.namespace) as engine:
        stream = engine.follow(jobs.namespace, name, LogQuery())
        first = [next(update for update in stream if isinstance(update, Remark)) for _ in "12"]
        for index in (0, 1):
            jobs.ends(f"{name}-worker-{index}")
        rest = [update.text for update in stream if isinstance(update, Remark)]

    assert sorted(remark.text.partition(":")[0] for remark in first) == [
        "the log of worker-0 cannot be read",
        "the log of worker-1 cannot be read",
    ]
    assert rest == []


def _of_pods(events: list[EventView]) -> list[EventView]:
    return [event for event in events if event.message.startswith("worker-")]


def test_events_of_a_job_and_its_pods_come_as_they_were_written(
    plane: ControlPlane, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.ending(name, workers=3))
    jobs.wait_for_event(name, "Completed")
    with opened(plane.admin_kubeconfig, jobs.namespace) as engine:
        # The scheduler writes its events behind its work.
        eventually(
            lambda: len(_of_pods(engine.events(jobs.namespace, name))) >= 3, "events of its pods"
        )
        wanted = engine.events(jobs.namespace, name)
        with contextlib.closing(engine.follow_events(jobs.namespace, name)) as stream:
            told = [next(stream) for _ in wanted]

    assert told == wanted


def test_a_watch_whose_cluster_goes_away_says_so_once_and_goes_on(
    plane: ControlPlane, jobs: Jobs, name: str, tmp_path: Path
) -> None:
    jobs.create(jobfiles.running(name, workers=1).policy(suspend=True))
    jobs.wait_for_phase(name, "Suspended")
    with (
        FaultProxy(plane.admin_kubeconfig, tmp_path) as proxy,
        opened(proxy.kubeconfig, jobs.namespace) as engine,
        contextlib.closing(engine.watch(jobs.namespace, name)) as watch,
    ):
        assert isinstance(next(watch), Job)
        assert next(watch) == Synced()
        proxy.cut()
        assert isinstance(next(watch), Lost)
        jobs.change(name, runPolicy={"suspend": False})
        jobs.wait_for_phase(name, "Running")
        proxy.restore()
        told = next(watch)
        while not (isinstance(told, Job) and told.status.phase == "Running"):
            assert not isinstance(told, Lost)
            told = next(watch)


def test_a_command_asks_only_for_the_job_it_is_about(
    plane: ControlPlane, jobs: Jobs, name: str, tmp_path: Path
) -> None:
    jobs.create(jobfiles.ending(name))
    jobs.wait_for_phase(name, "Completed")
    with (
        FaultProxy(plane.admin_kubeconfig, tmp_path) as proxy,
        opened(proxy.kubeconfig, jobs.namespace) as engine,
    ):
        *_, last = engine.follow(jobs.namespace, name, LogQuery())

        assert isinstance(last, Job)
        space = f"/namespaces/{jobs.namespace}/"
        assert all(space in path for _, path in proxy.requests), proxy.requests


def test_pods_that_were_followed_are_shown_after_they_are_gone(
    plane: ControlPlane, jobs: Jobs, name: str
) -> None:
    jobs.create(jobfiles.running(name, workers=1))
    jobs.wait_for_phase(name, "Running")
    with opened(plane.admin_kubeconfig, jobs.namespace) as engine:
        stream = engine.follow(jobs.namespace, name, LogQuery())
        assert next(stream)
        jobs.ends(f"{name}-worker-0")
        for _ in stream:
            pass
        jobs.wait_for_pods(name, lambda pods: not pods, "no pods")

        (pod,) = engine.pods(jobs.namespace, name)
        assert (pod.phase, pod.current, bool(pod.node)) == ("Succeeded", False, True)
        engine.delete(jobs.namespace, name)
