"""By which a run's processes are known."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from regatta.engines.local.supervisor import marks
from regatta.engines.local.supervisor.marks import RLIMIT_LOCKS, Marks
from tests.engines.local.runs import eventually

#: Of this run of the tests alone: others may look for their marks on this machine meanwhile.
NUMBER = (1 << 40) + 2 * os.getpid()
SLEEP = "import time; print('up', flush=True); time.sleep(600)"


def sleeper(*, number: int = 0, **environment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SLEEP],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: marks.carry(number),
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def caught(marks: Marks) -> set[int]:
    held: set[int] = set()
    marks.catch(held)
    return held


def state_of(process: subprocess.Popen[str]) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_either_mark_is_enough_and_no_other_run_has_it() -> None:
    run_id = f"{uuid.uuid4()}/1"
    by_limit = sleeper(number=NUMBER)
    by_variable = sleeper(REGATTA_RUN=run_id)
    others = [sleeper(number=NUMBER - 1), sleeper(REGATTA_RUN=run_id + "0"), sleeper()]
    everybody = [by_limit, by_variable, *others]
    try:
        ours = {by_limit.pid, by_variable.pid}
        assert caught(Marks(run_id, NUMBER)) == ours
        assert caught(Marks(run_id, 0)) == {by_variable.pid}
        assert caught(Marks(run_id, NUMBER, spare=by_limit.pid)) == {by_variable.pid}
        known, held = Marks(run_id, NUMBER), set[int]()
        assert known.catch(held)
        late = sleeper(number=NUMBER)
        everybody.append(late)
        assert known.catch(held)
        assert not known.catch(held)
        assert held == ours | {late.pid}
        eventually(lambda: {state_of(p) for p in (by_limit, by_variable, late)} == {"T"})
        assert "T" not in {state_of(process) for process in others}
    finally:
        for process in everybody:
            process.kill()
            process.communicate()
    assert not caught(Marks(run_id, NUMBER))


def test_the_largest_mark_is_what_this_process_may_hand_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for hard, largest in ((resource.RLIM_INFINITY, marks.MOST), (1 << 50, 1 << 50), (64, 0)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (0, hard))
        assert marks.largest() == largest


def test_a_mark_that_may_not_be_set_is_done_without() -> None:
    """Once lowered, it cannot be raised again by anybody but a mighty root."""
    pid = os.fork()
    if pid == 0:
        marks.carry(NUMBER)
        marks.carry(0)
        held = resource.getrlimit(RLIMIT_LOCKS) == (NUMBER, NUMBER)
        marks.carry(-2)
        os._exit(0 if held else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
