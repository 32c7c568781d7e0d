"""Which run a UID names."""

from __future__ import annotations

import pytest

from regatta.api.errors import JobNotFound
from regatta.engines.inventory import RunView
from regatta.engines.one_run import the_run


def a_run(uid: str, name: str = "quick", namespace: str = "default") -> RunView:
    return RunView(namespace=namespace, name=name, uid=uid, phase="Completed")


RUNS = [
    a_run("11112222-a"),
    a_run("11112222-b"),
    a_run("33334444-a", "slow"),
    a_run("33334444-b", "slow", "team"),
]


@pytest.mark.parametrize(
    ("uid", "name", "found"),
    [
        ("11112222-a", None, "11112222-a"),
        ("11112222-a", "quick", "11112222-a"),
        ("33334444", None, "33334444-a"),
        ("nobody", None, None),
    ],
)
def test_a_uid_or_eight_of_its_characters_name_a_run(
    uid: str, name: str | None, found: str | None
) -> None:
    run = the_run(uid, RUNS, "default", name)
    assert (run.uid if run else None) == found


def test_a_beginning_that_is_too_short_is_told_so() -> None:
    with pytest.raises(JobNotFound, match=r"3333444 is too short .*: write 8 characters or more"):
        the_run("3333444", RUNS, "default", None)


def test_where_several_begin_so_they_are_named() -> None:
    with pytest.raises(JobNotFound) as several:
        the_run("11112222", RUNS, "default", None)
    said = "2 runs have a UID that begins with 11112222: 11112222-a (quick), 11112222-b (quick). "
    assert str(several.value) == f"{said}Write more of it."


@pytest.mark.parametrize(
    ("uid", "namespace", "said"),
    [
        ("33334444-a", "default", "is not of quick in namespace default, but of job slow in"),
        (
            "33334444-b",
            "default",
            "of job slow in namespace team. Write `-n team --uid 33334444-b`",
        ),
    ],
)
def test_a_run_of_another_name_or_namespace_is_told_whose_it_is(
    uid: str, namespace: str, said: str
) -> None:
    with pytest.raises(JobNotFound) as other:
        the_run(uid, RUNS, namespace, "quick")
    assert said in str(other.value)
