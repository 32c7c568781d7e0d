"""Reading server-sent events."""

from __future__ import annotations

import pytest

from regatta.client.event_stream import EventReader, ServerEvent


def read(text: str) -> list[ServerEvent]:
    return EventReader().feed(text.encode())


def test_an_event_has_a_name_an_id_and_its_data() -> None:
    assert read("event: lines\nid: 7\ndata: [1]\n\n") == [ServerEvent("lines", "[1]", "7")]


def test_an_id_holds_until_the_next_one() -> None:
    events = read("id: 7\ndata: a\n\ndata: b\n\nid: 8\ndata: c\n\n")

    assert [(e.data, e.id) for e in events] == [("a", "7"), ("b", "7"), ("c", "8")]


def test_a_name_holds_for_one_event_only() -> None:
    assert [e.event for e in read("event: job\ndata: a\n\ndata: b\n\n")] == ["job", "message"]


def test_comments_and_unknown_fields_are_passed_over() -> None:
    assert read(": still here\n\nretry: 5\ndata: x\n\n") == [ServerEvent("message", "x", "")]


def test_data_of_several_lines_is_joined() -> None:
    assert read("data: a\r\ndata: b\r\n\r\n")[0].data == "a\nb"


def test_an_event_that_the_streams_end_cut_off_is_dropped() -> None:
    assert read("data: whole\n\nid: 9\ndata: ha") == [ServerEvent("message", "whole", "")]


WHOLE = ': beat\n\nevent: lines\r\nid: a=1\ndata: ["é"]\n\ndata: x\ndata: y\n\n'.encode()


@pytest.mark.parametrize("cut", range(len(WHOLE)))
def test_it_does_not_matter_where_the_parts_are_cut(cut: int) -> None:
    reader = EventReader()

    events = reader.feed(WHOLE[:cut]) + reader.feed(WHOLE[cut:])

    assert events == [ServerEvent("lines", '["é"]', "a=1"), ServerEvent("message", "x\ny", "a=1")]
