"""Jobs of accounts that share a machine: each with its own rights, and no way to the others."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from regatta.api.job import Phase
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from tests.engines.local.accounts_here import (
    ANN,
    BOB,
    as_account,
    home,
    needs_root,
    place,
    work_of,
)
from tests.engines.local.jobs import a_job, alive, eventually, submit, texts, wait_for
from tests.engines.local.opening import supervisor_of, the_run_of

__all__ = ["home", "place"]

pytestmark = needs_root


def said_by(engine: Blocking, name: str) -> list[str]:
    return texts(engine.logs("default", name, LogQuery()))


def play(
    engine: Blocking, place: Path, script: str, uid: int = ANN, name: str = "job", **spec: Any
) -> list[str]:
    submit(engine, a_job(name, script, **spec), **as_account(place, uid))
    wait_for(engine, name, Phase.COMPLETED)
    return said_by(engine, name)


def a_program(place: Path, text: str) -> Path:
    """One that every account may run."""
    file = place / "program.py"
    file.write_text(textwrap.dedent(text))
    file.chmod(0o755)
    return file


def pid_in(file: Path) -> int:
    return int(eventually(lambda: file.exists() and file.read_text().strip(), str(file)))


# -- who it is ---------------------------------------------------------------------------------


def test_a_replica_is_its_accounts_and_can_become_nobody_else(
    engine: Blocking, place: Path
) -> None:
    script = (
        "id -u; id -g; id -G; pwd; umask; echo $HOME $USER $LOGNAME; echo seen >/dev/stderr; "
        "grep -E '^(NoNewPrivs|CapInh|CapPrm|CapEff|CapBnd|CapAmb)' /proc/self/status | tr '\t' ' '"
    )
    work = work_of(place, ANN)
    said = play(engine, place, script)
    who = f"{work} u{ANN} u{ANN}"
    assert said[:6] == [str(ANN), str(ANN), str(ANN), str(work), "0077", who]
    assert "seen" in said
    none = "0" * 16
    rights = [f"Cap{kind}: {none}" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")]
    assert set(said[6:]) == {*rights, "NoNewPrivs: 1", "seen"}


def test_a_program_that_gives_its_owners_rights_gives_none(engine: Blocking, place: Path) -> None:
    roots = place / "id"
    shutil.copy("/usr/bin/id", roots)
    roots.chmod(0o4755)
    plainly = ["setpriv", "--reuid", str(ANN), "--clear-groups", str(roots), "-u"]
    assert subprocess.run(plainly, capture_output=True, text=True).stdout == "0\n"
    assert play(engine, place, f"{roots} -u") == [str(ANN)]


def test_no_file_that_somebody_opened_before_it_is_handed_on(engine: Blocking, place: Path) -> None:
    """Neither the supervisor's own, nor those that whoever started the server left open."""
    left = os.open(place, os.O_RDONLY)
    os.set_inheritable(left, True)
    try:
        said = play(engine, place, "for fd in /proc/$$$$/fd/*; do readlink $fd; done; true")
    finally:
        os.close(left)
    kinds = [line.partition(":")[0] for line in said if not line.startswith("/proc/")]
    assert kinds == ["/dev/null", "pipe", "pipe"]


def test_init_containers_and_restarts_are_the_accounts_too(engine: Blocking, place: Path) -> None:
    init = {"name": "first", "image": "x", "command": ["sh", "-c", "id -u; touch begun"]}
    job = a_job("again", "id -u; test -e twice || { touch twice; exit 3; }")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod |= {"initContainers": [init], "restartPolicy": "OnFailure"}
    submit(engine, job, **as_account(place, ANN))
    wait_for(engine, "again", Phase.COMPLETED)
    said = [line for line in said_by(engine, "again") if str(ANN) in line]
    assert said == [f"[first] {ANN}", str(ANN), str(ANN)]
    assert (work_of(place, ANN) / "begun").stat().st_uid == ANN


def test_a_real_accounts_groups_are_its_own(engine: Blocking, place: Path) -> None:
    shell = as_account(place, ANN)
    shell["run_as"] = type(shell["run_as"])(
        uid=ANN, gid=ANN, name="ann", home="/", groups=(ANN, 230_777)
    )
    submit(engine, a_job("groups", "id -G"), **shell)
    wait_for(engine, "groups", Phase.COMPLETED)
    assert said_by(engine, "groups") == [f"{ANN} 230777"]


# -- what it cannot get at ----------------------------------------------------------------------


