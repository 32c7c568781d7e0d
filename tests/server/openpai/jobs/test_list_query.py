"""The query of job lists."""

from __future__ import annotations

import pytest

from regatta.server.openpai.jobs.list_query import read_list_query
from regatta.server.records.job_lists import Order, SortBy
from tests.server.accounts.people import refused


def test_nothing_asked_for_is_the_newest_five_thousand() -> None:
    query = read_list_query({})
    assert (query.offset, query.limit, query.order) == (0, 5000, Order())
    assert not query.with_total_count
    assert query.wanted.usernames is None
    assert query.wanted.tags_contain == ()


def test_several_words_have_commas_between_them() -> None:
    query = read_list_query(
        {
            "username": "ann,bob",
            "vc": "default",
            "state": "waiting,RUNNING",
            "jobPriority": "prod",
            "tagsContain": "a, b",
            "tagsNotContain": "c",
            "keyword": "a,b",
            "withTotalCount": "true",
        }
    )
    wanted = query.wanted
    assert wanted.usernames == ("ann", "bob")
    assert wanted.states == ("WAITING", "RUNNING")
    assert (wanted.virtual_clusters, wanted.priorities) == (("default",), ("prod",))
    assert (wanted.tags_contain, wanted.tags_not_contain) == (("a", "b"), ("c",))
    assert wanted.keyword == "a,b"
    assert query.with_total_count


@pytest.mark.parametrize("by", list(SortBy))
def test_every_field_sorts_both_ways(by: SortBy) -> None:
    assert read_list_query({"order": f"{by},ASC"}).order == Order(by, descending=False)
    assert read_list_query({"order": f"{by},DESC"}).order == Order(by, descending=True)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", "50001", "from 0 to 50000"),
        ("limit", "-1", "limit is '-1'"),
        ("limit", "many", "whole number"),
        ("offset", "9" * 30, "offset is"),
        ("offset", "\u0663", "whole number"),
        ("keyword", "a" * 60_000, "keyword has 60000 characters, and 1000 is the most"),
        ("order", "age,ASC", "jobName, submissionTime"),
        ("order", "jobName,UP", "<field>,ASC or <field>,DESC"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: str, said: str) -> None:
    with refused(400, "InvalidParametersError", said):
        read_list_query({name: value})


def test_the_largest_limit_is_taken() -> None:
    assert read_list_query({"limit": "50000"}).limit == 50_000


def test_a_state_that_there_is_none_of_is_refused_with_those_there_are() -> None:
    known = "state is 'BOGUS'; write one of WAITING, RUNNING, STOPPING"
    with refused(400, "InvalidParametersError", known):
        read_list_query({"state": "RUNNING,BOGUS"})


def test_what_is_no_space_is_a_word() -> None:
    assert read_list_query({"username": "\x1f, ,"}).wanted.usernames == ("\x1f",)
