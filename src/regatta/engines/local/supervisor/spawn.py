"""Turns one entry of the run file into a running process."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from .groups import CannotEnter, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


_PYTHONS = ("python", "python3")


class CannotStart(Exception):
    """The program never ran. `reason` is CannotStart or CannotMount; or it is CannotEnter, and the
    message is the folder of the group."""

    def __init__(self, reason: str, message: str, code: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.code = code


def spawn(process: dict[str, Any], run_id: str, group: Group, stdout: int, stderr: int) -> int:
    """The pid of the new process, once it has become the user's program."""
    told, tell = os.pipe()
    if account := process.get("account"):
        for end in (stdout, stderr):  # or it could not open its own /dev/stderr
            os.fchown(end, account["uid"], account["gid"])
    pid = os.fork()
    if pid == 0:
        _become(process, run_id, group, stdout, stderr, tell)
    os.close(tell)
    try:
        # The write end closes at exec, so end-of-file is the good news.
        failure = _read_all(told)
    finally:
        os.close(told)
    if failure:
        os.waitpid(pid, 0)
        reason, code, message = failure.decode("utf-8", "replace").split("\n", 2)
        raise CannotStart(reason, message, int(code))
    return pid


def _read_all(fd: int) -> bytes:
    content = b""
    while piece := os.read(fd, 4096):
        content += piece
    return content


def _become(
    process: dict[str, Any], run_id: str, group: Group, stdout: int, stderr: int, tell: int
) -> NoReturn:
    try:
        group.enter()
        os.setsid()
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGHUP, _signal.SIGINT):
            _signal.signal(number, _signal.SIG_DFL)
        failure = _exec(process, run_id)
    except CannotEnter as error:
        failure = ("CannotEnter", 126, error.folder)
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
        failure = ("CannotStart", 126, f"{type(error).__name__}: {error}")
    reason, code, message = failure
    os.write(tell, f"{reason}\n{code}\n{message}".encode("utf-8", "replace"))
    os._exit(code)


def _keep_open_files() -> None:
    """What this process was itself given by whoever started the server is not the account's."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2:
                os.set_inheritable(int(name), False)
        except OSError:
            pass  # the one that listed them


def _exec(process: dict[str, Any], run_id: str) -> tuple[str, int, str]:
    """Returns only when it failed, with reason, exit code and a sentence."""
    account = process.get("account")
    if process["mounts"]:
        from . import mounts  # while we may still read it
    if account:
        from . import linux

        _keep_open_files()
        os.umask(0o077)
        linux.reach_files_as(account)
        for folder in process["makes"]:
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                return "CannotMount", 126, f"{folder} cannot be made: {error.strerror}"
    if process["mounts"]:
        try:
            mounts.apply(process["mounts"], account)
        except mounts.CannotMount as error:
            return "CannotMount", 126, str(error)
    if account:
        linux.become(account)
    try:
        os.chdir(process["cwd"])
    except OSError as error:
        return "CannotStart", 126, f"working directory {process['cwd']}: {error.strerror}"
    environment = process["env"] | {"REGATTA_RUN": run_id}
    argv, program = process["argv"], process["argv"][0]
    candidates = [program]
    if "/" not in program:
        folders = environment.get("PATH", os.defpath).split(":")
        names = [program]
        if account and program in _PYTHONS:  # the engine has not looked for it
            names += [name for name in _PYTHONS if name != program]
        candidates = [f"{folder or '.'}/{name}" for name in names for folder in folders]
    denied = ""
    for candidate in candidates:
        # Python looks on PATH for what it was called; under another name it would not find itself.
        called = program if candidate.endswith(program) else candidate
        try:
            os.execve(candidate, [called, *argv[1:]], environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            denied = denied or candidate
        except OSError as error:
            return "CannotStart", 126, f"{candidate}: {error.strerror}"
    if denied:
        return "CannotStart", 126, f"{denied} is not executable"
    if "/" in program:
        return "CannotStart", 127, f"{program}: no such program (seen from {process['cwd']})"
    return "CannotStart", 127, f"{program}: no such program on PATH ({environment.get('PATH')})"
