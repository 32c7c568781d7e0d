"""Where an account's jobs are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regatta.server.team.account_namespaces import account_namespace

NAMES = st.text("abcXYZ019_.-", min_size=1, max_size=64)


@pytest.mark.parametrize(
    ("user", "namespace"),
    [("ann", "user-ann"), ("Ann", "user-ann"), ("kube-system", "user-kube-system")],
)
def test_a_plain_name_is_seen_in_its_namespace(user: str, namespace: str) -> None:
    assert account_namespace(user) == namespace


@given(NAMES, NAMES)
def test_accounts_that_differ_by_more_than_case_never_share_one(one: str, other: str) -> None:
    same = one.lower() == other.lower()
    assert (account_namespace(one) == account_namespace(other)) is same


def test_nobody_finds_a_name_that_leads_into_anothers_namespace() -> None:
    """These two share the first six digits of their hashes, which took a minute to find."""
    assert account_namespace("mary.smith") != account_namespace("mary_-___._.--_...-_smith")


@given(NAMES)
def test_every_name_makes_one_that_a_cluster_takes(user: str) -> None:
    namespace = account_namespace(user)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", namespace)
    assert len(namespace) <= 63
