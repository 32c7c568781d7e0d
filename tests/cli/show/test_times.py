"""Ages."""

from __future__ import annotations

import pytest

from regatta.cli.show.times import age


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
