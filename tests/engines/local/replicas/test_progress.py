"""`regatta.progress` where training programs run it, and what the engine reads of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regatta.api.job import Phase
from regatta.engines.blocking import Blocking
from regatta.engines.local.replicas.build import PROGRESS_PATH
from regatta.engines.local.replicas.progress_reader import read_progress
from tests.engines.local.jobs import a_job, submit, wait_for

SOURCE = str(Path(PROGRESS_PATH).parent.parent)


def oldest_python() -> str:
    """Training environments are older than ours: 3.8 where there is one."""
    pyenv = Path.home() / ".pyenv" / "versions"
    candidates = [shutil.which("python3.8"), *map(str, pyenv.glob("3.8.*/bin/python3.8"))]
    for found in filter(None, candidates):
        if subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
            return found
    return sys.executable


def train(
    program: str, folder: Path, *, path: str = PROGRESS_PATH, inside: bool = True
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": os.environ.get("HOME", "/")}
    if inside:
        env["REGATTA_PROGRESS"] = str(folder / "progress.jsonl")
    return subprocess.run(
        [oldest_python(), "-c", program],
        env=env, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "program",
    [
        "import regatta; regatta.progress(3, 10, loss=0.5)",
        "from regatta import progress; progress(3, total=10, loss=0.5)",
        "from regatta.progress import progress; progress(3, 10, loss=0.5)",
    ],
)
def test_a_training_program_reports_where_only_this_module_is(tmp_path: Path, program: str) -> None:
    done = train(program, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = records(tmp_path)
    assert (record["step"], record["total"], record["metrics"]) == (3, 10, {"loss": 0.5})


def test_outside_a_job_it_does_nothing(tmp_path: Path) -> None:
    done = train("import regatta; regatta.progress(1)", tmp_path, inside=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call",
    [
        "progress(object())",
        "progress(None, type('X', (), {'__int__': lambda self: 1 / 0})())",
        "progress(1, loss=type('X', (), {'__float__': lambda self: 1 / 0})())",
        "progress(1, **{'n' * 999: 'x' * 999})",
        "progress(1, **{str(n): 'text' for n in range(999)})",
    ],
)
def test_it_never_raises(tmp_path: Path, call: str) -> None:
    done = train(f"from regatta import progress; {call}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [record["metrics"] for record in records(tmp_path)] == [{}]
    assert len((tmp_path / "progress.jsonl").read_bytes()) < 8192


#: Arguments of a report, and of what is read: the step, its total, and what was no number.
ODD: dict[str, tuple[str, int, int | None, dict[str, str]]] = {
    "nan": ("3, 10, lr=0.5, loss=float('nan')", 3, 10, {"loss": "nan"}),
    "infinity": ("3, 10, lr=0.5, loss=float('-inf')", 3, 10, {"loss": "-inf"}),
    "text": ("3, 10, lr=0.5, phase='warm up'", 3, 10, {"phase": "'warm up'"}),
    "an object": ("3, 10, lr=0.5, loss=object()", 3, 10, {"loss": "an object"}),
    "a total": ("3, 'many', lr=0.5", 3, None, {"total": "'many'"}),
    "a total below zero": ("3, -1, lr=0.5", 3, None, {"total": "-1"}),
    "a step": ("float('nan'), 10, lr=0.5", 2, 10, {"step": "nan"}),
    "a step below zero": ("-1, 10, lr=0.5", 2, 10, {"step": "-1"}),
    "numbers in text, and below zero": ("'3', 10.0, lr='0.5', loss=-2", 3, 10, {}),
}


@pytest.mark.parametrize(("call", "step", "total", "odd"), ODD.values(), ids=ODD)
def test_what_is_no_number_is_named_and_the_rest_of_the_report_counts(
    tmp_path: Path, call: str, step: int, total: int | None, odd: dict[str, str]
) -> None:
    program = (
        "import sys, regatta.progress; p = sys.modules['regatta.progress']; p.EVERY_SECONDS = 0\n"
        f"p.progress(2, 10, lr=1.0); p.progress({call})"
    )
    assert train(program, tmp_path).stderr == ""
    progress = read_progress(tmp_path)
    assert progress is not None
    assert (progress.step, progress.total, progress.not_numbers) == (step, total, odd)
    assert progress.metrics["lr"] == 0.5


def test_what_a_program_writes_itself_moves_nobodys_cursor(tmp_path: Path) -> None:
    metrics = {"\x1b]0;t\x07loss": 1.5, "x\nERROR": 2} | {f"m{n}": n for n in range(500)}
    record = {"at": 1.7e9, "step": 1, "metrics": metrics, "not_numbers": {"\x1b[2J": "\x1b[1m"}}
    (tmp_path / "progress.jsonl").write_text(json.dumps(record) + "\n")
    progress = read_progress(tmp_path)
    assert progress is not None
    assert list(progress.metrics)[:3] == ["\\x1b]0;t\\x07loss", "x\\nERROR", "m0"]
    assert len(progress.metrics) == 32
    assert progress.not_numbers == {"\\x1b[2J": "\\x1b[1m"}


def test_a_report_that_is_held_back_leaves_what_it_named_to_the_next(tmp_path: Path) -> None:
    program = "from regatta import progress; progress(1); progress(2, a='x'); progress(3, b='y')"
    train(program, tmp_path)
    progress = read_progress(tmp_path)
    assert progress is not None
    assert (progress.step, progress.not_numbers) == (3, {"a": "'x'", "b": "'y'"})


def test_a_job_whose_loss_is_no_number_says_so_once_and_completes(engine: Blocking) -> None:
    program = "\n".join(
        [
            "import regatta, sys; p = sys.modules['regatta.progress']; p.EVERY_SECONDS = 0",
            "for n in range(50): regatta.progress(n, 50, lr=1, loss=float('nan'))",
        ]
    )
    submit(engine, a_job("diverged", f'{sys.executable} -c "{program}"'))
    job = wait_for(engine, "diverged", Phase.COMPLETED)
    assert job.status.progress is not None
    assert (job.status.progress.step, job.status.progress.not_numbers) == (49, {"loss": "nan"})
    told = [
        event.message
        for event in engine.events("default", "diverged")
        if event.reason == "NotANumber"
    ]
    assert len(told) == 1, told
    assert "loss was nan" in told[0]


def test_a_file_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "progress.jsonl").mkdir()
    done = train("import regatta; regatta.progress(1)", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fast_loop_writes_little_and_its_last_step_gets_through(tmp_path: Path) -> None:
    train("from regatta import progress\nfor n in range(100001): progress(n)", tmp_path)
    written = records(tmp_path)
    assert written[0]["step"] == 0
    assert written[-1]["step"] == 100_000
    assert len(written) < 1000


def test_the_final_step_is_never_held_back(tmp_path: Path) -> None:
    program = "import os; from regatta import progress; progress(1, 2); progress(2, 2); os._exit(0)"
    train(program, tmp_path)
    assert [record["step"] for record in records(tmp_path)] == [1, 2]


def test_the_file_stays_small_and_keeps_its_end(tmp_path: Path) -> None:
    program = (
        "import regatta.progress, sys; p = sys.modules['regatta.progress']; p.EVERY_SECONDS = 0\n"
        "for n in range(30000): p.progress(n, **{'metric_%d' % i: n for i in range(4)})"
    )
    done = train(program, tmp_path)
    assert done.stderr == ""
    assert (tmp_path / "progress.jsonl").stat().st_size < 1_100_000
    assert [path.name for path in tmp_path.iterdir()] == ["progress.jsonl"]
    steps = [record["step"] for record in records(tmp_path)]
    assert steps == list(range(30_000 - len(steps), 30_000))


def test_processes_that_report_together_do_not_mix_their_lines(tmp_path: Path) -> None:
    program = (
        "import os, sys, regatta.progress\n"
        "p = sys.modules['regatta.progress']; p.EVERY_SECONDS = 0\n"
        "children = [os.fork() for _ in range(2)]\n"
        "for n in range(500): p.progress(n, loss=1.0)\n"
        "if all(children):\n"
        "    for child in children: os.waitpid(child, 0)\n"
    )
    assert train(program, tmp_path).stderr == ""
    assert len(records(tmp_path)) == 4 * 500


def test_where_the_whole_package_is_installed_both_work(tmp_path: Path) -> None:
    program = (
        "import regatta; regatta.progress(1, 2)\n"
        "from regatta import __version__; import regatta.api.problems\n"
        "print(__version__)"
    )
    env = {
        "PYTHONPATH": f"{PROGRESS_PATH}:{SOURCE}",
        "REGATTA_PROGRESS": str(tmp_path / "progress.jsonl"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip()
    assert records(tmp_path)[0]["step"] == 1


def test_the_package_itself_offers_the_same_function() -> None:
    import regatta

    assert regatta.progress.__module__ == "regatta._inject.regatta.progress"


# -- reading ----------------------------------------------------------------------------------


def write(folder: Path, *lines: object) -> None:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / "progress.jsonl").write_text(text)


#: In 2027.
BEGINNING = 1_800_000_000.0


def a_record(step: int, at: float, total: int | None = 100) -> dict[str, object]:
    return {"step": step, "total": total, "metrics": {"loss": 1.0}, "at": BEGINNING + at}


def test_the_last_report_counts_and_the_pace_tells_the_time_left(tmp_path: Path) -> None:
    write(tmp_path, a_record(10, 1000.0), a_record(20, 1005.0))
    progress = read_progress(tmp_path)
    assert progress is not None
    assert (progress.step, progress.total, progress.metrics) == (20, 100, {"loss": 1.0})
    assert progress.at is not None
    assert progress.at.timestamp() == BEGINNING + 1005.0
    assert progress.eta_seconds == pytest.approx(40.0)


def test_a_try_before_this_one_does_not_count_for_the_pace(tmp_path: Path) -> None:
    write(tmp_path, a_record(90, 900.0), a_record(10, 1000.0), a_record(20, 1010.0))
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.eta_seconds == pytest.approx(80.0)


#: Reports as (step, second), and the seconds left of 100 steps.
PACES: dict[str, tuple[list[tuple[int, float]], float | None]] = {
    "one report": ([(10, 0.0)], None),
    "two reports": ([(10, 0.0), (20, 5.0)], 40.0),
    "a report before the first step": ([(0, 0.0), (1, 60.0)], None),
    "what passed before the first step": ([(0, 0.0), (1, 60.0), (2, 61.0)], 98.0),
    "a slow first step": ([(1, 0.0), (2, 60.0), (3, 61.0)], 97.0),
    "a checkpoint that took long to read": ([(50, 0.0), (51, 60.0), (52, 61.0)], 48.0),
    "a pace that changed": ([(1, 0.0), (11, 100.0), (21, 110.0), (31, 120.0)], 69.0),
    "the last step": ([(50, 0.0), (100, 50.0)], None),
    "more steps than there were to be": ([(50, 0.0), (181, 50.0)], None),
    "the same step once more": ([(50, 0.0), (50, 50.0)], None),
    "no time between them": ([(50, 0.0), (60, 0.0)], None),
}


@pytest.mark.parametrize(("reports", "left"), PACES.values(), ids=PACES)
def test_the_time_left_after(
    tmp_path: Path, reports: list[tuple[int, float]], left: float | None
) -> None:
    write(tmp_path, *(a_record(step, at) for step, at in reports))
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.step == reports[-1][0]
    assert progress.eta_seconds == left


def test_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, a_record(10, 1000.0), '{"step": 11, "to')
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.step == 10


@pytest.mark.parametrize(
    "line",
    [b'{"at": 2e9, "x": ' + b"[" * 7500 + b"]" * 7500 + b"}", b'{"metrics": {"\xff": 1}}'],
    ids=["deep", "no text"],
)
def test_a_line_that_was_written_to_do_harm_is_passed_over(tmp_path: Path, line: bytes) -> None:
    write(tmp_path, a_record(10, 1000.0))
    with (tmp_path / "progress.jsonl").open("ab") as file:
        file.write(line + b"\n")
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.step == 10


@pytest.mark.parametrize(
    "nonsense",
    [
        {"step": 10**400},
        {"step": -(10**30)},
        {"total": 2**53 + 1},
        {"at": 1e18},
        {"at": -5.0},
        {"at": "soon"},
    ],
)
def test_a_report_beyond_reason_is_passed_over(tmp_path: Path, nonsense: dict[str, object]) -> None:
    write(tmp_path, a_record(10, 1.0), a_record(20, 2.0) | nonsense)
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.step == 10


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 400])
def test_a_metric_that_is_no_finite_number_is_passed_over(tmp_path: Path, number: str) -> None:
    torn = json.dumps(a_record(20, 2.0)).replace('"loss": 1.0', f'"loss": {number}')
    write(tmp_path, a_record(10, 1.0), torn)
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.step == 10


@pytest.mark.parametrize(
    "nonsense", [{"at": 1e18}, {"step": 10**400, "total": 10**401}], ids=["time", "numbers"]
)
def test_a_job_that_reports_nonsense_completes_all_the_same(
    engine: Blocking, tmp_path: Path, nonsense: dict[str, object]
) -> None:
    write(tmp_path, a_record(1, 1.0) | nonsense)
    script = f"sleep 0.3; cat {tmp_path}/progress.jsonl > $REGATTA_PROGRESS"
    submit(engine, a_job("boast", script))
    job = wait_for(engine, "boast", Phase.COMPLETED)
    assert job.status.progress is None


def test_without_a_total_there_is_no_time_left(tmp_path: Path) -> None:
    write(tmp_path, a_record(1, 1.0, None), a_record(2, 2.0, None))
    progress = read_progress(tmp_path)
    assert progress is not None
    assert progress.eta_seconds is None


def test_a_replica_that_never_reported_has_no_progress(tmp_path: Path) -> None:
    assert read_progress(tmp_path) is None
    write(tmp_path, "nonsense")
    assert read_progress(tmp_path) is None
