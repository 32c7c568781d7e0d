"""What is checked before a job is queued, and the sentence each mistake gets."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from regatta.api.job import Job, JobSpec, Metadata, Mode, RoleSpec
from regatta.client.channel import REQUEST_SECONDS
from regatta.engines.local.replicas.runspec import Mount, Process, RunSpec
from regatta.engines.local.submit import paddle_probe
from regatta.engines.local.submit.paddle_probe import Paddle, Probing, probe_paddle
from regatta.engines.local.submit.preflight import (
    Command,
    check_host_name,
    judge_paddle,
    preflight,
    read_command,
)
from tests.engines.local.jobs import alive, eventually

GOOD = Paddle(interpreter="/opt/python", version="2.6.2", has_servers=True, protobuf=4)


@pytest.mark.parametrize(
    ("argv", "script", "module", "interpreter"),
    [
        ("python train.py --lr 1", "train.py", "", "python"),
        ("/usr/bin/python3.11 -u -X dev train.py", "train.py", "", "/usr/bin/python3.11"),
        ("python -m paddle.distributed.launch --nnodes 2 t.py", "t.py",
         "paddle.distributed.launch", "python"),
        ("python -m http.server", "", "http.server", "python"),
        ("bash run.sh", "run.sh", "", ""),
        ("./train", "", "", ""),
        ("true", "", "", ""),
    ],
)  # fmt: skip
def test_the_script_is_found_in_a_command(
    argv: str, script: str, module: str, interpreter: str
) -> None:
    command = read_command(tuple(argv.split()))
    assert (command.script, command.module, command.interpreter) == (script, module, interpreter)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python train.py", Command(program="python", interpreter="python", script="train.py")),
        ("cd /x && python train.py", Command(program="sh")),
        ("echo hello", Command(program="sh")),
        ("python 'unclosed", Command(program="sh")),
    ],
)
def test_a_shell_line_is_looked_into_only_where_it_is_plain(line: str, expected: Command) -> None:
    assert read_command(("sh", "-c", line)) == expected


def a_run(*argv: str, cwd: Path | str = "/", mounts: tuple[Mount, ...] = ()) -> RunSpec:
    process = Process(
        name="main",
        argv=argv,
        env={"PATH": os.environ["PATH"]},
        cwd=str(cwd),
        mounts=mounts,
    )
    return RunSpec(run_id="u/1", pod="p", folder="/nowhere", containers=(process,))


def a_paddle_job(mode: Mode = Mode.COLLECTIVE, with_gloo: int = 0) -> Job:
    role = RoleSpec(replicas=1, template={})
    spec = JobSpec(mode=mode, worker=role, with_gloo=with_gloo)
    return Job(metadata=Metadata(name="j"), spec=spec)


def refusal(run: RunSpec, job: Job | None = None, answer: Paddle = GOOD) -> str:
    problems, _ = preflight(job or a_paddle_job(), {"worker": run}, lambda *asked: answer)
    return "\n".join(map(str, problems))


def test_a_command_that_is_nowhere_is_named() -> None:
    assert "worker: the command 'pyhton' is not on the job's PATH" in refusal(a_run("pyhton"))


def test_a_script_that_is_missing_is_named_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    message = refusal(a_run("python3", "trian.py", cwd=tmp_path))
    assert f"'trian.py' is not in {tmp_path}. There are: train.py." in message


def test_a_program_that_cannot_be_started_is_told_why(tmp_path: Path) -> None:
    (tmp_path / "train me").touch(mode=0o644)
    (tmp_path / "folder").mkdir()
    told = {
        "./train me": f"is not executable: chmod +x '{tmp_path}/train me'",
        "./tarin": f"is not in {tmp_path}. Check its spelling",
        "./folder": "is a folder. Name the program in it.",
        "train me": f"but in {tmp_path}: write './train me'",
    }
    for program, sentence in told.items():
        assert sentence in refusal(a_run(program, cwd=tmp_path))


@pytest.mark.parametrize(
    "words",
    [["x" * 300], ["./" + "x" * 300], ["python3", "x" * 300 + ".py"], ["/" + "x/" * 3000 + "x"]],
    ids=["a command", "a path", "a script", "a long path"],
)
def test_a_word_longer_than_any_files_name_is_told_as_one_that_is_nowhere(
    words: list[str],
) -> None:
    assert " is not " in refusal(a_run(*words))


def test_a_command_that_is_all_one_word_is_told_as_words() -> None:
    message = refusal(a_run("sh t.sh", "--lr", "1"))
    assert 'the command \'sh t.sh\' is one word. Write ["sh", "t.sh", "--lr", "1"].' in message


@pytest.mark.parametrize("mode", [0o644, 0o755])
@pytest.mark.parametrize("program", ["t.py", "./t.py"])
def test_a_script_that_names_no_interpreter_is_told_with_one(
    tmp_path: Path, program: str, mode: int
) -> None:
    (tmp_path / "t.py").write_text("print()\n")
    (tmp_path / "t.py").chmod(mode)
    message = refusal(a_run(program, "--lr", "1", cwd=tmp_path))
    assert "does not begin with `#!`, so nothing says what reads it" in message
    assert "write `python t.py --lr 1`" in message
    (tmp_path / "t.py").write_text("#!/usr/bin/env python\nprint()\n")
    message = refusal(a_run(program, "--lr", "1", cwd=tmp_path))
    assert "#!" not in message


def test_what_a_volume_will_bring_is_not_looked_for(tmp_path: Path) -> None:
    mount = Mount(source=str(tmp_path), target="/data")
    run = a_run("python3", "/data/train.py", mounts=(mount,))
    assert preflight(a_paddle_job(), {"worker": run}, lambda *asked: GOOD) == ([], [])


def given(env: dict[str, str], *words: str) -> RunSpec:
    run = a_run("sh", "-c", "true", *words)
    process = msgspec.structs.replace(run.containers[0], env={**run.containers[0].env, **env})
    return msgspec.structs.replace(run, containers=(process,))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (given({"A": "x" * 131_069}), ""),
        (given({"A": "ü" * 65_535}), "the variable A is 131,072 bytes long"),
        (given({}, "x" * 131_072), "word 4 of the command is 131,072 bytes long"),
        (given({f"A{n}": "x" * 100_000 for n in range(70)}), "its variables and arguments take 7M"),
    ],
    ids=["just so", "a variable", "a word", "all together"],
)
def test_what_a_program_cannot_be_given_is_told_by_its_name(run: RunSpec, said: str) -> None:
    found = refusal(run)
    assert found.startswith(f"worker: {said}") if said else found == ""
    agrees = pytest.raises(OSError, match="Argument list too long") if said else nullcontext()
    with agrees:  # the kernel
        subprocess.run(run.containers[0].argv, env=run.containers[0].env, check=True)


def over(target: str, **more: object) -> RunSpec:
    """A run of `sh -c true` with a volume there that begins empty."""
    mount = Mount(source="/scratch/v", target=target, volume="cache")
    run = a_run("sh", "-c", "true", cwd="/usr/share", mounts=(mount,))
    return msgspec.structs.replace(run, **{"make_folders": ("/scratch/v",), **more})


def with_mounts(run: RunSpec, *targets: str) -> Process:
    """Its process, with folders of the machine there as well."""
    process = run.containers[0]
    more = tuple(Mount(source=target, target=target) for target in targets)
    return msgspec.structs.replace(process, mounts=(*process.mounts, *more))


@pytest.mark.parametrize("target", ["/usr", "/usr/bin", "/bin"])
def test_a_program_that_an_empty_volume_hides_is_told_with_the_volume(target: str) -> None:
    said = refusal(over(target))
    assert said.startswith(f"worker: the {'folder' if target == '/usr' else 'command'} /")
    end = f"the volume cache, which begins empty, is mounted at {target}. Mount it elsewhere."
    assert said.endswith(end)


def test_so_is_a_script(tmp_path: Path) -> None:
    mount = Mount(source="/scratch/v", target=str(tmp_path), volume="cache")
    run = a_run("python3", "train.py", cwd=tmp_path, mounts=(mount,))
    run = msgspec.structs.replace(run, make_folders=("/scratch/v",))
    assert refusal(run).startswith(f"worker: the script {tmp_path}/train.py is not there")


BESIDE = Process(name="fills", argv=("true",), env={}, cwd="/")


@pytest.mark.parametrize(
    "run",
    [
        over("/usr/share"),  # an empty folder is a good place to work in
        over("/bin", init=(BESIDE,)),
        over("/bin", containers=(*over("/bin").containers, BESIDE)),
        over("/bin", make_folders=()),
        over("/usr", containers=(with_mounts(over("/usr"), "/usr/bin", "/usr/share"),)),
    ],
    ids=[
        "the folder itself",
        "init containers fill it",
        "others fill it",
        "it brings something",
        "others are mounted in it",
    ],
)
def test_what_an_empty_volume_may_not_hide_is_let_pass(run: RunSpec) -> None:
    assert refusal(run) == ""


def test_a_script_that_does_not_mention_paddle_needs_none(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("print('hello')")

    def never(*asked: object) -> Paddle:
        raise AssertionError("the interpreter was asked")

    run = a_run("python3", "t.py", cwd=tmp_path)
    assert preflight(a_paddle_job(), {"worker": run}, never) == ([], [])


def test_a_failing_import_tells_the_interpreter_the_reason_and_the_way_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.py").write_text("import paddle")
    answer = Paddle(
        interpreter="/usr/bin/python3", error="ModuleNotFoundError: No module named 'paddle'"
    )
    message = refusal(a_run("python3", "t.py", cwd=tmp_path), answer=answer)
    assert "fails with /usr/bin/python3: ModuleNotFoundError" in message
    assert "--python PATH" in message


@pytest.mark.parametrize(
    ("mode", "answer", "words"),
    [
        (Mode.PS, Paddle(version="3.3.1", protobuf=6), "PaddlePaddle 2.6.2 is the one to install"),
        (Mode.HETER, Paddle(version="3.1.1"), "has no parameter server"),
        (Mode.PS, Paddle(version="2.6.2", has_servers=True, protobuf=7), "protobuf<7"),
        (Mode.PS, GOOD, ""),
        (Mode.COLLECTIVE, Paddle(version="3.3.1", protobuf=7), ""),
        (Mode.SINGLE, Paddle(version="3.3.1"), ""),
    ],
)
def test_the_mode_must_be_one_that_this_paddle_can_do(
    mode: Mode, answer: Paddle, words: str
) -> None:
    errors, _ = judge_paddle(mode, "ps", answer)
    if not words:
        assert errors == []
    else:
        assert words in errors[0].message


def test_an_import_that_takes_too_long_is_a_warning() -> None:
    errors, warnings = judge_paddle(Mode.PS, "ps", Paddle(timed_out=True, seconds=60))
    assert errors == []
    assert "did not end in 60 s" in warnings[0].message


def test_a_host_name_that_leads_nowhere_is_refused_with_the_line_to_add() -> None:
    (problem,) = check_host_name("no-such-host.invalid")
    assert "does not resolve" in problem.message
    assert "`127.0.1.1 no-such-host.invalid` to /etc/hosts" in problem.message


def test_a_host_name_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a: elsewhere)
    (problem,) = check_host_name("moved")
    assert "resolves to 192.0.2.7, which is not this machine" in problem.message


def test_a_host_name_that_leads_here_is_fine() -> None:
    assert check_host_name("localhost") == []


def a_python(folder: Path, body: str) -> str:
    """An interpreter whose `paddle` is the given module."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    (packages / "paddle").mkdir()
    (packages / "paddle" / "__init__.py").write_text(body)
    (packages / "paddle" / "base").mkdir()
    (packages / "paddle" / "base" / "__init__.py").touch()
    (packages / "paddle" / "base" / "core.py").write_text("class DistFleetWrapper: pass\n")
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        f"#!/bin/sh\necho asked >> {folder}/asked\n"
        f'PYTHONPATH={packages} exec {sys.executable} "$@"\n'
    )
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


