"""The query of OpenPAI's job lists, read into the records' own. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from regatta.server.openpai_errors import invalid_parameters
from regatta.server.openpai_states import State
from regatta.server.records.job_lists import JobFilter, Order, SortBy

DEFAULT_LIMIT, LARGEST_LIMIT = 5000, 50_000
#: No name is as long, and databases bound what they search for.
LONGEST_KEYWORD = 1000
#: Of all jobs that a database could hold.
LARGEST_OFFSET = 2**31 - 1


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    wanted: JobFilter
    order: Order
    offset: int
    limit: int
    with_total_count: bool


def read_list_query(said: Mapping[str, str]) -> ListQuery:
    """What is not known is left alone, as OpenPAI does. Raises OpenPaiError (400)."""
    states = _states(said)
    wanted = JobFilter(
        usernames=_words(said, "username"),
        virtual_clusters=_words(said, "vc"),
        states=states,
        priorities=_words(said, "jobPriority"),
        keyword=_keyword(said.get("keyword", "")),
        tags_contain=_words(said, "tagsContain") or (),
        tags_not_contain=_words(said, "tagsNotContain") or (),
    )
    return ListQuery(
        wanted=wanted,
        order=_order(said.get("order", "")),
        offset=_number(said, "offset", 0, LARGEST_OFFSET),
        limit=_number(said, "limit", DEFAULT_LIMIT, LARGEST_LIMIT),
        with_total_count=said.get("withTotalCount", "").lower() == "true",
    )


def _words(said: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    """Several are separated by commas; an empty one is as none."""
    words = tuple(filter(None, (word.strip(" ") for word in said.get(name, "").split(","))))
    return words or None


def _keyword(text: str) -> str:
    if len(text) > LONGEST_KEYWORD:
        raise invalid_parameters(
            f"keyword has {len(text)} characters, and {LONGEST_KEYWORD} is the most"
        )
    return text


def _states(said: Mapping[str, str]) -> tuple[str, ...] | None:
    words = _words(said, "state")
    if words is None:
        return None
    known = [state.value for state in State]
    for word in words:
        if word.upper() not in known:
            raise invalid_parameters(f"state is {word[:40]!r}; write one of {', '.join(known)}")
    return tuple(word.upper() for word in words)


def _number(said: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = said.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise invalid_parameters(f"{name} is {text[:40]!r}; write a whole number from 0 to {most}")
    return int(text)


def _order(text: str) -> Order:
    if not text:
        return Order()
    field, _, direction = text.partition(",")
    upper = direction.strip().upper() or "ASC"
    known = [by.value for by in SortBy]
    if field.strip() not in known or upper not in ("ASC", "DESC"):
        raise invalid_parameters(
            f"order is {text[:80]!r}; write <field>,ASC or <field>,DESC with one of "
            f"{', '.join(known)}"
        )
    return Order(SortBy(field.strip()), descending=upper == "DESC")
