"""Leader election on a real API server: one leads, and the next waits its turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from regatta.engines.kubernetes.operator.leader import (
    LeaderElector,
    LeaderSettings,
    LeadershipLost,
)
from tests.engines.kubernetes.loops import eventually, in_a_loop
from tests.kubernetes.client.clients import connect
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults.proxy import FaultProxy
from tests.kubernetes.faults.rules import DropAfterCommit, RefuseAfterCommit, Rule

#: Short, and still long enough for a machine on which a request takes a second or two.
QUICK = LeaderSettings(lease_seconds=12, renew_seconds=10, retry_seconds=0.2)


class Contender:
    """One operator: writes down in a shared book when its work begins and ends."""

    def __init__(
        self,
        name: str,
        kubeconfig: Path,
        namespace: str,
        book: list[str],
        settings: LeaderSettings = QUICK,
    ) -> None:
        self.name = name
        self.book = book
        self.enough = asyncio.Event()
        # A try has its own end, the lease's; what is frozen for good must not outlast that.
        self.client = connect(kubeconfig, request_seconds=settings.renew_seconds / 4)
        self.elector = LeaderElector(
            self.client, namespace=namespace, name="operator", identity=name, settings=settings
        )
        self.task = asyncio.ensure_future(self.elector.run(self._work))

    async def _work(self) -> None:
        self.book.append(f"{self.name} begins")
        try:
            await self.enough.wait()
        finally:
            self.book.append(f"{self.name} ends")

    async def close(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError, LeadershipLost):
            await self.task
        await self.client.close()


def held_by(plane: ControlPlane, namespace: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator"
    holder = plane.api.get(path)["spec"].get("holderIdentity")
    return holder or ""


@in_a_loop
async def test_of_two_one_leads_and_the_other_follows_when_it_is_done(
    plane: ControlPlane, namespace: str
) -> None:
    book: list[str] = []
    a = Contender("a", plane.admin_kubeconfig, namespace, book)
    await eventually(lambda: book == ["a begins"])
    b = Contender("b", plane.admin_kubeconfig, namespace, book)
    await eventually(lambda: b.elector.holder == "a")
    assert (a.elector.leads, b.elector.leads) == (True, False)
    # Longer than the lease: renewals keep it.
    await asyncio.sleep(QUICK.lease_seconds + 1)
    assert book == ["a begins"]
    a.enough.set()
    await a.task
    await eventually(lambda: book == ["a begins", "a ends", "b begins"])
    assert held_by(plane, namespace) == "b"
    lease = plane.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator")
    assert lease["spec"]["leaseTransitions"] == 1
    for contender in (a, b):
        await contender.close()
    assert held_by(plane, namespace) == ""


@in_a_loop
async def test_many_at_once_make_one_leader(plane: ControlPlane, namespace: str) -> None:
    book: list[str] = []
    contenders = [
        Contender(f"c-{number}", plane.admin_kubeconfig, namespace, book) for number in range(6)
    ]
    await eventually(lambda: book)
    await asyncio.sleep(1)
    assert len(book) == 1
    for _ in range(5):
        (leading,) = [c for c in contenders if c.elector.leads]
        contenders.remove(leading)
        before = len(book)
        await leading.close()
        await eventually(lambda before=before: len(book) == before + 2)  # type: ignore[misc]
    await contenders[0].close()
    begins = [line for line in book if line.endswith("begins")]
    assert len(begins) == len(set(begins)) == 6
    # Nobody began before the one before had ended.
    assert [line.split()[1] for line in book] == ["begins", "ends"] * 6


@pytest.mark.parametrize("settings", [QUICK, LeaderSettings()], ids=["quick", "by default"])
@in_a_loop
async def test_a_leader_that_is_cut_off_stops_before_another_begins(
    proxy: FaultProxy, plane: ControlPlane, namespace: str, settings: LeaderSettings
) -> None:
    book: list[str] = []
    a = Contender("a", proxy.kubeconfig, namespace, book, settings)
    await eventually(lambda: book == ["a begins"])
    b = Contender("b", plane.admin_kubeconfig, namespace, book, settings)
    await eventually(lambda: b.elector.holder == "a")
    proxy.freeze()
    with pytest.raises(LeadershipLost, match=r"a lost the lease .*/operator: not renewed for"):
        await a.task
    assert book == ["a begins", "a ends"]
    await eventually(lambda: "b begins" in book)
    assert book == ["a begins", "a ends", "b begins"]
    proxy.restore()
    for contender in (a, b):
        await contender.close()


@in_a_loop
async def test_lost_and_lying_answers_do_not_cost_the_lease(
    proxy: FaultProxy, plane: ControlPlane, namespace: str
) -> None:
    book: list[str] = []
    # No lease runs out in here, so that only an answer could cost it and never a slow machine.
    patient = LeaderSettings(lease_seconds=600, renew_seconds=500, retry_seconds=0.2)
    a = Contender("a", proxy.kubeconfig, namespace, book, patient)
    await eventually(lambda: book == ["a begins"])
    for fault in (DropAfterCommit(), RefuseAfterCommit(500)):
        rule = proxy.add(Rule(fault, method="PUT", times=3))
        await eventually(lambda rule=rule: rule.struck == 3)  # type: ignore[misc]
        await _is_renewed(plane, namespace)
    assert book == ["a begins"]
    assert a.elector.leads
    await a.close()
    assert held_by(plane, namespace) == ""


async def _is_renewed(plane: ControlPlane, namespace: str) -> None:
    """Until the API server has taken two more renewals than it has by now."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator"
    for _ in range(2):
        before = plane.api.get(path)["spec"]["renewTime"]
        await eventually(lambda b=before: plane.api.get(path)["spec"]["renewTime"] != b)  # type: ignore[misc]


@in_a_loop
async def test_a_lease_that_somebody_else_took_is_let_go_at_once(
    plane: ControlPlane, namespace: str
) -> None:
    book: list[str] = []
    a = Contender("a", plane.admin_kubeconfig, namespace, book)
    await eventually(lambda: book == ["a begins"])
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator"
    plane.api.patch(path, {"spec": {"holderIdentity": "usurper"}})
    with pytest.raises(LeadershipLost, match="last seen with 'usurper'"):
        await a.task
    assert book == ["a begins", "a ends"]
    await a.close()
    assert held_by(plane, namespace) == "usurper"


def test_durations_that_could_make_two_leaders_are_refused() -> None:
    with pytest.raises(ValueError, match="each must be longer than the next"):
        LeaderSettings(lease_seconds=10, renew_seconds=10, retry_seconds=2)
