"""Whatever is in a config: it becomes a PaddleJob, or is refused with sentences at its fields."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regatta.api.errors import InvalidConfig, InvalidJob
from regatta.api.load import validate_document
from regatta.api.openpai.conversion import Converted, convert
from regatta.api.openpai.shown_as_v2 import as_v2
from regatta.api.problems import Problem
from tests.api.openpai.configs import PLACE, v2
from tests.api.openpai.test_conversion_files import GOOD, read

CONFIGS = [read(path) for path in GOOD]
KEYS = sorted({key for config in CONFIGS for key in config} | {"name", "auth", "callbacks", "uri"})
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**6, 2**40, 2**70, 0.5, float("nan")]),
    st.text(max_size=5),
    st.sampled_from(["******", "<% $secrets.x %>", "<% $parameters.x %>", "a b", "\0", "\ud800"]),
    st.sampled_from(["image", "job", "data", "cmd", "dockerimage", "taskStarts"]),
)
VALUES = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=4)), inner, max_size=3),
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a config, however deep."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    config = copy.deepcopy(draw(st.sampled_from(CONFIGS)))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(config)[1:]))
        holder: Any = config
        for step in way:
            holder = holder[step]
        if isinstance(holder, dict) and draw(st.booleans()):
            holder.pop(last)
            holder[draw(st.one_of(st.just(last), st.sampled_from(KEYS)))] = draw(VALUES)
        else:
            holder[last] = draw(VALUES)
    return config


@given(broken())
@settings(max_examples=400, deadline=None)
def test_a_broken_config_is_converted_or_refused_in_words(config: dict[str, Any]) -> None:
    made, problems = outcome(config)
    if made is None:
        assert problems
        assert all(problem.message and problem.severity == "error" for problem in problems)
        return
    if made.protocol == 1:
        as_v2(made.config)
    # What is left to the job's own rules is told at a field of the config.
    told = [made.told(problem).path for problem in problems]
    assert not [path for path in told if path.startswith(("spec.", "metadata."))]


def outcome(config: dict[str, Any]) -> tuple[Converted | None, Sequence[Problem]]:
    """What it becomes, if anything, and what is wrong with that."""
    try:
        made = convert(config, PLACE)
    except InvalidConfig as invalid:
        return None, invalid.problems
    try:
        validate_document(made.document)
    except InvalidJob as invalid:
        return made, invalid.problems
    return made, ()


def test_a_short_text_that_refers_to_a_long_one_often_is_refused_before_it_is_made() -> None:
    command = "echo " + "<% $parameters.p %>" * 1000
    config = v2(*([command] * 1000), parameters={"p": "x" * 100_000})
    with pytest.raises(InvalidConfig) as caught:
        convert(config, PLACE)
    assert [problem.path for problem in caught.value.problems] == ["taskRoles.main.commands"]


STRANGE: dict[str, dict[str, Any]] = {
    "who one is to no registry": v2(
        prerequisites=[
            {"type": "script", "name": "s", "uri": "u", "auth": {"username": "<% $secrets.no %>"}},
        ]
    ),
    "a place in a list that no list has": v2(
        f"echo <% $parameters.l[{'9' * 5000}] %>", parameters={"l": [1]}
    ),
}


@pytest.mark.parametrize("config", STRANGE.values(), ids=STRANGE)
def test_what_is_odd_is_no_mistake_of_ours(config: dict[str, Any]) -> None:
    assert convert(config, PLACE).document


def test_a_chain_of_prerequisites_is_as_long_as_it_is() -> None:
    chain = [
        {"type": "data", "name": f"p{i}", "uri": ["u"], "require": [f"p{i + 1}"]}
        for i in range(2000)
    ]
    last = {"type": "data", "name": "p2000", "uri": ["u"]}
    config = v2(prerequisites=[*chain, last], role={"prerequisites": ["p0"]})
    convert(config, PLACE)


def test_credentials_of_the_wrong_shape_are_not_shown() -> None:
    with pytest.raises(InvalidConfig) as caught:
        convert(v2(image={"auth": "bob:planted"}), PLACE)
    assert "planted" not in str(caught.value)
    assert "found text; write a map" in str(caught.value)
