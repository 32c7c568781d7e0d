from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.server.accounts.caller import Caller
from regatta.server.accounts.visibility import (
    Visibility,
    may_change,
    may_see,
    owners_seen,
    require_changeable,
    require_seen,
)
from tests.server.accounts.people import a_caller, refused

OWN, GROUP, ALL = Visibility
NAMES = st.sampled_from(["ann", "bob", "cy", ""])
VIEWERS = st.builds(a_caller, st.sampled_from(["ann", "bob"]), admin=st.booleans())
PEERS = st.frozensets(NAMES)
WAYS = st.sampled_from(Visibility)


@pytest.mark.parametrize(
    ("visibility", "owner", "seen"),
    [
        (OWN, "ann", True),
        (OWN, "bob", False),
        (OWN, "cy", False),
        (OWN, "", False),
        (GROUP, "ann", True),
        (GROUP, "bob", True),
        (GROUP, "cy", False),
        (GROUP, "", False),
        (ALL, "cy", True),
        (ALL, "", True),
    ],
)
def test_ann_sees_hers_her_groups_or_all(visibility: Visibility, owner: str, seen: bool) -> None:
    """bob shares a group with her, cy none; "" is a job that nobody handed in here."""
    assert may_see(a_caller("ann"), owner, visibility, {"ann", "bob"}) is seen
    assert may_see(a_caller("ann", admin=True), owner, visibility, {"ann", "bob"})


@pytest.mark.parametrize(
    ("caller", "owner", "allowed"),
    [
        (a_caller("ann"), "ann", True),
        (a_caller("ann"), "bob", False),
        (a_caller("ann"), "", False),
        (a_caller(""), "", False),
        (a_caller("ann", admin=True), "bob", True),
        (a_caller("ann", admin=True), "", True),
    ],
)
def test_the_owner_or_an_admin_changes_a_job(caller: Caller, owner: str, allowed: bool) -> None:
    assert may_change(caller, owner) is allowed


@given(VIEWERS, NAMES, WAYS, PEERS)
def test_a_list_shows_exactly_what_can_be_opened(
    viewer: Caller, owner: str, way: Visibility, peers: frozenset[str]
) -> None:
    seen = owners_seen(viewer, way, peers)
    assert may_see(viewer, owner, way, peers) == (seen is None or owner in seen)
    assert seen is None or "" not in seen
    assert (seen is None) == (viewer.admin or way is ALL)


def test_the_ways_are_written_as_settings_are() -> None:
    assert [str(way) for way in Visibility] == ["own", "group", "all"]


@given(VIEWERS, NAMES, WAYS, PEERS)
def test_what_can_be_changed_can_be_seen(
    viewer: Caller, owner: str, way: Visibility, peers: frozenset[str]
) -> None:
    if may_change(viewer, owner):
        assert may_see(viewer, owner, way, peers)


@given(VIEWERS, NAMES, PEERS)
def test_each_way_shows_what_the_one_before_it_shows(
    viewer: Caller, owner: str, peers: frozenset[str]
) -> None:
    own, group, everything = (may_see(viewer, owner, way, peers) for way in (OWN, GROUP, ALL))
    assert own <= group <= everything
    assert may_see(viewer, viewer.name, OWN, peers)


@given(VIEWERS, NAMES, WAYS, PEERS)
def test_what_is_not_seen_is_not_there_and_what_is_seen_is_refused(
    viewer: Caller, owner: str, way: Visibility, peers: frozenset[str]
) -> None:
    if may_change(viewer, owner):
        require_changeable(viewer, owner, "j", way, peers)
    elif may_see(viewer, owner, way, peers):
        require_seen(viewer, owner, "j", way, peers)
        said = f"User {viewer.name} is not allowed to execute job j."
        with refused(403, "ForbiddenUserError", said):
            require_changeable(viewer, owner, "j", way, peers)
    else:
        for question in (require_seen, require_changeable):
            with refused(404, "NoJobError", "Job j is not found."):
                question(viewer, owner, "j", way, peers)