def test_nothing_of_another_account_or_of_the_server_can_be_read(
    engine: Blocking, home: Home, place: Path
) -> None:
    script = "echo mine >secret; echo said; echo mine >$PADDLE_LOG_DIR/x; echo $$$$ >pid; sleep 600"
    submit(engine, a_job("bobs", script), **as_account(place, BOB))
    work = work_of(place, BOB)
    pid = pid_in(work / "pid")
    run = the_run_of(home, engine, "bobs")
    own = next((place / "work" / str(BOB) / "runs").glob("*/*/*"))
    eventually(lambda: list((run / "logs").iterdir()), "its log")
    closed = [
        home.path, home.database, home.path / "jobs", run, run / "run.json", run / "logs",
        next((run / "logs").iterdir()), work, work / "secret", own, own / "paddle",
        own / "paddle/x", own / "progress.jsonl", own.parents[1],
        *(Path(f"/proc/{pid}/{name}") for name in ("environ", "cwd/secret", "root/etc", "maps")),
    ]  # fmt: skip
    assert [path for path in closed if not os.path.exists(path)] == []
    program = a_program(
        place,
        f"""
        import os
        for path in {[str(path) for path in closed]!r}:
            try:
                os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
                print("read", path)
            except OSError as error:
                print(error.strerror)
            try:
                os.open(path, os.O_WRONLY)
                print("opened", path)
            except OSError as error:
                print(error.strerror)
        """,
    )
    said = play(engine, place, f"python3 - <{program}")
    assert set(said) <= {"Permission denied", "Is a directory"}
    assert len(said) == 2 * len(closed)
    # The same, by who may: nothing of it is missing or empty.
    as_root = subprocess.run(["python3", program], capture_output=True, text=True).stdout
    assert as_root.count("read") == len(closed)


def test_neither_another_nor_its_own_supervisor_can_be_signalled(
    engine: Blocking, home: Home, place: Path
) -> None:
    submit(engine, a_job("bobs", "echo $$$$ >pid; sleep 600"), **as_account(place, BOB))
    theirs = pid_in(work_of(place, BOB) / "pid")
    wait_for(engine, "bobs", Phase.RUNNING)
    bobs = supervisor_of(the_run_of(home, engine, "bobs"))
    program = a_program(
        place,
        f"""
        import os
        for pid in ({theirs}, {bobs}, os.getppid(), {os.getpid()}):
            for number in (0, 9):
                try:
                    os.kill(pid, number)
                    print("signalled", pid)
                except PermissionError:
                    print("no")
        """,
    )
    assert play(engine, place, f"exec python3 {program}") == ["no"] * 8
    assert alive(theirs)
    assert alive(bobs)


# -- what is its own ----------------------------------------------------------------------------


def test_progress_is_reported_and_shown(engine: Blocking, place: Path) -> None:
    program = "import regatta; regatta.progress(3, total=4, loss=0.5)"
    play(engine, place, f"python3 -c '{program}'; ls -l $REGATTA_PROGRESS >&2")
    shown = engine.get("default", "job").status.progress
    assert shown is not None
    assert (shown.step, shown.total, shown.metrics) == (3, 4, {"loss": 0.5})


def test_progress_goes_on_when_its_file_has_grown_large(engine: Blocking, place: Path) -> None:
    """The file is the account's; the folder around it is not."""
    program = (
        "import os, regatta; file = open(os.environ['REGATTA_PROGRESS'], 'w'); "
        "file.write('x' * 8_000_000 + chr(10)); file.close(); regatta.progress(7, total=9); "
        "print(os.path.getsize(os.environ['REGATTA_PROGRESS']) < 8_000_000)"
    )
    assert play(engine, place, f'python3 -c "{program}"') == ["True"]
    shown = engine.get("default", "job").status.progress
    assert shown is not None
    assert shown.step == 7


def test_the_launchers_files_are_in_the_log_and_no_others(engine: Blocking, place: Path) -> None:
    secret = place / "secret"
    secret.write_text("the server's own\n")
    secret.chmod(0o600)
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o777)  # in which anybody may move anything
    (shared / "result").write_text("of another account\n")
    os.chown(shared / "result", BOB, BOB)
    script = (
        f"mv {shared}/result $PADDLE_LOG_DIR/workerlog.5; "
        "echo from-launcher >$PADDLE_LOG_DIR/workerlog.1; "
        f"ln -s {secret} $PADDLE_LOG_DIR/workerlog.2; mkfifo $PADDLE_LOG_DIR/workerlog.3; "
        "echo two >other; ln other $PADDLE_LOG_DIR/workerlog.4"
    )
    assert play(engine, place, script) == ["[1] from-launcher"]


def test_what_the_engine_reads_cannot_be_replaced(engine: Blocking, place: Path) -> None:
    script = (
        "cd $(dirname $REGATTA_PROGRESS); rm -f progress.jsonl; mv paddle x; ln -s /etc y; "
        "mkdir z; rmdir paddle; cd ..; ls; mv * elsewhere; true"
    )
    said = play(engine, place, script)
    assert len(said) == 7
    assert all("Permission denied" in line for line in said[:-1])
    assert said[-1].startswith("mv: cannot stat '*'")


