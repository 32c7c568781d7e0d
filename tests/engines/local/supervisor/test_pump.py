"""However output is cut into pieces, the same lines are read back."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from regatta.engines.base import LogQuery
from regatta.engines.local.logs.reader import LogReader, PodLog
from regatta.engines.local.supervisor.pump import SILENCE_SECONDS, Pump, Source
from regatta.engines.local.supervisor.segments import Segments

LINES = st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=60))
WORDS = st.sampled_from([b"a", b"bb", b"\n", b"\r", b"\r\n", b"long" * 5000, b" "])


def read_back(folder: Path) -> list[str]:
    reader = LogReader(LogQuery())
    reader.add(PodLog(uid="u", label="w", folder=folder))
    return [line.text for batch in reader.read_more(ended=True) for line in batch.lines]


def pump_into(folder: Path, segment_bytes: int) -> tuple[Pump, Segments]:
    segments = Segments(str(folder / "runs" / "0" / "logs"), segment_bytes, 10_000)
    return Pump(segments), segments


@settings(max_examples=100, deadline=None)
@given(
    lines=LINES,
    cuts=st.lists(st.integers(1, 40), min_size=1),
    silences=st.sets(st.integers(0, 200)),
    segment_bytes=st.sampled_from([100, 1000, 1 << 20]),
)
def test_lines_survive_any_cutting_silence_and_rotation(
    lines: list[str], cuts: list[int], silences: set[int], segment_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pump, segments = pump_into(Path(folder), segment_bytes)
        source = Source("stdout")
        rest, turn = "".join(line + "\n" for line in lines).encode(), 0
        while rest:
            length = cuts[turn % len(cuts)]
            pump.feed(source, rest[:length])
            if turn in silences:
                pump.flush_silent(source, source.fresh_at + SILENCE_SECONDS)
            rest, turn = rest[length:], turn + 1
        pump.finish(source)
        segments.close()
        assert read_back(Path(folder)) == lines


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.tuples(st.sampled_from([0, 1]), WORDS), max_size=60))
def test_two_streams_that_interrupt_each_other_lose_nothing(
    pieces: list[tuple[int, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pump, segments = pump_into(Path(folder), 1 << 20)
        sources = [Source("stdout"), Source("stderr")]
        for number, piece in pieces:
            pump.feed(sources[number], piece)
            pump.flush_silent(sources[number], sources[number].fresh_at + SILENCE_SECONDS)
        for source in sources:
            pump.finish(source)
        segments.close()
        printed = b"".join(piece for _, piece in pieces)
        for ending in (b"\r", b"\n"):
            printed = printed.replace(ending, b"")
        read = "".join(read_back(Path(folder)))
        assert sorted(read) == sorted(printed.decode())


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.integers(0, 9), min_size=1, max_size=50), keep=st.integers(2, 5))
def test_rotation_never_exceeds_its_limit_and_never_tears_a_line(
    lines: list[int], keep: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "runs" / "0" / "logs"
        segments = Segments(str(logs), 200, keep)
        pump, source = Pump(segments), Source("stdout")
        for line in lines:
            pump.feed(source, b"%d\n" % line)
            assert sum(file.stat().st_size for file in logs.iterdir()) <= 200 * keep
        segments.close()
        read = [text for text in read_back(Path(folder)) if "rotated" not in text]
        assert read == [str(line) for line in lines][-len(read) :]
