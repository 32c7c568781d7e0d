"""From what a program prints to what a person reads, through the real supervisor."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from regatta.api.errors import RegattaError
from regatta.engines.base import LogQuery
from regatta.engines.local.logs.reader import LogReader, PodLog
from regatta.engines.local.replicas.runspec import LogLimits
from regatta.engines.local.replicas.runtime import SUPERVISOR, RunPhase, Runtime
from tests.engines.local.runs import AT_ONCE, CAN_MOUNT, Pod, eventually, python, shell
from tests.full_disks import KINDS, a_small_disk


def test_lines_keep_their_order_stream_and_text(pod: Pod) -> None:
    pod.play(shell("echo one; echo; echo ' two  spaced '; printf 'é 漢字\\n'"))
    lines = pod.lines()
    assert [line.text for line in lines] == ["one", "", " two  spaced ", "é 漢字"]
    assert {line.stream for line in lines} == {"stdout"}
    assert [line.at for line in lines] == sorted(line.at for line in lines)


def test_stderr_is_told_apart(pod: Pod) -> None:
    pod.play(shell("echo out; echo err >&2"))
    assert {(line.stream, line.text) for line in pod.lines()} == {
        ("stdout", "out"),
        ("stderr", "err"),
    }


def test_a_last_line_without_newline_is_a_line(pod: Pod) -> None:
    pod.play(shell("printf 'no newline'"))
    assert pod.texts() == ["no newline"]


def test_a_progress_bar_is_a_line_per_picture(pod: Pod) -> None:
    pod.play(shell(r"printf '\r10%%\r20%%\r\r30%%\r\n'; printf 'done\r\n'"))
    assert pod.texts() == ["10%", "20%", "30%", "done"]


def test_a_slow_progress_bar_leaves_no_empty_lines(pod: Pod) -> None:
    pod.play(
        shell(r"for i in 1 2 3; do printf '\r%s0%%' $i; sleep 0.3; done; printf '\n'; echo end")
    )
    assert pod.texts() == ["10%", "20%", "30%", "end"]


def test_a_line_that_pauses_is_shown_and_still_becomes_one_line(pod: Pod) -> None:
    pod.start(
        shell(
            "printf 'loading... '; while [ ! -e $GO ]; do sleep 0.01; done; echo done",
            env={"PATH": os.environ["PATH"], "GO": str(pod.folder / "go")},
        )
    )
    pod.says("loading...")  # though no newline has come
    (pod.folder / "go").touch()
    pod.ended()
    assert pod.texts() == ["loading... done"]


def test_a_follower_gets_a_paused_line_in_two_parts_and_nothing_twice(pod: Pod) -> None:
    go = pod.folder / "go"
    pod.start(
        shell(f"printf 'loading... '; while [ ! -e {go} ]; do sleep 0.01; done; printf '\\nend\\n'")
    )
    reader = LogReader(LogQuery())
    reader.add(PodLog(uid=pod.uid, label="w", folder=pod.folder))
    seen: list[str] = []

    def look() -> list[str]:
        seen.extend(line.text for batch in reader.read_more() for line in batch.lines)
        return seen

    eventually(look)
    go.touch()
    pod.ended()
    assert look() == ["loading... ", "end"]


def test_a_huge_line_is_whole_up_to_a_limit_and_never_stalls(pod: Pod) -> None:
    pod.play(python("print('x' * 50_000); print('y' * 1_000_000); print('end')"))
    texts = pod.texts()
    assert texts[0] == "x" * 50_000
    assert "".join(texts[1:-1]) == "y" * 1_000_000
    assert all(len(text) <= 80 * 1024 for text in texts)
    assert texts[-1] == "end"


def test_bytes_that_are_no_text_do_no_harm(pod: Pod) -> None:
    pod.play(shell(r"printf 'a\377\000b\n'; echo ok"))
    assert pod.texts() == ["a\ufffd\x00b", "ok"]


def test_nothing_is_lost_in_bulk(pod: Pod) -> None:
    pod.play(shell("seq 1 200000"))
    assert pod.texts() == [str(n) for n in range(1, 200_001)]


# -- rotation ----------------------------------------------------------------------------------

SMALL = LogLimits(segment_bytes=4096, segments=4)


def test_rotation_keeps_the_newest_within_the_limit(pod: Pod) -> None:
    pod.play(shell("seq 1 5000"), log_limits=SMALL)
    kept = sum(file.stat().st_size for file in (pod.run / "logs").iterdir())
    assert kept <= 4 * 4096
    lost, *texts = pod.texts()
    assert texts == [str(n) for n in range(5001 - len(texts), 5001)]
    assert len(texts) > 150
    assert "(lines with their times) were rotated away" in lost


def test_what_was_rotated_away_is_told_to_the_byte(pod: Pod) -> None:
    pod.play(shell("seq 1 1000"), log_limits=SMALL)
    first = min((pod.run / "logs").iterdir(), key=lambda file: int(file.stem.split("-")[1]))
    start = int(first.stem.split("-")[2])
    remark = pod.lines()[0]
    assert remark.stream == "regatta"
    assert f"{start / 1024:.0f} KiB" in remark.text or f"{start} bytes" in remark.text


def test_a_reader_that_keeps_up_misses_nothing_across_rotation(pod: Pod) -> None:
    pod.start(
        python(
            "import sys, time\nfor n in range(2000):\n print(n, flush=True)\n time.sleep(0.0005)"
        ),
        log_limits=LogLimits(segment_bytes=8192, segments=10),
    )
    after: dict[str, str] = {}
    seen: list[str] = []

    def look(ended: bool = False) -> None:
        # A new reader each time: only the position carries on.
        reader = LogReader(LogQuery(after=after))
        reader.add(PodLog(uid=pod.uid, label="w", folder=pod.folder))
        for batch in reader.read_more(ended=ended):
            seen.extend(line.text for line in batch.lines)
            after.update(batch.after)

    while pod.state().exit is None:
        look()
    look(ended=True)
    assert seen == [str(n) for n in range(2000)]


# -- queries -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Pod:
    pod = Pod(tmp_path_factory.mktemp("counted"), Runtime())
    pod.play(shell("seq 1 30000"), log_limits=LogLimits(segment_bytes=200_000, segments=100))
    eventually(lambda: pod.runtime.reap() or not pod.runtime.children())
    return pod


@pytest.mark.parametrize("tail", [0, 1, 10, 7000, 29_999, 30_000, 50_000])
def test_a_tail_is_exactly_the_last_lines(counted: Pod, tail: int) -> None:
    assert counted.texts(tail=tail) == [str(n) for n in range(1, 30_001)][-tail or 30_000 :]


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ({"grep": "^1234.$"}, [str(n) for n in range(12340, 12350)]),
        ({"grep": "^1234.$", "tail": 2}, ["12348", "12349"]),
        ({"grep": "nothing like it"}, []),
    ],
)
def test_grep_chooses_lines(counted: Pod, query: dict[str, object], lines: list[str]) -> None:
    assert counted.texts(**query) == lines


def test_a_bad_pattern_says_what_is_wrong() -> None:
    with pytest.raises(RegattaError, match=r"not a regular expression.*backslash"):
        LogReader(LogQuery(grep="loss ("))


def test_a_bad_position_says_what_is_right() -> None:
    with pytest.raises(RegattaError, match="run:segment:offset"):
        LogReader(LogQuery(after={"uid": "yesterday"}))


def test_batches_are_of_at_most_500_lines_and_resume_anywhere(counted: Pod) -> None:
    pod = PodLog(uid="u", label="w", folder=counted.folder)
    reader = LogReader(LogQuery())
    reader.add(pod)
    batches = list(reader.read_more(ended=True))
    assert [len(batch.lines) for batch in batches] == [500] * 60
    for batch, following in list(itertools.pairwise(batches))[::7]:
        again = LogReader(LogQuery(after=batch.after))
        again.add(pod)
        assert next(again.read_more()).lines == following.lines


def test_since_leaves_out_what_came_before(pod: Pod, tmp_path: Path) -> None:
    go = tmp_path / "go"  # lines that are read together have one time
    wait = f"until [ -e {go} ]; do sleep 0.02; done"
    pod.start(shell(f"echo before; {wait}; echo after; sleep 600"))
    pod.says("before")
    go.touch()
    pod.says("after")
    lines = pod.lines()
    assert [line.text for line in pod.lines(since=datetime.fromisoformat(lines[1].at))] == ["after"]


def test_previous_is_the_try_before(pod: Pod, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    pod.play(
        shell(f"echo x >> {tries}; n=$(wc -l < {tries}); echo try $n; [ $n -eq 3 ]"),
        restart_policy="OnFailure",
        back_off=AT_ONCE,
    )
    said = [line.text for line in pod.lines(previous=True) if line.stream == "stdout"]
    assert said == ["try 2"]


def test_without_a_try_before_there_is_no_previous_log(pod: Pod) -> None:
    pod.play(shell("echo only"))
    assert pod.texts(previous=True) == []


def test_pods_interleave_by_time(tmp_path: Path) -> None:
    reader = LogReader(LogQuery())
    for label, seconds in (("a", (1, 4, 5)), ("b", (2, 3, 6))):
        logs = tmp_path / label / "runs" / "0" / "logs"
        logs.mkdir(parents=True)
        text = "".join(f"2030-01-01T00:00:0{s}.000000000Z stdout F {s}\n" for s in seconds)
        (logs / "0-0-0.log").write_text(text)
        reader.add(PodLog(uid=label, label=label, folder=tmp_path / label))
    (batch,) = reader.read_more(ended=True)
    assert [(line.pod, line.text) for line in batch.lines] == [
        ("a", "1"), ("b", "2"), ("b", "3"), ("a", "4"), ("a", "5"), ("b", "6"),
    ]  # fmt: skip


def test_a_pod_that_joins_late_is_read_from_its_first_line(tmp_path: Path) -> None:
    reader = LogReader(LogQuery(tail=1))
    assert list(reader.read_more()) == []
    logs = tmp_path / "late" / "runs" / "0" / "logs"
    logs.mkdir(parents=True)
    line = "2030-01-01T00:00:00.000000000Z stdout F {}\n"
    (logs / "0-0-0.log").write_text(line.format(1) + line.format(2))
    reader.add(PodLog(uid="late", label="late", folder=tmp_path / "late"))
    (batch,) = reader.read_more()
    assert [line.text for line in batch.lines] == ["1", "2"]


# -- a full disk -------------------------------------------------------------------------------


DROPPING = "the disk is full: lines are dropped from here on"


def check_that_nothing_is_missing_without_a_word(texts: list[str], printed: int) -> None:
    """Lines are numbers that count up. Where some are missing it says how many."""
    expected, dropped = 1, 0
    for number, text in enumerate(texts):
        if text == DROPPING:
            assert texts[number + 1].endswith("dropped: the disk was full")
        elif text.endswith("dropped: the disk was full"):
            dropped += int(text.split()[0])
            expected += int(text.split()[0])
        elif text.isdigit():
            assert int(text) == expected
            expected += 1
    assert dropped > 0
    kept = len([text for text in texts if "the disk" not in text])
    assert dropped + kept == printed


@pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount the small disk this fills")
def test_a_full_disk_drops_lines_counts_them_and_keeps_the_exit_code(pod: Pod) -> None:
    pod.folder.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "regatta-test", str(pod.folder)], check=True
    )
    try:
        go, printed = pod.folder.parent / "go", pod.folder.parent / "printed"
        hog = pod.folder / "hog"
        hog.write_bytes(b"x" * 1024 * 1024)
        wait = f"while [ ! -e {go} ]; do sleep 0.01; done"
        pod.start(shell(f"seq 1 100000; touch {printed}; {wait}; echo last; exit 5"))
        eventually(printed.exists)  # training went on though nothing could be written any more
        hog.unlink()
        go.touch()
        state = pod.ended()
        assert state.exit is not None
        assert state.exit.code == 5
        assert state.exit.message.endswith("\nlast")
        lines = pod.lines()
        printed_lines = [line.text for line in lines if line.stream == "stdout"]
        assert printed_lines[-1] == "last"
        check_that_nothing_is_missing_without_a_word([line.text for line in lines], 100_001)
    finally:
        pod.runtime.reap()
        subprocess.run(["umount", "--lazy", str(pod.folder)], check=True)


def test_the_supervisor_imports_next_to_nothing() -> None:
    program = (
        "import sys; sys.path.append(sys.argv[1]); import supervisor.life, supervisor.linux; "
        "print(*sorted(sys.modules))"
    )
    local = str(Path(SUPERVISOR).parent.parent)
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, local],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    heavy = {"asyncio", "collections", "enum", "functools", "json", "logging", "re", "signal",
             "socket", "subprocess", "threading", "typing", "regatta"}  # fmt: skip
    assert not heavy & set(loaded)


@pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount the small disk this fills")
def test_a_disk_that_stays_full_still_has_room_for_the_exit(pod: Pod, tmp_path: Path) -> None:
    with a_small_disk(pod.folder, size="256k") as disk:
        pod.start(shell(f"seq 1 20000; echo ready; touch {tmp_path}/ready; sleep 600"))
        pod.reaches(RunPhase.RUNNING)
        eventually((tmp_path / "ready").exists)
        disk.fill()
        pod.runtime.stop(pod.run, 5)  # which cannot be written: the signal must do
        state = pod.ended()
        assert state.stopped
        assert state.exit is not None
        assert state.exit.message.endswith("\nready")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segment_bytes", [8 * 1024 * 1024, 64 * 1024], ids=["one", "many"])
def test_a_disk_that_stays_full_has_room_for_the_word_that_lines_are_missing(
    pod: Pod, kind: str, segment_bytes: int
) -> None:
    with a_small_disk(pod.folder, kind, "4m"):
        limits = LogLimits(segment_bytes=segment_bytes, segments=1000)
        state = pod.play(shell("seq 1 200000"), log_limits=limits)
        assert state.exit is not None
        assert state.exit.code == 0
        texts = pod.texts()
        assert texts[-2] == DROPPING
        check_that_nothing_is_missing_without_a_word(texts, 200_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_finds_the_disk_filled_by_others_is_told_while_the_replica_runs(
    pod: Pod, tmp_path: Path, kind: str
) -> None:
    go, printed = tmp_path / "go", tmp_path / "printed"
    wait = f"while [ ! -e {go} ]; do sleep 0.01; done"
    with a_small_disk(pod.folder, kind, "4m") as disk:
        more = "for n in $(seq 1 5000); do echo $n; done"
        pod.start(shell(f"{wait}; {more}; touch {printed}; sleep 600"))
        pod.reaches(RunPhase.RUNNING)
        disk.fill()
        go.touch()
        eventually(printed.exists)
        pod.says(DROPPING)
        pod.runtime.stop(pod.run, 5)
        pod.ended()
        check_that_nothing_is_missing_without_a_word(pod.texts(), 5000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_is_filled_and_emptied_again_and_again_loses_nothing_untold(
    pod: Pod, tmp_path: Path, kind: str
) -> None:
    stop = tmp_path / "stop"
    program = f"""
