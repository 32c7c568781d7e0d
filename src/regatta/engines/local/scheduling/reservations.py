"""Loopback addresses and port blocks: which are free, and how a reservation reads.

Every replica gets an address of its own (`paddle.distributed.launch` counts hosts) and a block of
20 ports that nobody else on this machine has (Paddle's stores bind all addresses). A job's are
contiguous, so that one base tells them all. They are numbered: address 0 is 127.64.0.1, block 0
begins at port 10000.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence

from regatta.api.errors import NoPorts
from regatta.controller.world import PORTS_PER_REPLICA, Ports
from regatta.engines.local.replicas.runspec import gpu_hold, port_hold
from regatta.engines.local.store.records import Reservation

#: Outside 32768-64000, where the kernel and Paddle pick theirs, and 8500-8600, which brpc takes.
FIRST_PORT = 10_000
BLOCKS = 1000
#: 127.64.0.0/10 without the .0 and .255 of each 256.
_PER_NET = 254
ADDRESSES = (1 << 14) * _PER_NET

Probe = Callable[[int], bool]

BEGINNING = Reservation(0, 0, 0)


def address_of(number: int) -> str:
    net, host = divmod(number % ADDRESSES, _PER_NET)
    return f"127.{64 + (net >> 8)}.{net & 255}.{host + 1}"


def number_of(address: str) -> int:
    _, high, low, host = (int(part) for part in address.split("."))
    return (((high - 64) << 8) + low) * _PER_NET + host - 1


def port_of(block: int) -> int:
    return FIRST_PORT + block * PORTS_PER_REPLICA


def block_of(port: int) -> int:
    return (port - FIRST_PORT) // PORTS_PER_REPLICA


def ports_of(reservation: Reservation | None) -> Ports:
    """As the brain wants them: a base and a stride."""
    if reservation is None:
        return Ports(FIRST_PORT, PORTS_PER_REPLICA)
    return Ports(port_of(reservation.first_block), PORTS_PER_REPLICA)


def place(reservation: Reservation, ordinal: int) -> tuple[str, int]:
    """Address and first port of the replica with that place among the job's replicas."""
    address = address_of(reservation.first_address + ordinal)
    return address, port_of(reservation.first_block + ordinal)


def reserve(
    count: int,
    taken: Iterable[Reservation],
    live: Iterable[tuple[str, int]] = (),
    start: Reservation = BEGINNING,
    probe: Probe | None = None,
) -> Reservation:
    """The next free run of `count` addresses and blocks, going round from where `start` ended.

    Going round keeps what a job has just left unused for a while: its last connections may still
    linger there. Raises NoPorts when no run is free.
    """
    probe = block_is_free if probe is None else probe
    addresses: set[int] = set()
    blocks: set[int] = set()
    for held in taken:
        addresses.update(range(held.first_address, held.first_address + held.count))
        blocks.update(range(held.first_block, held.first_block + held.count))
    for address, port in live:
        addresses.add(number_of(address))
        blocks.add(block_of(port))
    first_block = _run_of(
        count, BLOCKS, start.first_block + start.count, lambda n: n not in blocks and probe(n)
    )
    first_address = _run_of(
        count, ADDRESSES, start.first_address + start.count, lambda n: n not in addresses
    )
    if first_block is None or first_address is None:
        raise NoPorts(
            f"no {count} port blocks of {PORTS_PER_REPLICA} in a row are free between "
            f"{FIRST_PORT} and {port_of(BLOCKS) - 1}: wait for jobs to end, or delete some."
        )
    return Reservation(first_address, first_block, count)


def extend(
    mine: Reservation,
    count: int,
    others: Sequence[Reservation],
    live: Sequence[tuple[str, int]] = (),
    probe: Probe | None = None,
) -> Reservation | None:
    """The same base with more places, where what follows it is free; None where it is not."""
    probe = block_is_free if probe is None else probe
    more = Reservation(mine.first_address + mine.count, mine.first_block + mine.count, 1)
    wanted = count - mine.count
    for step in range(wanted):
        address, block = more.first_address + step, more.first_block + step
        if block >= BLOCKS or address >= ADDRESSES:
            return None
        if any(_covers(other, address, block) for other in others):
            return None
        if any(number_of(a) == address or block_of(p) == block for a, p in live):
            return None
        if not probe(block):
            return None
    return Reservation(mine.first_address, mine.first_block, count)


def _covers(held: Reservation, address: int, block: int) -> bool:
    return (
        0 <= address - held.first_address < held.count or 0 <= block - held.first_block < held.count
    )


def _run_of(count: int, size: int, start: int, free: Callable[[int], bool]) -> int | None:
    """First of `count` free numbers in a row, looking once round from `start`; no wrap inside."""
    start %= size
    for stretch in (range(start, size), range(min(start + count - 1, size))):
        run = 0
        for number in stretch:
            run = run + 1 if free(number) else 0
            if run == count:
                return number - count + 1
    return None


def block_is_free(block: int) -> bool:
    """Nobody listens on a port of the block, and no supervisor of any user holds it."""
    hold = port_hold(port_of(block))
    if not _can_hold(hold.name):
        return False
    return all(_can_bind(hold.first_port + i) for i in range(hold.ports))


def gpu_is_free(device: str) -> bool:
    """No supervisor of any user holds it."""
    return _can_hold(gpu_hold(device).name)


def _can_hold(name: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.bind("\0" + name)
        except OSError:
            return False
    return True


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # What lingers after a closed connection is no obstacle; a listener is.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
