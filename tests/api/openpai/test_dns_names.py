"""Names become host names: the same ones always, different ones never the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.api.checks.names import about_job_name, about_label
from regatta.api.openpai.dns_names import LONGEST_ROLE, job_label, role_labels, room_for_job

V1_NAMES = st.from_regex(re.compile(r"\A[A-Za-z0-9\-._]{1,80}\Z", re.ASCII))
ROLE_NAMES = st.from_regex(re.compile(r"\A[A-Za-z0-9._~]{1,40}\Z", re.ASCII))
#: Names that become nearly the same word.
ALIKE = st.text("aA-_.b1", min_size=1, max_size=6)


@pytest.mark.parametrize("name", ["job", "a", "a-b-9", "exp-12345", "x" * 40, "deadbeef"])
def test_a_name_that_is_a_host_name_stays(name: str) -> None:
    assert job_label(name, 40) == name


@pytest.mark.parametrize(
    ("name", "word"),
    {
        "Job": "job",
        "my_job": "my-job",
        "a.b": "a-b",
        "9lives": "job-9lives",
        "-": "job",
        "a-": "a",
        "__x__": "x",
        "x" * 41: "x" * 33,
        "job-abc123": "job-abc123",
        "a_-_-_b": "a-b",
    }.items(),
)
def test_another_name_becomes_a_word_and_six_digits(name: str, word: str) -> None:
    assert re.fullmatch(re.escape(word) + "-[0-9a-f]{6}", job_label(name, 40))


@given(st.one_of(V1_NAMES, ALIKE), st.integers(8, 63))
def test_every_name_becomes_one_that_fits(name: str, room: int) -> None:
    label = job_label(name, room)
    assert about_job_name(label) is None
    assert len(label) <= room
    assert label == job_label(name, room)


@given(st.sets(st.one_of(V1_NAMES, ALIKE), max_size=12))
def test_different_jobs_have_different_names(names: set[str]) -> None:
    assert len({job_label(name, 37) for name in names}) == len(names)


@given(st.one_of(V1_NAMES, ALIKE))
def test_nobody_can_choose_a_name_that_another_one_becomes(name: str) -> None:
    label = job_label(name, 37)
    assert label == name or job_label(label, 37) != label


@given(st.lists(st.one_of(ROLE_NAMES, ALIKE), unique=True, max_size=32))
def test_roles_of_a_job_have_names_that_fit_and_differ(names: list[str]) -> None:
    labels = role_labels(names)
    assert list(labels) == names
    assert len(set(labels.values())) == len(names)
    for label in labels.values():
        assert about_label(label, "it") is None
        assert label[0].isalpha()
        assert len(label) <= LONGEST_ROLE


def test_roles_whose_digits_are_the_same_get_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alike:
        def __init__(self, text: bytes) -> None:
            self.text = text

        def hexdigest(self) -> str:
            return "0" * 6 + self.text.hex()

    monkeypatch.setattr("hashlib.sha256", Alike)
    assert role_labels(["a.b", "a_b", "A.b"]) == {
        "a.b": "a-b-000000",
        "a_b": "a-b-0000006",
        "A.b": "a-b-0000004",
    }


@given(
    st.lists(st.tuples(ROLE_NAMES, st.integers(1, 6000)), min_size=1, max_size=5),
    st.one_of(V1_NAMES, ALIKE),
)
def test_the_longest_host_name_of_a_job_fits(roles: list[tuple[str, int]], job: str) -> None:
    labels = role_labels(name for name, _ in roles)
    sized = [(labels[name], replicas) for name, replicas in roles]
    label = job_label(job, room_for_job(sized))
    assert max(len(f"{label}-{role}-{count - 1}") for role, count in sized) <= 63


def test_there_is_always_room_for_a_job() -> None:
    assert room_for_job([("r" * LONGEST_ROLE, 6000)]) == 37
    assert room_for_job([("a", 1), ("worker", 11)]) == 63 - len("-worker-10")
    assert room_for_job([("worker", 10)]) == 63 - len("-worker-9")


def test_a_name_without_room_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="room for 8 characters, not 7"):
        job_label("My_Job", 7)