def with_volume(job: dict[str, Any], source: dict[str, Any], at: str, **mount: Any) -> Any:
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "data", **source}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": at, **mount}]
    return job


@pytest.mark.parametrize("at", ["/scratch", "/var/lib/regatta-tests-none/data"])
@pytest.mark.parametrize("inner", [{}, {"subPath": "a/b"}])
def test_scratch_is_the_accounts_and_goes_with_the_run(
    engine: Blocking, place: Path, at: str, inner: dict[str, str]
) -> None:
    script = f"stat -c '%u %a' {at}; echo x >{at}/file; mkdir -m 0 {at}/closed; cat {at}/file"
    submit(
        engine,
        with_volume(a_job("job", script), {"emptyDir": {}}, at, **inner),
        **as_account(place, ANN),
    )
    wait_for(engine, "job", Phase.COMPLETED)
    assert said_by(engine, "job") == [f"{ANN} 700", "x"]
    runs = place / "work" / str(ANN) / "runs"
    eventually(lambda: not list(runs.glob("*/*/*/volumes")), "the end of its scratch")
    assert list(runs.glob("*/*/*/paddle"))
    engine.delete("default", "job")
    eventually(lambda: not list(runs.iterdir()), "the end of all it wrote")
    assert not os.path.lexists("/var/lib/regatta-tests-none")
    assert not os.path.lexists("/scratch")


def test_links_that_it_leaves_lead_nobody_anywhere(engine: Blocking, place: Path) -> None:
    victim = place / "victim"
    (victim / "inner").mkdir(parents=True)
    (victim / "inner/file").write_text("kept")
    before = victim.stat()
    script = (
        f"cd /scratch; ln -s {victim} link; mkdir -p deep/er; ln -s {victim}/inner deep/er/link; "
        f"ln -s {victim} $PADDLE_LOG_DIR/link; mkdir moved; mv moved gone; ln -s {victim} moved"
    )
    submit(
        engine, with_volume(a_job("job", script), {"emptyDir": {}}, "/scratch"),
        **as_account(place, ANN),
    )  # fmt: skip
    wait_for(engine, "job", Phase.COMPLETED)
    engine.delete("default", "job")
    runs = place / "work" / str(ANN) / "runs"
    eventually(lambda: not list(runs.iterdir()), "the end of all it wrote")
    assert (victim / "inner/file").read_text() == "kept"
    after = victim.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


def test_who_swaps_folders_for_links_while_they_are_removed_gains_nothing(
    engine: Blocking, place: Path
) -> None:
    """Another job of the same account, at the same time, in the folders of the first."""
    victim = place / "victim"
    victim.mkdir()
    for number in range(50):
        (victim / f"file-{number}").write_text("kept")
    many = "cd /scratch; for i in $(seq 200); do mkdir -p d$i/x; touch d$i/x/f; done; "
    wait = "touch $HOME/ready; until test -e $HOME/go; do sleep 0.02; done"
    job = with_volume(a_job("first", many + wait), {"emptyDir": {}}, "/scratch")
    submit(engine, job, **as_account(place, ANN))
    work = work_of(place, ANN)
    eventually((work / "ready").exists, "its scratch")
    runs = place / "work" / str(ANN) / "runs"
    own = next(runs.glob("*/*/*/volumes/data"))
    swapper = a_program(
        place,
        f"""
        import os
        swapped = 0
        while os.path.exists({str(own)!r}):
            for n in range(200, 0, -1):
                path = "{own}/d%d" % n
                try:
                    os.rename(path, path + ".away")
                    os.symlink({str(victim)!r}, path)
                    swapped += 1
                except OSError:
                    pass
            if swapped:  # the first may end
                open("go", "w").close()
        print("swapped")
        """,
    )
    second = a_job("second", f"exec python3 {swapper}")
    submit(engine, second, **as_account(place, ANN))
    wait_for(engine, "first", Phase.COMPLETED)
    engine.delete("default", "first")
    wait_for(engine, "second", Phase.COMPLETED)
    assert said_by(engine, "second") == ["swapped"]
    assert len(list(victim.iterdir())) == 50


# -- folders of the machine ---------------------------------------------------------------------


def test_a_folder_of_the_machine_is_mounted_as_the_account_sees_it(
    engine: Blocking, place: Path
) -> None:
    data = place / "data"
    data.mkdir(mode=0o755)
    (data / "part").write_text("hello\n")
    (data / "part").chmod(0o644)
    (data / "closed").write_text("no")
    (data / "closed").chmod(0o600)
    script = "cat /data/part; cat /data/closed; touch /data/x; true"
    job = with_volume(a_job("job", script), {"hostPath": {"path": str(data)}}, "/data")
    submit(engine, job, **as_account(place, ANN))
    wait_for(engine, "job", Phase.COMPLETED)
    said = said_by(engine, "job")
    assert said[0] == "hello"
    assert len(said) == 3
    assert all("Permission denied" in line for line in said[1:])


