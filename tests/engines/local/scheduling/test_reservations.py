"""Addresses and port blocks: contiguous for a job, never shared, probed before they are given."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.api.errors import NoPorts
from regatta.engines.local.replicas.runspec import port_hold
from regatta.engines.local.scheduling.reservations import (
    ADDRESSES,
    BLOCKS,
    address_of,
    block_is_free,
    block_of,
    extend,
    number_of,
    place,
    port_of,
    ports_of,
    reserve,
)
from regatta.engines.local.store.records import Reservation


def always(block: int) -> bool:
    return True


@given(st.integers(0, ADDRESSES - 1))
def test_every_address_is_loopback_and_ends_in_neither_0_nor_255(number: int) -> None:
    address = address_of(number)
    assert ipaddress.ip_address(address) in ipaddress.ip_network("127.64.0.0/10")
    assert address.rpartition(".")[2] not in ("0", "255")
    assert number_of(address) == number


def test_port_blocks_stay_out_of_the_ranges_others_pick_from() -> None:
    assert port_of(0) == 10000
    assert port_of(BLOCKS) - 1 == 29999
    assert block_of(port_of(17)) == 17


def test_the_brain_gets_a_base_and_a_stride() -> None:
    reservation = Reservation(300, 7, 3)
    ports = ports_of(reservation)
    assert [place(reservation, i)[1] for i in range(3)] == [ports.of(i, 0) for i in range(3)]


def test_neighbours_never_overlap_and_what_was_just_used_is_not_given_again() -> None:
    first = reserve(3, [], probe=always)
    second = reserve(2, [first], start=first, probe=always)
    assert second == Reservation(3, 3, 2)
    assert reserve(2, [], start=second, probe=always) == Reservation(5, 5, 2)


def test_it_goes_round_when_the_end_is_reached() -> None:
    near_end = Reservation(ADDRESSES - 1, BLOCKS - 1, 0)
    assert reserve(2, [], start=near_end, probe=always) == Reservation(0, 0, 2)


def test_a_taken_block_is_jumped_over() -> None:
    assert reserve(2, [], probe=lambda block: block != 1).first_block == 2


def test_what_running_replicas_still_use_is_not_given_away() -> None:
    live = [(address_of(1), port_of(1))]
    assert reserve(2, [], live, probe=always) == Reservation(2, 2, 2)


def test_when_nothing_is_free_the_message_says_what_to_do() -> None:
    with pytest.raises(NoPorts, match="wait for jobs to end"):
        reserve(2, [Reservation(0, 0, BLOCKS - 1)], probe=always)


def test_a_reservation_grows_in_place_where_what_follows_is_free() -> None:
    mine = Reservation(10, 10, 2)
    assert extend(mine, 4, [], probe=always) == Reservation(10, 10, 4)
    assert extend(mine, 4, [Reservation(50, 13, 1)], probe=always) is None
    assert extend(mine, 4, [], [(address_of(12), port_of(99))], probe=always) is None
    assert extend(mine, 4, [], probe=lambda block: False) is None


def a_free_block() -> int:
    return next(block for block in range(BLOCKS - 1, 0, -1) if block_is_free(block))


def test_a_block_with_a_listener_on_any_of_its_ports_is_not_free() -> None:
    block = a_free_block()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port_of(block) + 19))
        listener.listen()
        assert not block_is_free(block)


def test_a_block_that_another_users_supervisor_holds_is_not_free() -> None:
    block = a_free_block()
    with socket.socket(socket.AF_UNIX) as held:
        held.bind("\0" + port_hold(port_of(block)).name)
        assert not block_is_free(block)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 8)), max_size=6),
    st.integers(1, 6),
    st.integers(0, 80),
)
def test_whatever_is_taken_a_new_reservation_overlaps_none_of_it(
    taken: list[tuple[int, int, int]], count: int, start: int
) -> None:
    held = [Reservation(*numbers) for numbers in taken]
    got = reserve(count, held, start=Reservation(start, start, 0), probe=always)
    for other in held:
        assert not _overlap(got.first_address, got.count, other.first_address, other.count)
        assert not _overlap(got.first_block, got.count, other.first_block, other.count)


def _overlap(a: int, a_count: int, b: int, b_count: int) -> bool:
    return a < b + b_count and b < a + a_count
