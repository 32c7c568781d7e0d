"""Deadlines and hang timeouts, and the clocks they are counted by."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from regatta.api.job import JobStatus, Phase, Progress
from regatta.controller.policies.timers import pause_before, soonest, until_expired, until_hung
from regatta.controller.world import Children
from tests.controller.builders import a_job, a_scene, at


def test_a_deadline_counts_from_when_the_gang_was_placed() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=60))
    scene.tick()
    scene.tick(1000)  # waiting in a queue
    scene.run()
    assert scene.job.status.phase is Phase.RUNNING
    assert scene.tick(59).look_again == 1

    plan = scene.tick(1)

    assert scene.job.status.reason == "DeadlineExceeded"
    assert scene.job.status.message == "ran longer than activeDeadlineSeconds (60 s)"
    assert [ref.name for ref in plan.stop] == ["j-worker-0"]


def test_time_asleep_does_not_count_towards_the_deadline() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=60)).run()
    status = scene.job.status
    assert status.started_awake is not None

    scene.job = replace(scene.job, status=replace(status, started_awake=status.started_awake + 500))
    scene.tick(520)

    assert scene.job.status.phase is Phase.RUNNING


def test_a_silent_job_is_hung_after_its_timeout() -> None:
    scene = a_scene(a_job().with_workers(1).policy(hang_timeout_seconds=30)).run()
    assert scene.tick(10).look_again == 20

    scene.tick(20)

    assert (scene.job.status.phase, scene.job.status.reason) == (Phase.FAILED, "Hung")


def test_a_heartbeat_puts_the_hang_timeout_off() -> None:
    scene = a_scene(a_job().with_workers(1).policy(hang_timeout_seconds=30)).run()
    scene.children = replace(scene.children, heartbeat_awake=25.0)

    scene.tick(50)

    assert scene.job.status.phase is Phase.RUNNING


def test_an_engine_that_hears_no_progress_calls_no_job_hung() -> None:
    builder = a_job().with_workers(1).policy(hang_timeout_seconds=30)
    scene = a_scene(builder, services=True).run()
    assert scene.tick(10).look_again is None

    scene.tick(1_000)

    assert scene.job.status.phase is Phase.RUNNING


def test_a_resumed_job_has_its_whole_deadline_again() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=100)).run()
    scene.tick(90)
    scene.edit(suspend=True).tick()
    scene.edit(suspend=False).tick(1_000)
    scene.run()
    assert scene.job.status.start_time == at(scene.now).wall
    scene.tick(90)
    assert scene.job.status.phase is Phase.RUNNING
    scene.tick(11)
    assert scene.job.status.reason == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("given", "due"),
    [((), None), ((None, None), None), ((3.0, None, 2.0), 2.0), ((-1.0, 5.0), 0.0), ((0.5,), 0.5)],
)
def test_the_soonest_of_several_timers_counts(
    given: tuple[float | None, ...], due: float | None
) -> None:
    assert soonest(*given) == due


def test_a_job_that_does_not_run_yet_is_not_hung() -> None:
    scene = a_scene(a_job().with_workers(2).policy(hang_timeout_seconds=30)).run()
    scene.children = replace(scene.children, progress=Progress(step=1, at=at(1).wall))
    scene.tick(1)
    scene.lose("j-worker-0").tick()
    assert scene.job.status.phase is Phase.RESTARTING

    scene.tick(100)

    assert scene.job.status.phase is Phase.RESTARTING


def test_a_new_attempt_has_its_whole_hang_timeout_again() -> None:
    builder = a_job().with_workers(1).policy(hang_timeout_seconds=30, backoff_limit=1)
    scene = a_scene(builder).run()
    scene.tick(29)
    scene.fail("j-worker-0", 1).tick()
    scene.tick(1)

    scene.run()

    assert scene.job.status.phase is Phase.RUNNING
    assert scene.tick().look_again == 30


def test_timers_of_what_was_just_decided_count_at_once() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=60))
    scene.tick()

    assert scene.place().tick().look_again == 60


def test_a_job_that_is_over_has_no_deadline() -> None:
    scene = a_scene(a_job().with_workers(1).policy(active_deadline_seconds=60)).run()

    assert scene.succeed("j-worker-0").tick(10).look_again is None


HEARD = Children(hears_progress=True)
RAN = JobStatus(phase=Phase.RUNNING, heartbeat_awake=10.0)
HANGS: dict[str, tuple[JobStatus, Children, float | None]] = {
    "from its last sign of life": (RAN, HEARD, 25),
    "from a younger one that was heard": (RAN, replace(HEARD, heartbeat_awake=12.0), 27),
    "not from an older one": (RAN, replace(HEARD, heartbeat_awake=5.0), 25),
    "never where nobody listens": (RAN, replace(HEARD, hears_progress=False), None),
    "never while it does not run": (replace(RAN, phase=Phase.STARTING), HEARD, None),
    "never before it has begun": (replace(RAN, heartbeat_awake=None), HEARD, None),
}


@pytest.mark.parametrize(("status", "children", "left"), HANGS.values(), ids=HANGS)
def test_a_hang_is_counted(status: JobStatus, children: Children, left: float | None) -> None:
    job = replace(a_job().with_workers(1).policy(hang_timeout_seconds=30).obj(), status=status)

    assert until_hung(job, at(15), children) == left


def test_a_job_that_does_not_say_when_it_ended_does_not_expire() -> None:
    """The former operator's."""
    job = a_job().with_workers(1).policy(ttl_seconds_after_finished=30).obj()

    assert until_expired(replace(job, status=JobStatus(phase=Phase.COMPLETED)), at(100)) is None


PAUSES = {1: 1, 2: 2, 3: 4, 9: 256, 10: 300, 11: 300, 1_000_000: 300}


@pytest.mark.parametrize(("failures", "seconds"), PAUSES.items())
def test_the_pause_doubles_up_to_five_minutes(failures: int, seconds: float) -> None:
    assert pause_before(failures) == seconds


def test_a_pause_is_over_at_its_time() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=2)).run()
    scene.fail("j-worker-0", 1).tick()

    assert (scene.tick().look_again, scene.tick().pods) == (1, ())
    assert (scene.tick(0.75).look_again, scene.tick().pods) == (0.25, ())
    assert scene.tick(0.25).pods


@pytest.mark.parametrize("back", [0.5, 3600.0])
def test_a_clock_that_is_set_back_does_not_prolong_a_pause(back: float) -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=2)).run()
    scene.now = 5000.0
    scene.fail("j-worker-0", 1).tick()
    assert scene.job.status.phase is Phase.RESTARTING

    scene.now -= back

    assert scene.tick().pods


def test_a_restart_that_does_not_count_has_no_pause_even_after_one_that_did() -> None:
    scene = a_scene(a_job().with_workers(1).policy(backoff_limit=2)).run()
    scene.fail("j-worker-0", 1).tick()
    scene.tick(1)
    scene.run()
    scene.lose("j-worker-0").tick()
    assert (scene.job.status.phase, scene.job.status.restart_at) == (Phase.RESTARTING, None)

    assert scene.tick().pods
