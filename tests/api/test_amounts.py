"""Times and sizes as people write and read them."""

from __future__ import annotations

import pytest

from regatta.api.amounts import parse_duration, readable


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30s", 30), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("0.5s", 0.5),
     ("500ms", 0.5), ("1m5s", 65), ("1w", 604800)],
)  # fmt: skip
def test_durations_are_read_as_people_type_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 minutes", "-3s", "m", "1h-2m"])
def test_other_words_are_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(ValueError, match="write 30s, 5m, 1h30m, 2d or 1w"):
        parse_duration(text)


def test_more_than_any_clock_can_count_is_refused() -> None:
    with pytest.raises(ValueError, match="'99999999999d' is more than a hundred years; write less"):
        parse_duration("99999999999d")


@pytest.mark.parametrize("text", ["7", " 7", "7.5", "1h7"])
def test_who_asks_for_a_unit_is_given_no_bare_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"has no unit; write 7(\.5)?d for days"):
        parse_duration(text, with_unit=True)
    assert parse_duration("7d", with_unit=True) == 7 * 86400


@pytest.mark.parametrize(
    ("octets", "shown"), [(0, "0B"), (1023, "1023B"), (5 << 20, "5MiB"), (3 << 30, "3.0GiB")]
)
def test_sizes(octets: int, shown: str) -> None:
    assert readable(octets) == shown
