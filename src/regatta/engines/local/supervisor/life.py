"""The life of one replica on this machine, from claim to exit.

    claim → holds → init processes in order → containers together, again as the policy says
          → the first has ended: end the tree, drain the pipes → exit.json

An exit is what `waitpid` says, never the end of a pipe: orphans hold pipes open. A stop is read
from `stop.json`, which is there before the signal comes; so a stop that comes at any moment, even
before this program ran, is a stop. (On a full disk the signal comes alone.) If this program is
killed, its lock is free and no exit.json is there: the engine then ends what is left by its group
and its marks, and nothing here was needed for that.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import errno
import os
import time

from . import jsonfile, marks, private, tree
from .claim import AlreadyClaimed, Taken, boot_id, start_time, take_claim, take_holds
from .groups import Group
from .memory_kills import KILLED, MemoryKills
from .pump import LAST_WORDS, Pump, timestamp
from .segments import Segments
from .sources import LauncherFiles, Pipes
from .spawn import CannotStart, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Another supervisor has this run. Nothing was touched.
EXIT_CLAIMED = 73
#: How often a full disk is tried again.
ROOM_LOOK = 0.5


class Ended(Exception):
    """The run is over, for this reason."""

    def __init__(self, code: int | None, reason: str, message: str = "") -> None:
        self.code = code
        self.reason = reason
        self.message = message


class Life:
    def __init__(self, folder: str, spec: dict[str, Any], subreaper: bool) -> None:
        self._folder = folder
        self._spec = spec
        self._run_id: str = spec["run_id"]
        self._marks = marks.Marks(self._run_id, spec.get("mark", 0))
        self._group = Group.of(spec.get("group"))
        self._subreaper = subreaper
        self._reserve = jsonfile.Reserve(folder + "/exit.json")
        self._telling = jsonfile.Telling(folder)
        limits = spec["log_limits"]
        segments = Segments(folder + "/logs", limits["segment_bytes"], limits["segments"])
        self._pump = Pump(segments)
        self._pipes = Pipes(self._pump)
        self._masks = private.Masks([])
        account = (spec.get("own") or {}).get("uid")
        self._files = LauncherFiles(self._pump, spec["tail_folders"], self._pipes.echo, account)
        self._kill_at: float | None = None
        self._stop_reason = ""
        self._played: list[dict[str, Any]] = []
        self._alive: dict[int, dict[str, Any]] = {}
        self._statuses: dict[int, int] = {}
        self._started_at = ""
        self._restarts = 0
        self._waits = 0  # back-offs since the replica last ran for long
        self._memory = MemoryKills(self._group)
        #: Why the kernel killed it, when it did so for memory.
        self._for_memory = ""
        #: First processes of containers that were killed because no signal reaches them.
        self._deaf = 0
        self._listen()

    def run(self) -> None:
        holds: list[Any] = []
        try:
            self._heed_stop()
            self._masks = private.Masks(private.fill(self._spec))
            self._pump.words_kept += self._masks.longest
            holds = take_holds(self._spec["holds"])
            for process in self._spec["init"]:
                self._prepare(process)
            self._train()
        except Taken as taken:
            ended = Ended(None, taken.reason, taken.message)
        except CannotStart as failure:
            ended = Ended(failure.code, failure.reason, failure.message)
        except Ended as end:
            ended = end
        self._end_everything()
        self._group.remove()
        self._pump.close()
        # Free before the exit is known: whoever reads it may start the next run at once.
        for hold in holds:
            hold.close()
        self._telling.look_again(self._reserve)
        self._write_exit(ended)

    @property
    def _stopping(self) -> bool:
        return self._kill_at is not None

    # -- the story -------------------------------------------------------------------------------

    def _prepare(self, process: dict[str, Any]) -> None:
        """One init process, until it succeeds or the policy gives up."""
        while True:
            code = self._play([process], in_init=True)
            if code == 0:
                return
            if self._spec["restart_policy"] == "Never":
                which = f"init container {process['name']} failed"
                raise Ended(code, "Init:Error", f"{which}: {self._words()}".rstrip(": "))
            self._back_off(code, 0.0, process["name"])

    def _train(self) -> None:
        while True:
            began = time.monotonic()
            code = self._play(self._spec["containers"], in_init=False)
            policy = self._spec["restart_policy"]
            if policy == "Never" or (policy == "OnFailure" and code == 0):
                raise Ended(code, self._reason(code), self._words())
            self._back_off(code, time.monotonic() - began)

    def _play(self, processes: list[dict[str, Any]], in_init: bool) -> int:
        """Start them together; the first one's exit code, with nothing left running."""
        self._alive.clear()
        self._statuses.clear()
        self._pump.last_words = b""
        self._for_memory = ""
        self._group.make()
        self._memory.begin()
        self._files.begin()
        first = 0
        for process in processes:
            named = in_init or first
            pid = self._spawn(process, f"[{process['name']}] " if named else "")
            first = first or pid
        self._started_at = timestamp()
        self._write_state(child=first, in_init=in_init)
        self._heed_stop(raising=False)  # a stop that came while they started has not reached them
        while first not in self._statuses:
            self._turn()
        code = _code(self._statuses[first])
        if self._deaf and code == KILLED:
            code = 128 + _signal.SIGTERM  # what it would have died of, could it have heard it
        elif processes[0].get("container") and not self._stopping:
            # While there is one to ask about.
            self._for_memory = self._memory.judge_container(processes[0], code)
        self._end_everything()
        if not processes[0].get("container"):
            self._for_memory = self._memory.judge(code)
        if self._for_memory:
            self._pump.remark(self._for_memory)
            # As where the kernel kills all at once, whatever the others made of the loss.
            code = KILLED if self._group.loses_one_by_one else code or KILLED
        if self._stop_reason == "Terminated" and code == 0:
            code = 128 + _signal.SIGTERM  # it left politely; it did not finish its work
        if self._stopping:
            raise Ended(code, self._stop_reason, self._words())
        return code

    def _back_off(self, code: int, ran: float, init: str = "") -> None:
        """Wait as the kubelet does: not at all at first, then twice as long each time. `init`: the
        init container for which the others wait."""
        back_off = self._spec["back_off"]
        if ran >= back_off["reset_seconds"]:
            self._waits = 0
        pause = 0.0
        if self._waits:
            longest = back_off["limit_seconds"]
            pause = min(back_off["base_seconds"] * 2 ** min(self._waits - 1, 30), longest)
        self._waits += 1
        self._restarts += 1
        who = f"init container {init}: " if init else ""
        how = f"exit code {code}{f', OOMKilled ({self._for_memory})' if self._for_memory else ''}"
        self._pump.remark(f"{who}{how}; restart {self._restarts} in {pause:g} s")
        if pause:
            at = time.strftime("%H:%M:%S UTC", time.gmtime(time.time() + pause))
            why = f"CrashLoopBackOff: {who}{how}, restart {self._restarts} at {at}"
            self._write_state(in_init=bool(init), waiting=f"Init:{why}" if init else why)
        deadline = time.monotonic() + pause
        while (left := deadline - time.monotonic()) > 0:
            owed = self._telling.look(time.monotonic())
            self._pipes.wait(left if owed is None else min(left, owed))
            self._woken()
            self._heed_stop(code=code)
        self._pump.begin_restart(self._restarts)

    # -- processes -------------------------------------------------------------------------------

    def _spawn(self, process: dict[str, Any], label: str) -> int:
        stdout, stderr = self._pipes.open(label)
        try:
            pid = self._spawn_inside(process, stdout, stderr)
        except CannotStart as failure:
            self._pump.remark(failure.message)
            raise
        finally:
            os.close(stdout)
            os.close(stderr)
        self._alive[pid] = process
        self._played.append(process)
        return pid

    def _spawn_inside(self, process: dict[str, Any], stdout: int, stderr: int) -> int:
        """In its group, or in as much of it as the machine lets processes into."""
        while True:
            try:
                return spawn(process, self._run_id, self._group, stdout, stderr)
            except CannotStart as failure:
                if failure.reason != "CannotEnter":
                    raise
                self._group.leave_out(failure.message)
                self._memory.begin()

    def _turn(self) -> None:
        """Wait for output, an end, a stop or a deadline, and deal with it."""
        now = time.monotonic()
        due = [self._files.look(now), self._memory.look(now), self._telling.look(now)]
        if self._kill_at is not None:
            due.append(self._kill_at - now)
        timeout = min((left for left in due if left is not None), default=None)
        if self._memory.has_struck or (self._kill_at is not None and now >= self._kill_at):
            self._end_everything()
            return
        self._pipes.wait(timeout)
        if self._woken():
            self._heed_stop(raising=False)
            self._collect()

    def _collect(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            process = self._alive.pop(pid, None)
            if process is None:
                continue  # an orphan that we inherited
            self._statuses[pid] = status
            if process in self._spec["containers"][1:]:
                self._pump.remark(f"container {process['name']} ended, exit code {_code(status)}")

    def _end_everything(self) -> None:
        statuses, left = tree.end_children(self._marks, self._group, self._subreaper)
        self._statuses.update(statuses)
        if left:
            # The engine tells of them, and tries again when they are to be gone.
            self._telling.tell("left.json", {str(pid): start_time(pid) for pid in left})
        self._pipes.drain()
        self._files.finish()
        for process in self._played:
            if process["cleanup"]:
                from . import contained

                contained.remove(process["cleanup"], process["env"])
        self._played = []
        self._alive.clear()

    # -- stopping --------------------------------------------------------------------------------

    def _listen(self) -> None:
        """A signal only makes the pipes' wait return; what it means is looked at then."""
        self._terminated = False
        self._wakeup, write = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(write, False)
        _signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.signal(_signal.SIGTERM, self._on_terminate)
        # We were started with it blocked: one that came between the claim and now is not lost.
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))
        for number in (_signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, _signal.SIG_IGN)
        self._pipes.watch(self._wakeup)

    def _on_terminate(self, *_: object) -> None:
        self._terminated = True

    def _woken(self) -> bool:
        try:
            return bool(os.read(self._wakeup, 4096))
        except BlockingIOError:
            return False

    def _heed_stop(self, raising: bool = True, code: int | None = None) -> None:
        """Obey `stop.json`. The sooner of two deadlines holds. With nothing running, a stop is
        the end at once."""
        if not self._terminated and not os.path.exists(self._folder + "/stop.json"):
            return
        stop = jsonfile.read(self._folder + "/stop.json")
        # A machine that shuts down signals everybody: that is not the engine's doing.
        self._stop_reason = "Terminated" if stop is None else "Stopped"
        stop = stop or {}
        first_time, self._terminated = not self._stopping, False
        deadline = time.monotonic() + stop.get("grace_seconds", self._spec["grace_seconds"])
        self._kill_at = deadline if self._kill_at is None else min(self._kill_at, deadline)
        if raising:
            raise Ended(code, self._stop_reason, "stopped while nothing was running")
        if first_time:
            if any(process.get("container") for process in self._alive.values()):
                from . import contained

                self._deaf = contained.end_the_deaf()
            for pid in self._alive if self._deaf < len(self._alive) else ():
                tree.kill(pid, _signal.SIGTERM)

    # -- telling ---------------------------------------------------------------------------------

    def _write_state(self, child: int = 0, in_init: bool = False, waiting: str = "") -> None:
        """Until it is written, the lock alone says that we live."""
        state = {
            "pid": os.getpid(),
            "start_time": start_time("self"),
            "boot_id": boot_id(),
            "child": child or None,
            "in_init": in_init,
            "started_at": self._started_at,
            "restarts": self._restarts,
            "waiting": waiting,
            "only_counted": ", ".join(self._group.only_counted),
        }
        self._telling.tell("state.json", state)

    def _write_exit(self, ended: Ended) -> None:
        """Where the disk was full from the beginning, once there is room; nobody asks for the end
        of what was stopped."""
        content = {
            "code": ended.code,
            "reason": ended.reason,
            "message": ended.message,
            "stopped": self._stopping,
            "started_at": self._started_at or None,
            "finished_at": timestamp(),
            "restarts": self._restarts,
        }
        while True:
            try:
                return self._reserve.spend(content)
            except OSError as error:
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                if not full or self._stopping or self._terminated:
                    raise
            time.sleep(ROOM_LOOK)

    def _words(self) -> str:
        """The last whole lines of output, and what the kernel did to it."""
        words = self._pump.last_words
        cut = len(words) == self._pump.words_kept
        words = self._masks.hide(words, cut)
        if cut or len(words) > LAST_WORDS:
            words = words[-LAST_WORDS:]
            words = words[words.find(b"\n") + 1 :] or words
        said = words.decode("utf-8", "replace").strip("\n")
        return "\n".join(filter(None, (said, self._for_memory)))

    def _reason(self, code: int) -> str:
        if code == 0:
            return "Completed"
        return "OOMKilled" if self._for_memory else "Error"


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def main(folder: str, open_files: str = "") -> int:
    """`open_files`: how many a replica may have, where the engine allows itself more."""
    try:
        claim = take_claim(folder)
    except AlreadyClaimed:
        return EXIT_CLAIMED
    from . import linux  # after the claim: a supervisor that must leave leaves sooner

    if open_files:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(open_files), most))

    os.chdir("/")
    spec = jsonfile.read(folder + "/run.json")
    try:
        if spec is None:
            raise ValueError("run.json is missing or no JSON object")
        marks.carry(spec.get("mark", 0))
        Life(folder, spec, linux.become_subreaper()).run()
    except BaseException:  # a fault of ours: leave what is known for whoever looks
        import traceback

        with open(folder + "/supervisor-error.txt", "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        raise
    finally:
        os.close(claim)
    return 0
