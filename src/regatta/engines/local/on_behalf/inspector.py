"""The process that looks at a submission as the account that hands it in.

Two of them: one becomes the account, looks and answers; the other stays what it was, waits for the
answer, and then ends whatever the first has started and left, however it hid.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import sys
import time
from typing import NoReturn

import msgspec

from regatta.engines.local.on_behalf.as_account import Answer, Task
from regatta.engines.local.submit import inspection, paddle_probe
from regatta.engines.local.supervisor import linux, tree
from regatta.engines.local.supervisor.groups import Group
from regatta.engines.local.supervisor.marks import Marks

#: Of an answer: thousands of replicas with their environments.
LARGEST_ANSWER = 64 * 1024 * 1024
_CHUNK = 64 * 1024


def main() -> None:
    task: Task = pickle.load(sys.stdin.buffer)
    linux.become_subreaper()
    "localhost".encode("idna")  # imported at its first use, when our own files may be out of reach
    told, tell = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(told)
        _work(task, tell)
    os.close(tell)
    answer = _hear(told, time.monotonic() + task.seconds)
    tree.end_children(Marks("", 0), Group([]), subreaper=True)
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


def _hear(told: int, deadline: float) -> bytes:
    """What the account said, until it was done or its time was over."""
    heard = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([told], [], [], left)[0]:
            return msgspec.json.encode(Answer(failure="it took too long"))
        chunk = os.read(told, _CHUNK)
        if not chunk:
            return bytes(heard)
        heard += chunk
        if len(heard) > LARGEST_ANSWER:
            return msgspec.json.encode(Answer(failure="the answer is too long"))


def _work(task: Task, tell: int) -> NoReturn:
    code = 1
    try:
        _become(task)
        answer = _look(task)
        with open(tell, "wb") as reply:
            reply.write(msgspec.json.encode(answer))
        code = 0
    finally:
        os._exit(code)


def _become(task: Task) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    who = task.account
    os.environ.clear()
    os.environ |= {"HOME": who.home, "USER": who.name, "LOGNAME": who.name}
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    linux.become({"uid": who.uid, "gid": who.gid, "groups": list(who.groups)})


def _look(task: Task) -> Answer:
    try:
        paddle_probe.remember(task.known)
        findings = inspection.inspect(task.question)
    except Exception as error:  # noqa: BLE001 - told to who asked, whatever it is
        return Answer(failure=f"{type(error).__name__}: {error}")
    return Answer(findings=findings, known=paddle_probe.remembered())
