"""Checks before queueing that need the training environment: better now than after an hour's wait.

The command is there, the script is there, and where it trains with PaddlePaddle the job's own
interpreter can import it and has what the job's mode needs. For a job in containers see
`container_check`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from regatta.api.job import Job, Mode
from regatta.api.problems import Problem
from regatta.engines.local.on_behalf.looking import Looking
from regatta.engines.local.on_behalf.members_advice import AT_HOME, Advice
from regatta.engines.local.replicas.containers import RUNTIMES
from regatta.engines.local.replicas.runspec import Process, RunSpec
from regatta.engines.local.store.records import Context
from regatta.engines.local.submit.container_check import check_containers
from regatta.engines.local.submit.exec_limits import what_is_too_long
from regatta.engines.local.submit.hidden import what_is_hidden
from regatta.engines.local.submit.paddle_probe import Paddle, Probe, Probing, probe_paddle

_PYTHON = re.compile(r"python[0-9.]*$")
SHELLS = ("sh", "bash", "dash", "zsh")
#: By what a script's name ends with.
_READERS = {".py": "python", ".sh": "sh"}
_SHELL_SYNTAX = re.compile(r"[;&|<>$`(){}*?\n#~]")
#: More of a script is not read; an import that comes later is rare.
_SCRIPT_BYTES = 1 << 20

_LOOKING = Looking()


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is really going to run, as far as its words tell."""

    program: str
    interpreter: str = ""
    script: str = ""
    #: `-m` module.
    module: str = ""


def preflight(
    job: Job,
    runs: Mapping[str, RunSpec],
    probe: Probe = probe_paddle,
    *,
    may_pull: bool = True,
    advice: Advice = AT_HOME,
) -> tuple[list[Problem], list[Problem]]:
    """(errors, warnings) of the first replica of each role (by role name). Images that are not here
    are pulled if they may be."""
    ask = Probing(probe)
    problems, warnings = check_containers(runs, may_pull, advice)
    trains_with_paddle = False
    for role, run in runs.items():
        process = run.containers[0]
        if not process.argv:
            continue  # nothing to look at
        if too_long := what_is_too_long(process):
            problems.append(Problem(role, too_long))
            continue
        command = read_command(process.argv)
        if hidden := what_is_hidden(run, command.program, command.script):
            problems.append(Problem(role, hidden))
            continue
        found = _check_files(role, process, command, advice)
        problems += found
        if found or not command.interpreter or not _uses_paddle(process, command):
            continue
        trains_with_paddle = True
        python = shutil.which(command.interpreter, path=process.env.get("PATH", os.defpath))
        answer = ask(python or command.interpreter, process.env, process.cwd)
        worse, softer = judge_paddle(job.spec.mode, role, answer, advice)
        problems += worse
        warnings += softer
    uses_gloo = job.spec.mode in (Mode.PS, Mode.HETER) and job.spec.with_gloo > 0
    if trains_with_paddle and uses_gloo:
        problems += check_host_name()
    return _unique(problems), _unique(warnings)


def check_python(context: Context) -> list[Problem]:
    """The interpreter that `--python` names, also where only a script of the job's finds it."""
    named = context.python
    if not named or context.runtime in RUNTIMES:
        return []
    path = os.path.join(context.directory, os.path.expanduser(named)) if "/" in named else named
    if shutil.which(path, path=context.shell.get("PATH", os.defpath)) is not None:
        return []
    return [
        Problem(
            "",
            f"--python {named}: there is no such program. Name an interpreter, such as "
            "`--python .venv/bin/python`.",
        )
    ]


def needs_python(run: RunSpec) -> bool:
    argv = run.containers[0].argv
    return bool(argv) and read_command(argv).interpreter != ""


def read_command(argv: tuple[str, ...]) -> Command:
    program, rest = argv[0], list(argv[1:])
    name = Path(program).name
    if _PYTHON.match(name):
        return _python_command(program, rest)
    if name in SHELLS:
        return _shell_command(program, rest)
    return Command(program=program)


