"""The local copy: whatever was missed, handlers are told of each difference exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regatta.engines.kubernetes.api.models import Bare, Metadata, OwnerReference
from regatta.engines.kubernetes.cache.index import Store, by_controller, by_label
from regatta.engines.kubernetes.cache.mirror import Mirror


def an_object(name: str, uid: str = "u1", version: int = 1, job: str = "", owner: str = "") -> Bare:
    return Bare(
        Metadata(
            name=name,
            namespace="ns",
            uid=uid,
            resource_version=str(version),
            labels={"job": job} if job else {},
            owner_references=(OwnerReference(uid=owner, controller=True),) if owner else (),
        )
    )


class Listener:
    """Believes only what it is told, and checks that every word follows from the last."""

    def __init__(self, mirror: Mirror[Bare]) -> None:
        self.believes: dict[str, Bare] = {}
        self.told: list[str] = []
        mirror.handlers.append(self)

    def __call__(self, old: Bare | None, new: Bare | None) -> None:
        thing = new or old
        assert thing is not None
        key = thing.metadata.key
        held = self.believes.get(key)
        if old is None:
            assert held is None, "told as new what was there"
        else:
            assert held is not None, "told as changed what was not there"
            assert held.metadata.uid == old.metadata.uid
        if new is None:
            del self.believes[key]
            self.told.append(f"-{thing.metadata.name}/{thing.metadata.uid}")
            return
        if old is not None:
            assert old.metadata.resource_version != new.metadata.resource_version
        self.believes[key] = new
        sign = "+" if old is None else "~"
        self.told.append(f"{sign}{thing.metadata.name}/{thing.metadata.uid}")


def a_mirror() -> tuple[Mirror[Bare], Listener]:
    mirror = Mirror(Store({"job": by_label("job"), "owner": by_controller}))
    return mirror, Listener(mirror)


def test_a_list_tells_of_what_vanished_meanwhile() -> None:
    mirror, listener = a_mirror()
    mirror.replace([an_object("a"), an_object("b")])
    assert mirror.replace([an_object("b"), an_object("c", version=5)]) == 2
    assert listener.told == ["+a/u1", "+b/u1", "-a/u1", "+c/u1"]


def test_what_was_replaced_under_its_name_is_told_as_gone_and_then_new() -> None:
    mirror, listener = a_mirror()
    mirror.replace([an_object("a")])
    mirror.replace([an_object("a", uid="u2", version=9)])
    mirror.put(an_object("a", uid="u3", version=12))
    assert listener.told == ["+a/u1", "-a/u1", "+a/u2", "-a/u2", "+a/u3"]


def test_the_same_state_twice_is_no_news() -> None:
    mirror, listener = a_mirror()
    mirror.put(an_object("a"))
    assert not mirror.put(an_object("a"))
    assert mirror.replace([an_object("a")]) == 0
    assert listener.told == ["+a/u1"]


def test_the_end_of_a_predecessor_does_not_remove_its_successor() -> None:
    mirror, listener = a_mirror()
    mirror.put(an_object("a", uid="u2", version=9))
    assert not mirror.deleted(an_object("a", uid="u1", version=8))
    assert listener.told == ["+a/u2"]


def test_objects_are_found_by_label_and_by_owner_and_not_after_they_moved() -> None:
    mirror, _ = a_mirror()
    store = mirror.store
    mirror.put(an_object("a", job="x", owner="o1"))
    mirror.put(an_object("b", job="x"))
    assert [thing.metadata.name for thing in store.by("job", "ns/x")] == ["a", "b"]
    assert [thing.metadata.name for thing in store.by("owner", "o1")] == ["a"]
    mirror.put(an_object("a", version=2, job="y", owner="o1"))
    mirror.deleted(an_object("b", version=3))
    assert list(store.by("job", "ns/x")) == []
    assert list(store.values("job")) == ["ns/y"]
    assert [thing.metadata.resource_version for thing in store.by("owner", "o1")] == ["2"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["change", "delete", "recreate"]),
            st.sampled_from(["seen", "missed", "list"]),
        ),
        max_size=40,
    )
)
def test_after_a_list_the_copy_is_the_truth_whatever_was_missed(
    history: list[tuple[str, str, str]],
) -> None:
    mirror, listener = a_mirror()
    truth: dict[str, Bare] = {}
    clock = 0
    blind = False
    for name, action, fate in history:
        clock += 1
        old = truth.get(name)
        uid = old.metadata.uid if old else f"u{clock}"
        job = f"job{clock % 2}"
        if action == "delete" and old is None:
            continue
        if action == "recreate" and old is not None:
            blind = True  # The deletion in between is one event that nobody saw.
            uid = f"u{clock}"
        thing = an_object(name, uid, clock, job=job)
        if action == "delete":
            del truth[name]
        else:
            truth[name] = thing
        # A watch misses everything after the first event it missed, until it is listed anew.
        blind = blind or fate == "missed"
        if fate == "list":
            mirror.replace(truth.values())
            blind = False
        elif not blind:
            (mirror.deleted if action == "delete" else mirror.put)(thing)
        if not blind:
            assert {thing.metadata.name: thing for thing in mirror.store} == truth
    mirror.replace(truth.values())
    assert {thing.metadata.name: thing for thing in mirror.store} == truth
    assert listener.believes == {f"ns/{name}": thing for name, thing in truth.items()}
    for value in ("ns/job0", "ns/job1"):
        expected = {n for n, t in truth.items() if f"ns/{t.metadata.labels['job']}" == value}
        assert {thing.metadata.name for thing in mirror.store.by("job", value)} == expected
