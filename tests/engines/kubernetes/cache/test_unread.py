"""A reader who is slow is told the newest state of each object, and no more than that."""

from __future__ import annotations

from regatta.engines.kubernetes.api.models import Bare, Metadata
from regatta.engines.kubernetes.cache.unread import Unread
from tests.engines.kubernetes.loops import in_a_loop


def a_thing(name: str, version: int = 1, uid: str = "") -> Bare:
    return Bare(Metadata(name=name, uid=uid or name, resource_version=str(version)))


def taken(unread: Unread[Bare]) -> list[str]:
    return [
        f"-{metadata.name}" if thing is None else f"{metadata.name}@{metadata.resource_version}"
        for metadata, thing in unread.take()
    ]


@in_a_loop
async def test_of_many_changes_the_last_is_told_in_its_order() -> None:
    unread: Unread[Bare] = Unread()
    for thing in (a_thing("a"), a_thing("b"), a_thing("a", 2), a_thing("a", 3)):
        unread.changed(None, thing)

    assert await unread.wait(60)
    assert taken(unread) == ["b@1", "a@3"]
    assert taken(unread) == []
    assert not await unread.wait(0.001)


@in_a_loop
async def test_what_was_replaced_is_gone_first() -> None:
    unread: Unread[Bare] = Unread()
    unread.changed(a_thing("a", uid="1"), None)
    unread.changed(None, a_thing("a", 5, uid="2"))

    assert taken(unread) == ["-a", "a@5"]