def _python_command(program: str, rest: list[str]) -> Command:
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            module = rest.pop(0)
            # The launcher's own options come first; the program is the first Python file.
            script = next((word for word in rest if word.endswith(".py")), "")
            launched = module.startswith("paddle.distributed")
            return Command(
                program=program,
                interpreter=program,
                module=module,
                script=script if launched else "",
            )
        if option in ("-c", "-"):
            return Command(program=program, interpreter=program)
        if option in ("-W", "-X") and rest:
            rest.pop(0)
    return Command(program=program, interpreter=program, script=rest[0] if rest else "")


def _shell_command(program: str, rest: list[str]) -> Command:
    if not rest:
        return Command(program=program)
    if not rest[0].startswith("-"):
        return Command(program=program, script=rest[0])
    if rest[0].endswith("c") and len(rest) > 1 and not _SHELL_SYNTAX.search(rest[1]):
        try:
            words = shlex.split(rest[1])
        except ValueError:
            return Command(program=program)
        inner = read_command(tuple(words)) if words else Command(program=program)
        # A shell's builtins are not on PATH; only a Python inside is worth looking at.
        if inner.interpreter:
            return inner
    return Command(program=program)


def _check_files(role: str, process: Process, command: Command, advice: Advice) -> list[Problem]:
    if process.container is not None:
        return []
    lies = command.script or command.program
    if "/" in lies or command.script:
        place = Path(process.cwd)
        if (
            not os.path.isabs(lies)
            and not _under_a_mount(place, process)
            and (not os.path.isdir(place) or _LOOKING.closed_at(process.cwd))
        ):
            return []  # that the folder is not there, or is closed, is told already
    if beside := _named_without_interpreter(command, process):
        return [Problem(role, beside)]
    if not _find_program(command.program, process):
        why = _why_not(command, process, advice)
        return [Problem(role, f"the command {command.program!r} {why}")]
    script = Path(process.cwd, command.script)
    if not command.script or _under_a_mount(script, process):
        return []
    if closed := _what_is_closed(script):
        return [Problem(role, f"the script {command.script!r}: {advice.closed(closed)}")]
    if os.path.exists(script):
        return []
    if os.path.isabs(command.script):
        return [
            Problem(
                role,
                f"the script {command.script!r} is not on this machine. If the path is one of the "
                f"image's, {advice.image_path}",
            )
        ]
    near = sorted(p.name for p in _listdir(Path(process.cwd)) if p.suffix == script.suffix)
    there = f" There are: {', '.join(near[:5])}." if near else ""
    return [
        Problem(
            role,
            f"the script {command.script!r} is not in {process.cwd}.{there} {advice.script}",
        )
    ]


def _what_is_closed(file: Path) -> str:
    """The file, or the first folder on the way to it, that is there and cannot be read."""
    if folder := _LOOKING.closed_at(str(file.parent)):
        return folder
    return str(file) if os.path.exists(file) and not _LOOKING.may_read(str(file)) else ""


def _named_without_interpreter(command: Command, process: Process) -> str:
    """What is wrong with starting a script that does not say what reads it."""
    program = command.program
    file = Path(process.cwd, program)
    reader = _READERS.get(file.suffix)
    if reader is None or ("/" not in program and _find_program(program, process)):
        return ""
    try:
        with file.open("rb") as script:
            if script.read(2) == b"#!":
                return ""
    except OSError:
        return ""  # what is not there is told otherwise
    line = shlex.join([reader, program.removeprefix("./"), *process.argv[1:]])
    return (
        f"the command {program!r} does not begin with `#!`, so nothing says what reads it: write "
        f"`{line}`."
    )


def _as_words(command: Command, process: Process) -> str:
    """The words of a command that was written as one; empty where it is none."""
    try:
        words = shlex.split(command.program)
    except ValueError:
        return ""
    if len(words) < 2 or not (_PYTHON.match(words[0]) or _find_program(words[0], process)):
        return ""
    return json.dumps([*words, *process.argv[1:]], ensure_ascii=False)


