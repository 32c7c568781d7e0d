"""Reading server-sent events."""

from __future__ import annotations

from regatta.client.event_stream import ServerEvent, parse


def read(text: str) -> list[ServerEvent]:
    return list(parse(text.encode().splitlines(keepends=True)))


def test_an_event_has_a_name_an_id_and_its_data() -> None:
    assert read("event: lines\nid: 7\ndata: [1]\n\n") == [ServerEvent("lines", "[1]", "7")]


def test_an_id_holds_until_the_next_one() -> None:
    events = read("id: 7\ndata: a\n\ndata: b\n\nid: 8\ndata: c\n\n")

    assert [(e.data, e.id) for e in events] == [("a", "7"), ("b", "7"), ("c", "8")]


def test_comments_and_unknown_fields_are_passed_over() -> None:
    assert read(": still here\n\nretry: 5\ndata: x\n\n") == [ServerEvent("message", "x", "")]


def test_data_of_several_lines_is_joined() -> None:
    assert read("data: a\r\ndata: b\r\n\r\n")[0].data == "a\nb"


def test_an_event_that_the_streams_end_cut_off_is_dropped() -> None:
    assert read("data: whole\n\nid: 9\ndata: ha") == [ServerEvent("message", "whole", "")]
