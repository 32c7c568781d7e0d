"""Every phase in OpenPAI's words."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.job import Failure, JobStatus, Phase, RoleStatus
from regatta.server.openpai_states import (
    FINAL_STATES,
    Ending,
    State,
    SubState,
    ending_of,
    state_of,
    sub_state_of,
)

NOBODY, ONE_RUNS = RoleStatus(pending=2), RoleStatus(pending=1, running=1)
ONE_IS_DONE = RoleStatus(pending=1, succeeded=1)

STATES: dict[str, tuple[Phase | None, RoleStatus, State, SubState]] = {
    "nobody has looked at it": (None, NOBODY, State.WAITING, SubState.CREATION_PENDING),
    "it waits for room": (Phase.PENDING, NOBODY, State.WAITING, SubState.CREATION_PENDING),
    "it starts, and nobody runs": (Phase.STARTING, NOBODY, State.WAITING, SubState.PREPARING),
    "it starts, and one runs": (Phase.STARTING, ONE_RUNS, State.RUNNING, SubState.RUNNING),
    "it starts, and one is done": (Phase.STARTING, ONE_IS_DONE, State.RUNNING, SubState.RUNNING),
    "it runs": (Phase.RUNNING, ONE_RUNS, State.RUNNING, SubState.RUNNING),
    "its last replica has just ended": (Phase.RUNNING, NOBODY, State.RUNNING, SubState.RUNNING),
    "all start again": (Phase.RESTARTING, NOBODY, State.WAITING, SubState.ATTEMPT_COMPLETED),
    "one starts again": (Phase.RESTARTING, ONE_RUNS, State.RUNNING, SubState.RUNNING),
    "it grows while it runs": (Phase.SCALING, ONE_RUNS, State.RUNNING, SubState.RUNNING),
    "it changes its size": (Phase.SCALING, NOBODY, State.WAITING, SubState.PREPARING),
    "it is suspended": (Phase.SUSPENDED, NOBODY, State.WAITING, SubState.CREATION_PENDING),
    "it is suspended, and one was done": (
        Phase.SUSPENDED,
        ONE_IS_DONE,
        State.WAITING,
        SubState.CREATION_PENDING,
    ),
    "it is being stopped": (Phase.ABORTING, ONE_RUNS, State.STOPPING, SubState.DELETING),
    "it is being deleted": (Phase.TERMINATING, ONE_RUNS, State.STOPPING, SubState.DELETING),
    "it is complete": (Phase.COMPLETED, ONE_IS_DONE, State.SUCCEEDED, SubState.COMPLETED),
    "it has failed": (Phase.FAILED, NOBODY, State.FAILED, SubState.COMPLETED),
    "it was stopped": (Phase.ABORTED, NOBODY, State.STOPPED, SubState.COMPLETED),
}


@pytest.mark.parametrize("case", STATES)
def test_a_phase_is_a_state_and_a_sub_state(case: str) -> None:
    phase, workers, state, sub_state = STATES[case]
    status = JobStatus(phase=phase, worker=workers)
    assert (state_of(status), sub_state_of(status)) == (state, sub_state)


@pytest.mark.parametrize("case", STATES)
def test_a_job_is_stopping_from_the_moment_somebody_asked_until_it_has_ended(case: str) -> None:
    phase, workers, state, _ = STATES[case]
    asked = state_of(JobStatus(phase=phase, worker=workers), stop_asked=True)
    assert asked == (state if state in FINAL_STATES else State.STOPPING)


def test_every_phase_is_in_the_table() -> None:
    assert {phase for phase, *_ in STATES.values()} == {None, *Phase}


def _failed(**failure: Any) -> JobStatus:
    whole = Failure(**{"pod": "j-ps-1", "role": "ps", "index": 1, **failure})
    return JobStatus(phase=Phase.FAILED, message="it failed", failure=whole)


ENDINGS: dict[str, tuple[JobStatus, Ending]] = {
    "it runs": (JobStatus(phase=Phase.RUNNING), Ending()),
    "it is complete": (
        JobStatus(phase=Phase.COMPLETED),
        Ending(exit_code=0, trigger_message="All Tasks are completed"),
    ),
    "it was stopped": (
        JobStatus(phase=Phase.ABORTED, message="stopped by its user"),
        Ending(exit_code=-210, trigger_message="stopped by its user"),
    ),
    "a replica failed": (
        _failed(exit_code=137),
        Ending(exit_code=137, trigger_role="ps", trigger_index=1, trigger_message="it failed"),
    ),
    "a replica is lost, and has no code": (
        _failed(),
        Ending(exit_code=256, trigger_role="ps", trigger_index=1, trigger_message="it failed"),
    ),
    "a replica failed with a code of 0": (
        _failed(exit_code=0),
        Ending(exit_code=256, trigger_role="ps", trigger_index=1, trigger_message="it failed"),
    ),
    "nobody failed but the job": (
        _failed(role="", index=0),
        Ending(exit_code=256, trigger_message="it failed"),
    ),
    "its time was over": (
        JobStatus(phase=Phase.FAILED, message="too long"),
        Ending(exit_code=256, trigger_message="too long"),
    ),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_an_end_has_a_code_and_who_decided_it(case: str) -> None:
    status, ending = ENDINGS[case]
    assert ending_of(status) == ending