def _why_not(command: Command, process: Process, advice: Advice) -> str:
    """What keeps a program from being started, and what to do about it."""
    if not os.path.exists(Path(process.cwd, command.program)) and (
        words := _as_words(command, process)
    ):
        return f"is one word. Write {words}."
    if "/" not in command.program:
        path = process.env.get("PATH", os.defpath)
        beside = Path(process.cwd, command.program)
        if os.path.isfile(beside):
            return (
                f"is not on the job's PATH ({path}), but in {process.cwd}: write "
                f"{'./' + command.program!r}"
            )
        other = {"python": "python3", "python3": "python"}.get(command.program, "")
        if other and (there := shutil.which(other, path=path)):
            return f"is not on the job's PATH ({path}). Write {other}, which is {there}."
        return f"is not on the job's PATH ({path}). {advice.path}"
    program = Path(process.cwd, command.program)
    if os.path.isdir(program):
        return "is a folder. Name the program in it."
    if os.path.exists(program):
        return f"is not executable: chmod +x {shlex.quote(str(program))}"
    if os.path.isabs(command.program):
        mentions = command.interpreter and not advice.on_behalf
        where = ", in the file or behind --python" if mentions else ""
        return (
            f"is not there. Check its spelling{where}; if the path is one of the image's, say what "
            "to run here with `--command LINE`."
        )
    return f"is not in {process.cwd}. {advice.program}"


def judge_paddle(
    mode: Mode, role: str, answer: Paddle, advice: Advice = AT_HOME
) -> tuple[list[Problem], list[Problem]]:
    """(errors, warnings) that a job of this mode has with this PaddlePaddle."""
    python = answer.interpreter
    if answer.timed_out:
        slow = f"`import paddle` with {python} did not end in {answer.seconds:.0f} s; going on"
        return [], [Problem(role, slow, "warning")]
    if answer.error:
        return [
            Problem(
                role,
                f"`import paddle` fails with {python}: {answer.error}. {advice.paddle}",
            )
        ], []
    if mode not in (Mode.PS, Mode.HETER):
        return [], []
    if not answer.has_servers:
        return [
            Problem(
                role,
                f"PaddlePaddle {answer.version} ({python}) has no parameter server, so a {mode} "
                "job cannot work with it. PaddlePaddle 2.6.2 is the one to install: "
                f"pip install 'paddlepaddle==2.6.2' 'protobuf<7' 'numpy<2'.",
            )
        ], []
    if answer.protobuf >= 7 and _version(answer.version) < (3, 3):
        return [
            Problem(
                role,
                f"protobuf {answer.protobuf} breaks DistributedStrategy in PaddlePaddle "
                f"{answer.version} ({python}): pip install 'protobuf<7'.",
            )
        ], []
    return [], []


def check_host_name(name: str | None = None) -> list[Problem]:
    """Gloo listens where the host's name leads, whatever else is set; it must lead to here."""
    name = socket.gethostname() if name is None else name
    remedy = f"Add the line `127.0.1.1 {name}` to /etc/hosts, or set spec.withGloo to 0."
    try:
        address = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    except OSError:
        what = f"this machine's name, {name}, does not resolve, and PS training with gloo crashes"
        return [Problem("spec.withGloo", f"{what}. {remedy}")]
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as here:
        try:
            here.bind((address, 0))
        except OSError:
            what = f"this machine's name, {name}, resolves to {address}, which is not this machine"
            return [Problem("spec.withGloo", f"{what}: PS training with gloo crashes. {remedy}")]
    return []


def _uses_paddle(process: Process, command: Command) -> bool:
    if command.module.split(".")[0] == "paddle":
        return True
    if not command.script:
        return any("paddle" in word for word in process.argv[1:])
    try:
        with Path(process.cwd, command.script).open("rb") as script:
            return b"paddle" in script.read(_SCRIPT_BYTES)
    except OSError:
        return False


def _find_program(program: str, process: Process) -> bool:
    if "/" not in program:
        return shutil.which(program, path=process.env.get("PATH", os.defpath)) is not None
    path = Path(process.cwd, program)
    return _under_a_mount(path, process) or (os.path.isfile(path) and os.access(path, os.X_OK))


def _under_a_mount(path: Path, process: Process) -> bool:
    """What a volume will bring cannot be looked at yet."""
    return any(path.is_relative_to(mount.target) for mount in process.mounts)


def _listdir(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _version(text: str) -> tuple[int, int]:
    numbers = re.findall(r"\d+", text)[:2]
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else (0, 0)


def _unique(problems: list[Problem]) -> list[Problem]:
    """Two roles often share one mistake; each is told once per role."""
    return list(dict.fromkeys(problems))