def test_the_jobs_own_interpreter_is_asked_once(tmp_path: Path) -> None:
    python = a_python(tmp_path, "print('noise')\n__version__ = '2.6.2'\n")
    environment = {"PATH": os.environ["PATH"]}
    first = probe_paddle(python, environment, str(tmp_path))
    assert (first.version, first.has_servers, first.error) == ("2.6.2", True, "")
    assert probe_paddle(python, environment, str(tmp_path)) == first
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_it_is_asked_again_when_its_packages_have_changed(tmp_path: Path) -> None:
    python = a_python(tmp_path, "__version__ = '2.6.2'\n")
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    probe_paddle(python, {}, "/")
    os.utime(site, (1, 1))
    probe_paddle(python, {}, "/")
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


def test_the_last_line_of_a_failed_import_is_kept(tmp_path: Path) -> None:
    python = a_python(tmp_path, "raise ImportError('libfoo.so is missing')\n")
    assert probe_paddle(python, {}, "/").error == "ImportError: libfoo.so is missing"


def test_an_import_that_hangs_is_ended(tmp_path: Path) -> None:
    python = a_python(tmp_path, "import time; time.sleep(600)\n")
    answer = probe_paddle(python, {}, "/", timeout=0.5)
    assert answer.timed_out
    assert not any(key[0] == python for key in paddle_probe._known)


