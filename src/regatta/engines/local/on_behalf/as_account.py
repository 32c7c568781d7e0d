"""Has a submission looked at by the account that hands it in.

What a job names, a folder, a script, an interpreter, is its author's to choose; opened or run by an
engine that is root it would be read, or run, with root's rights. So a process of its own becomes
that account first (`inspector.py`), and what it answers is read as what it is: the account's words.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import msgspec

import regatta
from regatta.api.errors import PreflightFailed
from regatta.api.source.foreign_json import UNREADABLE
from regatta.engines.base import RunAs
from regatta.engines.local.submit.inspection import Findings, Question
from regatta.engines.local.submit.paddle_probe import BUDGET

#: For the whole look, and for ending what it left running after that.
SECONDS = BUDGET + 30.0
ENDING_SECONDS = 30.0
#: Of what an account's interpreters answered; a few packages are well below it.
LARGEST_MEMORY = 64 * 1024
MOST_ACCOUNTS = 1000

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from regatta.engines.local.on_behalf.inspector import main; main()"
)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    question: Question
    account: RunAs
    #: What this account's interpreters answered before.
    known: bytes
    seconds: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    findings: Findings | None = None
    known: bytes = b""
    #: Why there are none.
    failure: str = ""


_read_answer = msgspec.json.Decoder(Answer).decode
_known: dict[int, bytes] = {}
_knowing = threading.Lock()


def inspect_as(question: Question, account: RunAs) -> Findings:
    """Raises PreflightFailed where it could not be looked at. It takes a process and a thread for
    up to a minute: whoever hands in sees to it that no account has all of them."""
    with _knowing:
        known = _known.get(account.uid, b"")
    task = Task(question=question, account=account, known=known, seconds=SECONDS)
    answer = _ask(task)
    if answer.findings is None:
        raise PreflightFailed(
            f"what the job names could not be looked at as {account.name} (uid {account.uid}): "
            f"{answer.failure}",
            (),
        )
    with _knowing:
        if len(answer.known) <= LARGEST_MEMORY:
            if len(_known) >= MOST_ACCOUNTS:
                _known.clear()
            _known[account.uid] = answer.known
    return answer.findings


def _ask(task: Task) -> Answer:
    package = str(Path(regatta.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, package],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    ) as inspector:
        try:
            said, _ = inspector.communicate(pickle.dumps(task), SECONDS + ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            inspector.kill()
            return Answer(failure=f"there was no answer in {SECONDS:.0f} s")
    try:
        return _read_answer(said)
    except UNREADABLE:
        return Answer(failure=f"the look ended with {inspector.returncode} and no answer")
