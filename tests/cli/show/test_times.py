"""Ages and durations."""

from __future__ import annotations

import pytest

from regatta.cli.show.times import age, parse_duration, size


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (5, "5s"),
        (119, "119s"),
        (200, "3m20s"),
        (180, "3m"),
        (45 * 60, "45m"),
        (2 * 3600 + 60, "121m"),
        (5 * 3600 + 12 * 60, "5h12m"),
        (30 * 3600, "30h"),
        (4 * 86400, "4d"),
        (4 * 86400 + 3600, "4d1h"),
        (400 * 86400, "400d"),
        (None, "-"),
    ],
)
def test_ages_have_fewer_units_the_longer_they_are(seconds: float | None, shown: str) -> None:
    assert age(seconds) == shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30s", 30), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("0.5s", 0.5),
     ("500ms", 0.5), ("1m5s", 65)],
)  # fmt: skip
def test_durations_are_read_as_people_type_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 minutes", "-3s", "m", "1h-2m"])
def test_other_words_are_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(ValueError, match="write 30s, 5m, 1h30m or 2d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("octets", "shown"), [(0, "0B"), (1023, "1023B"), (5 << 20, "5MiB"), (3 << 30, "3.0GiB")]
)
def test_sizes(octets: int, shown: str) -> None:
    assert size(octets) == shown