def test_what_an_interpreter_that_hangs_has_started_is_ended_too(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {tmp_path}/pid; wait\n")
    python.chmod(0o755)
    assert probe_paddle(str(python), {"PATH": os.environ["PATH"]}, "/", timeout=5).timed_out
    started = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(started), "its end")


def test_roles_share_one_question_also_when_it_had_no_answer(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("import paddle")
    asked: list[float] = []

    def slow(interpreter: str, environment: object, cwd: str, timeout: float) -> Paddle:
        asked.append(timeout)
        return Paddle(interpreter=interpreter, timed_out=True, seconds=timeout)

    run = a_run("python3", "t.py", cwd=tmp_path)
    _, warnings = preflight(a_paddle_job(), {"ps": run, "worker": run}, slow)

    assert len(asked) == 1
    assert [warning.path for warning in warnings] == ["ps", "worker"]


def test_all_interpreters_of_a_submission_share_one_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 0.0, 50.0, 60.0])
    monkeypatch.setattr(paddle_probe, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    given: list[float] = []

    def slow(interpreter: str, environment: object, cwd: str, timeout: float) -> Paddle:
        given.append(timeout)
        return GOOD

    ask = Probing(slow, budget=60.0)
    answers = [ask(f"/opt/python{i}", {}, "/") for i in range(3)]

    assert given == [60.0, 10.0]
    assert [answer.timed_out for answer in answers] == [False, False, True]


def test_a_client_waits_much_longer_than_preflight_may_take() -> None:
    assert paddle_probe.BUDGET <= REQUEST_SECONDS / 2


def test_an_interpreter_that_is_not_there_is_an_answer_too() -> None:
    assert "No such file" in probe_paddle("/no/such/python", {}, "/").error
