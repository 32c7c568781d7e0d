"""The gang queue: nothing over capacity, nothing half admitted, nobody starved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.engines.local.scheduling.scheduler import (
    Gang,
    Holder,
    Need,
    decide,
    gang_need,
    never_fits,
    priority_of,
)

GIB = 1 << 30
MACHINE = Need(8000, 16 * GIB, 2, 110)


def a_gang(uid: str, cpus: float = 0, gib: int = 0, gpus: int = 0, **more: int) -> Gang:
    need = Need(round(cpus * 1000), gib * GIB, gpus, more.pop("pods", 1))
    return Gang(uid=uid, name=uid, need=need, **more)


def a_holder(uid: str, cpus: float = 0, gpus: int = 0, **more: Any) -> Holder:
    return Holder(uid=uid, holds=Need(round(cpus * 1000), 0, gpus, 1), **more)


def test_a_gang_that_fits_is_admitted() -> None:
    assert decide(MACHINE, [], [a_gang("a", cpus=8)]).admit == ("a",)


def test_a_gang_that_does_not_fit_now_waits_with_what_is_short_and_its_place() -> None:
    decision = decide(MACHINE, [a_holder("old", cpus=6)], [a_gang("a", cpus=4, gib=2)])
    assert decision.admit == ()
    assert decision.waiting == {"a": "needs 4 CPUs, 2 of 8 free; next in the queue"}


def test_every_short_resource_is_named() -> None:
    holder = Holder(uid="old", holds=Need(7500, 15 * GIB, 2, 110))
    decision = decide(MACHINE, [holder], [a_gang("a", cpus=1, gib=2, gpus=1)])
    assert decision.waiting["a"] == (
        "needs 1 CPU, 0.5 of 8 free; needs 2 GiB of memory, 1 GiB of 16 GiB free; "
        "needs 1 GPU, 0 of 2 free; needs 1 replica slot, 0 of 110 free; next in the queue"
    )


def test_the_queue_is_by_priority_and_then_by_time() -> None:
    queue = [
        a_gang("late", cpus=8, queued=3),
        a_gang("early", cpus=8, queued=2),
        a_gang("urgent", cpus=8, queued=4, priority=100),
    ]
    decision = decide(MACHINE, [], queue)
    assert decision.admit == ("urgent",)
    assert decision.waiting["early"].endswith("next in the queue")
    assert decision.waiting["late"].endswith("2nd in the queue")


def test_a_later_gang_passes_when_the_head_would_still_fit_beside_it() -> None:
    holders = [a_holder("old", cpus=4, queued=1, admitted=2)]
    queue = [a_gang("head", cpus=6, queued=3), a_gang("small", cpus=2, queued=4)]
    assert decide(MACHINE, holders, queue).admit == ("small",)


def test_a_later_gang_that_could_delay_the_head_is_held_back_although_it_fits_now() -> None:
    holders = [a_holder("old", cpus=4, queued=1, admitted=2)]
    queue = [a_gang("head", cpus=6, queued=3), a_gang("small", cpus=3, queued=4)]
    decision = decide(MACHINE, holders, queue)
    assert decision.admit == ()
    assert decision.waiting["small"] == (
        "held back so that head, which is ahead of it, can start; 2nd in the queue"
    )


def test_who_is_held_back_for_a_job_of_another_namespace_is_not_told_its_name() -> None:
    holders = [a_holder("old", cpus=4, queued=1, admitted=2, namespace="user-ann")]
    queue = [
        a_gang("head", cpus=6, queued=3, namespace="user-ann"),
        a_gang("small", cpus=3, queued=4, namespace="user-bob"),
    ]
    assert decide(MACHINE, holders, queue).waiting["small"] == (
        "held back so that a job of another namespace, which is ahead of it, can start; "
        "2nd in the queue"
    )


def test_what_has_already_passed_the_head_counts_against_the_next_that_wants_to() -> None:
    holders = [
        a_holder("old", cpus=4, queued=1, admitted=2),
        a_holder("passed", cpus=2, queued=4, admitted=5),
    ]
    queue = [a_gang("head", cpus=6, queued=3), a_gang("next", cpus=1, queued=6)]
    assert decide(MACHINE, holders, queue).admit == ()


def test_a_job_that_ran_before_the_head_came_has_not_passed_it() -> None:
    holders = [a_holder("low", cpus=4, queued=1, admitted=2, priority=-100)]
    queue = [a_gang("head", cpus=6, queued=3), a_gang("small", cpus=2, queued=4)]
    assert decide(MACHINE, holders, queue).admit == ("small",)


def test_those_that_pass_the_head_together_count_together() -> None:
    holders = [a_holder("old", cpus=4, queued=1, admitted=2)]
    small = [a_gang(name, cpus=1, queued=number) for number, name in enumerate("abc", 4)]

    decision = decide(MACHINE, holders, [a_gang("head", cpus=6, queued=3), *small])

    assert decision.admit == ("a", "b")
    assert decision.waiting["c"].startswith("held back so that head")


def test_one_that_is_more_urgent_than_the_head_has_not_passed_it() -> None:
    holders = [
        a_holder("old", cpus=3, queued=1, admitted=2),
        a_holder("urgent", cpus=1, queued=4, admitted=5, priority=100),
    ]
    queue = [a_gang("head", cpus=6, queued=3), a_gang("small", cpus=2, queued=6)]

    assert decide(MACHINE, holders, queue).admit == ("small",)


def test_growth_stands_in_line_where_it_was_asked_for() -> None:
    holders = [a_holder("old", cpus=5, queued=5, admitted=2)]
    queue = [a_gang("old", cpus=6, queued=5), a_gang("head", cpus=4, queued=3)]

    decision = decide(MACHINE, holders, queue)

    assert decision.admit == ()
    assert decision.waiting["old"] == (
        "held back so that head, which is ahead of it, can start; 2nd in the queue"
    )


def test_growth_that_was_asked_for_earlier_goes_first() -> None:
    holders = [a_holder("old", cpus=5, queued=3, admitted=2)]
    queue = [a_gang("old", cpus=6, queued=3), a_gang("later", cpus=3, queued=5)]

    assert decide(MACHINE, holders, queue).admit == ("old",)


def test_growth_passes_the_head_where_all_of_it_fits_beside_it() -> None:
    """What grows gives nothing back before it ends: not its growth alone counts."""
    others = a_holder("other", cpus=3, queued=1, admitted=2)
    head = a_gang("head", cpus=4, queued=4)
    for size, admitted in ((4, ("old",)), (4.5, ())):
        holder = a_holder("old", cpus=3, queued=5, admitted=3)
        grown = a_gang("old", cpus=size, queued=5)
        assert decide(MACHINE, [others, holder], [head, grown]).admit == admitted, size


def test_what_grew_past_the_head_is_counted_once_when_it_grows_again() -> None:
    holders = [
        a_holder("other", cpus=4, queued=1, admitted=2),
        a_holder("grown", cpus=1, queued=8, admitted=6),
    ]
    queue = [a_gang("head", cpus=6, queued=4), a_gang("grown", cpus=2, queued=8)]

    assert decide(MACHINE, holders, queue).admit == ("grown",)


def test_what_finished_jobs_hold_is_told_to_those_who_wait_for_it() -> None:
    holders = [
        a_holder("a", cpus=2, ended="served"),
        a_holder("b", cpus=1, ended="also"),
        a_holder("c", cpus=3),
        a_holder("d", gpus=1, ended="elsewhere"),
    ]

    decision = decide(MACHINE, holders, [a_gang("x", cpus=4)])

    assert decision.waiting["x"] == (
        "needs 4 CPUs, 2 of 8 free, 3 held by what finished jobs left running (also, served); "
        "next in the queue"
    )


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        (
            ["user-bob", "user-ann"],
            "3 held by what finished jobs left running (a, and in another namespace)",
        ),
        (
            ["user-bob", "user-bob"],
            "3 held by what finished jobs left running (in another namespace)",
        ),
    ],
)
def test_finished_jobs_of_another_namespace_are_counted_and_not_named(
    theirs: list[str], told: str
) -> None:
    holders = [
        a_holder(name, cpus=cpus, ended=name, namespace=namespace)
        for name, cpus, namespace in zip("ba", (2, 1), theirs, strict=True)
    ]

    decision = decide(MACHINE, holders, [a_gang("x", cpus=6, namespace="user-ann")])

    assert decision.waiting["x"] == f"needs 6 CPUs, 5 of 8 free, {told}; next in the queue"


@pytest.mark.parametrize(("jobs", "names"), [(3, "j0, j1, j2"), (4, "j0, j1, j2, ...")])
def test_of_many_finished_jobs_the_first_are_named(jobs: int, names: str) -> None:
    holders = [a_holder(str(n), cpus=2, ended=f"j{n}") for n in range(jobs)]

    (why,) = decide(MACHINE, holders, [a_gang("x", cpus=4)]).waiting.values()

    assert f"left running ({names}); " in why


def test_what_is_overdrawn_stops_only_those_who_ask_for_it() -> None:
    holders = [a_holder("old", cpus=1, gpus=3)]
    queue = [a_gang("none", cpus=1), a_gang("one", gpus=1)]

    decision = decide(MACHINE, holders, queue)

    assert decision.admit == ("none",)
    assert decision.waiting["one"] == "needs 1 GPU, 0 of 2 free; next in the queue"


def test_growing_needs_only_the_difference() -> None:
    holders = [a_holder("a", cpus=6)]
    assert decide(MACHINE, holders, [a_gang("a", cpus=8)]).admit == ("a",)


def test_a_gang_that_asks_for_nothing_takes_only_replica_slots() -> None:
    holders = [a_holder("old", cpus=8)]
    assert decide(MACHINE, holders, [a_gang("a", pods=4)]).admit == ("a",)


def test_never_fits_tells_the_numbers() -> None:
    need = Need(9000, 1, 4, 3)
    assert never_fits(MACHINE, need) == (
        "it needs 9 CPUs, this machine has 8 CPUs; it needs 4 GPUs, this machine has 2 GPUs"
    )
    assert never_fits(MACHINE, MACHINE) is None


@pytest.mark.parametrize(
    ("word", "priority"),
    [
        ("", 0),
        ("7", 7),
        ("-3", -3),
        ("high", 100),
        ("Low", -100),
        ("normal", 0),
        ("someone-elses-class", 0),
    ],
)
def test_a_priority_class_is_a_number_or_one_of_three_words(word: str, priority: int) -> None:
    assert priority_of(word) == priority


def test_a_gang_needs_so_many_times_what_one_replica_needs() -> None:
    needs = {"ps": Need(500, 10, 0, 1), "worker": Need(1000, 20, 1, 1)}
    assert gang_need(needs, {"ps": 2, "worker": 3}) == Need(4000, 80, 3, 5)
    assert gang_need({}, {"task": 3}) == Need(pods=3), "each takes a slot, whatever it asks for"


def test_places_in_the_queue_are_told_as_people_count() -> None:
    queue = [a_gang(str(number), cpus=8, queued=number) for number in range(1, 114)]

    waiting = decide(MACHINE, [a_holder("old", cpus=8)], queue).waiting

    places = (1, 2, 3, 4, 10, 11, 12, 13, 20, 21, 22, 23, 101, 110, 111, 113)
    assert [waiting[str(place)].rpartition("; ")[2].split()[0] for place in places] == [
        *("next", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "20th"),
        *("21st", "22nd", "23rd", "101st", "110th", "111th", "113th"),
    ]


SIZES = {
    512: "512 B",
    1023: "1023 B",
    1 << 10: "1 KiB",
    1536: "1.5 KiB",
    1 << 20: "1 MiB",
    5 << 30: "5 GiB",
    (1 << 40) - (1 << 30): "1023 GiB",
    2 << 40: "2 TiB",
}


@pytest.mark.parametrize(("size", "words"), SIZES.items())
def test_memory_is_told_in_the_largest_unit_that_fits(size: int, words: str) -> None:
    assert never_fits(Need(), Need(memory=size)) == (
        f"it needs {words} of memory, this machine has 0 B of memory"
    )


def test_one_of_a_kind_is_not_told_as_many() -> None:
    assert never_fits(Need(), Need(1000, 0, 1, 1)) == (
        "it needs 1 CPU, this machine has 0 CPUs; it needs 1 GPU, this machine has 0 GPUs; "
        "it needs 1 replica slot, this machine has 0 replica slots"
    )


# Random machines and queues

amounts = st.builds(
    Need, st.integers(0, 8000), st.integers(0, 16), st.integers(0, 2), st.integers(1, 20)
)
capacity = Need(8000, 16, 2, 20)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Holder], list[Gang]]:
    """Holders that fit the machine together, and gangs that would each fit it alone."""
    free, holders = capacity, []
    sequence = iter(range(1, 100))
    for number, holds in enumerate(draw(st.lists(amounts, max_size=4))):
        if holds.fits(free):
            free = free - holds
            queued, admitted = next(sequence), next(sequence)
            holders.append(Holder(uid=f"h{number}", holds=holds, queued=queued, admitted=admitted))
    queue = [
        Gang(
            uid=f"g{number}",
            name=f"g{number}",
            need=need,
            priority=draw(st.integers(-1, 1)),
            queued=next(sequence),
        )
        for number, need in enumerate(draw(st.lists(amounts, max_size=6)))
    ]
    return holders, queue


def total(needs: list[Need]) -> Need:
    added = Need()
    for need in needs:
        added = added + need
    return added


@given(situations())
def test_the_machine_is_never_given_away_twice(situation: tuple[list[Holder], list[Gang]]) -> None:
    holders, queue = situation
    admitted = set(decide(capacity, holders, queue).admit)
    holds = [h.holds for h in holders] + [g.need for g in queue if g.uid in admitted]
    assert total(holds).fits(capacity)


@given(situations())
def test_a_gang_is_admitted_or_told_why_not(situation: tuple[list[Holder], list[Gang]]) -> None:
    holders, queue = situation
    decision = decide(capacity, holders, queue)
    assert set(decision.admit) | set(decision.waiting) == {gang.uid for gang in queue}
    assert not set(decision.admit) & set(decision.waiting)
    assert all(decision.waiting.values())


@given(situations())
def test_two_gangs_never_wait_for_each_other(situation: tuple[list[Holder], list[Gang]]) -> None:
    """On an empty machine the head of the queue always starts."""
    _, queue = situation
    if queue:
        head = min(queue, key=lambda gang: gang.order)
        assert head.uid in decide(capacity, [], queue).admit


@given(situations(), st.lists(amounts, min_size=5, max_size=30))
def test_the_head_is_never_starved_by_a_stream_of_later_gangs(
    situation: tuple[list[Holder], list[Gang]], stream: list[Need]
) -> None:
    """Once what ran before the head came has ended, it starts, though nothing that passed it ends.

    Later gangs keep coming with the head's priority or less, and every one that is admitted runs
    for ever.
    """
    holders, queue = situation
    if not queue:
        return
    head = Gang(uid="head", name="head", need=queue[0].need, queued=1000)
    running = {holder.uid: holder for holder in holders}
    sequence = 1001
    waiting = {head.uid: head}
    for number, need in enumerate(stream):
        sequence += 1
        uid = f"later{number}"
        waiting[uid] = Gang(uid=uid, name=uid, need=need, queued=sequence)
        for admitted in decide(capacity, running.values(), waiting.values()).admit:
            sequence += 1
            gang = waiting.pop(admitted)
            running[admitted] = Holder(
                uid=admitted, holds=gang.need, queued=gang.queued, admitted=sequence
            )
    for holder in holders:
        running.pop(holder.uid, None)
    left = decide(capacity, running.values(), waiting.values())
    assert head.uid in running or head.uid in left.admit