def test_a_mount_point_is_made_nowhere_that_the_account_may_not_write(
    engine: Blocking, place: Path
) -> None:
    (place / "machine").mkdir(mode=0o755)
    target = place / "machine/made"
    script = f"stat -c %u {target}; ls {place / 'machine'}"
    job = with_volume(a_job("job", script), {"emptyDir": {}}, str(target))
    submit(engine, job, **as_account(place, ANN))
    wait_for(engine, "job", Phase.COMPLETED)
    assert said_by(engine, "job") == [str(ANN), "made"]
    assert list((place / "machine").iterdir()) == []


def test_a_link_that_is_laid_anew_after_the_check_is_not_mounted(
    engine: Blocking, place: Path
) -> None:
    """With an allowed folder in the settings, the second look is at what is really mounted."""
    (place / "allowed").mkdir(mode=0o777)
    (place / "allowed").chmod(0o777)
    (place / "allowed/data").mkdir()
    (place / "outside").mkdir(mode=0o755)
    data = place / "allowed/data"
    init = {"name": "swap", "image": "x", "command": ["sh", "-c"]}
    init["args"] = [f"rm -r {data} && ln -s {place / 'outside'} {data}"]
    job = with_volume(a_job("job", "ls /data"), {"hostPath": {"path": str(data)}}, "/data")
    job["spec"]["worker"]["template"]["spec"]["initContainers"] = [init]
    os.chown(data, ANN, ANN)
    submit(engine, job, **as_account(place, ANN, folders=(str(place / "allowed"),)))
    wait_for(engine, "job", Phase.FAILED)
    pod = engine.pods("default", "job")[0]
    assert pod.reason == "CannotMount"
    assert "it leads out of the folders that the server allows" in pod.message
    assert "outside" not in pod.message


def test_a_link_into_an_allowed_folder_may_be_mounted(engine: Blocking, place: Path) -> None:
    (place / "allowed").mkdir(mode=0o755)
    (place / "allowed/part").write_text("hello\n")
    (place / "allowed/part").chmod(0o644)
    (place / "link").symlink_to(place / "allowed")
    job = with_volume(
        a_job("job", "cat /data/part"), {"hostPath": {"path": str(place / "link")}}, "/data"
    )
    submit(engine, job, **as_account(place, ANN, folders=(str(place / "allowed"),)))
    wait_for(engine, "job", Phase.COMPLETED)
    assert said_by(engine, "job") == ["hello"]


# -- when its supervisor is gone ----------------------------------------------------------------


def test_what_a_killed_supervisor_leaves_is_found_and_ended(
    engine: Blocking, home: Home, place: Path
) -> None:
    script = "setsid env -i sh -c 'echo $$$$ >hidden; sleep 600' & echo $$$$ >pid; sleep 600"
    submit(engine, a_job("job", script), **as_account(place, ANN))
    work = work_of(place, ANN)
    pids = [pid_in(work / "pid"), pid_in(work / "hidden")]
    wait_for(engine, "job", Phase.RUNNING)
    os.kill(supervisor_of(the_run_of(home, engine, "job")), signal.SIGKILL)
    wait_for(engine, "job", Phase.FAILED)
    eventually(lambda: not any(map(alive, pids)), "the end of its processes")


def test_it_is_stopped_as_any_job_is(engine: Blocking, place: Path) -> None:
    script = "trap 'echo heard; exit 0' TERM; echo $$$$ >pid; while :; do sleep 0.1; done"
    job = a_job("job", script)
    job["spec"]["worker"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60  # busy machines
    submit(engine, job, **as_account(place, ANN))
    pid = pid_in(work_of(place, ANN) / "pid")
    engine.stop("default", "job")
    eventually(lambda: not alive(pid), "its end")
    eventually(lambda: "heard" in said_by(engine, "job"), "its last words")


def test_its_interpreter_is_found_as_itself(engine: Blocking, place: Path) -> None:
    """The engine does not look for it, and it may go by either name."""
    only = place / "bin"
    only.mkdir(mode=0o755)
    (only / "python3").symlink_to("/usr/bin/python3")
    job = a_job("job")
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["command"] = ["python", "-c", "import os; print(os.getuid())"]
    submit(engine, job, **as_account(place, ANN, environment={"PATH": str(only)}))
    wait_for(engine, "job", Phase.COMPLETED)
    assert said_by(engine, "job") == [str(ANN)]
    assert shutil.which("python", path=str(only)) is None