import os, time
n = 0
while not os.path.exists({str(stop)!r}):
    n += 1
    print(n, flush=True)
    time.sleep(0.002)
open({str(stop)!r}, "w").write(str(n))
"""
    with a_small_disk(pod.folder, kind, "4m") as disk:
        pod.start(python(program), log_limits=LogLimits(segment_bytes=32 * 1024, segments=1000))
        pod.says("1")
        for _ in range(3):
            dropping = pod.texts().count(DROPPING)
            eventually(lambda: disk.fill() or pod.texts().count(DROPPING) > dropping)  # noqa: B023
            disk.make_room()
            lines = len(pod.lines())
            eventually(lambda: len(pod.lines()) > lines)  # noqa: B023
        stop.touch()
        pod.ended()
        check_that_nothing_is_missing_without_a_word(pod.texts(), int(stop.read_text()))


def test_room_that_was_taken_and_not_used_is_given_back(pod: Pod) -> None:
    pod.play(shell("echo one"))
    (segment,) = (pod.run / "logs").iterdir()
    assert segment.stat().st_blocks * 512 <= 4096


@pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount the small disk this fills")
def test_an_exit_that_finds_no_room_is_written_once_there_is_some(pod: Pod, tmp_path: Path) -> None:
    with a_small_disk(pod.folder, size="1m") as disk:
        go = tmp_path / "go"
        pod.start(shell(f"while [ ! -e {go} ]; do sleep 0.01; done; exit 3"))
        pod.reaches(RunPhase.RUNNING)
        (pod.run / "exit.json.reserve").unlink()  # as if there had been none from the beginning
        disk.take_no_more_files()
        child = pod.runtime.inspect(pod.run).pid
        go.touch()
        eventually(lambda: not Path(f"/proc/{child}").exists())
        disk.take_files()
        end = pod.ended().exit
        assert end is not None
        assert end.code == 3
