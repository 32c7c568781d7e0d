"""Whatever comes in, the answer is a job or sentences: never a traceback, never a wait."""

from __future__ import annotations

import copy
import difflib
import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regatta.api.checks.suggestions import MOST_GUESSES
from regatta.api.errors import InvalidJob
from regatta.api.job import document
from regatta.api.load import Loaded, load_job, validate_document
from regatta.api.source.limits import MAX_PROBLEMS
from tests.api.builders import a_job, problems_of
from tests.openpai_configs import version_two

HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "two megabytes": ("a: " + "x" * 2_000_000, "the file has 2,000,003 bytes"),
    "a million open brackets": ("[" * 1_000_000, "nested more than 64 levels deep"),
    "a million open braces": ("{" * 1_000_000, "nested more than 64 levels deep"),
    "a list in a list in a list": ("- " * 200_000 + "x", "nested more than 64 levels deep"),
    "nine hundred lists in JSON": (
        '{"value":' + "[" * 900 + "]" * 900 + "}",
        "nested more than 64 levels deep",
    ),
    "nine hundred lists in one of OpenPAI's": (
        '{"protocolVersion": 2, "extras": {"a":' + "[" * 900 + "]" * 900 + "}}",
        "nested more than 64 levels deep",
    ),
    "deep block maps": (
        "".join(" " * i + "a:\n" for i in range(100)),
        "nested more than 64 levels deep",
    ),
    "deep through aliases": (
        "a0: &a0 [[[[[[[[x]]]]]]]]\n"
        + "".join(f"a{i}: &a{i} [[[[[[[[*a{i - 1}]]]]]]]]\n" for i in range(1, 12)),
        "nested more than 64 levels deep",
    ),
    "a hundred thousand values": ("a: [" + "1," * 150_000 + "]", "more than 100,000 values"),
    "a bomb of merge keys": (
        "a: &a {" + ",".join(f"k{i}: 1" for i in range(1000)) + "}\n"
        + "".join(f"b{i}: {{<<: *a}}\n" for i in range(200)),
        "more than 100,000 values",
    ),
    "a merge of itself": ("a: &a\n  <<: *a\n", "stands inside its own anchor"),
    "a merge of a number": ("a:\n  <<: 3\n", "a merge key (<<) takes a map"),
    "a python object": ("!!python/object/new:os.system [echo]", "is not allowed"),
    "a number of five thousand digits": ("a: " + "9" * 5000, "does not fit 64 bits"),
    "a number of a word": ('a: !!int "secret"', "the number does not fit 64 bits"),
    "infinity": ("a: .inf", "put it in quotes"),
    "half a surrogate": ("a: \ud800", "surrogate"),
    "half a surrogate in JSON": ('{"a": "\\ud800"}', "surrogate"),
    "a NUL in JSON": ('{"a": "\\u0000"}', "NUL"),
    "a key twice in JSON": ('{"a": 1,\n"a": 2}', "on lines 1 and 2"),
    "UTF-16": ("a: 1".encode("utf-16"), "not UTF-8"),
    "an escape sequence": ("a: \x1b[31m", "control character"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_a_sentence(text: str | bytes, sentence: str) -> None:
    [problem] = problems_of(text)
    assert sentence in problem.message


@pytest.mark.parametrize("value", ['!!int "hunter2"', "1" * 30, '!!float "hunter2"'])
def test_a_value_that_is_no_number_is_not_repeated(value: str) -> None:
    """It may be a secret."""
    [problem] = problems_of(f"a: {value}")
    assert "put it in quotes" in problem.message
    assert value.split('"')[-2 if '"' in value else 0] not in problem.message


def test_a_thousand_mistakes_are_cut_to_a_readable_number() -> None:
    job = a_job()
    job.container()["env"] = [{"name": "A", "value": 1}] * 1000
    found = problems_of(job.text())
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].message == "and 900 more problems like these"


@pytest.mark.parametrize("where", ["container", "spec", "config"])
def test_what_was_meant_is_guessed_for_as_many_as_are_told(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guess takes long, and a file has room for tens of thousands."""
    unknown = {f"xworker{number}": 1 for number in range(2_000)}
    if where == "config":
        value = {**yaml.safe_load(version_two("job", ["true"])), **unknown}
    else:
        job = a_job()
        (job.container() if where == "container" else job.document["spec"]).update(unknown)
        value = job.document
    guesses: list[object] = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda *_, **__: guesses.append(_) or [])
    with suppress(InvalidJob):
        load_job(json.dumps(value))
    assert MAX_PROBLEMS <= len(guesses) <= MOST_GUESSES


@pytest.mark.parametrize("seconds", [604801.0, 1e308, -1.0, -0.0, 30.0])
def test_a_number_with_a_point_is_no_whole_one(seconds: float) -> None:
    [first, *_] = problems_of(a_job().pod(terminationGracePeriodSeconds=seconds).text())
    assert first.path == "spec.worker.template.spec.terminationGracePeriodSeconds"
    assert first.message == f"found {seconds}; write a whole number"


def test_a_point_is_left_where_a_number_may_have_one() -> None:
    assert problems_of(a_job().with_container(resources={"limits": {"cpu": 2.0}}).text()) == []


def test_a_path_that_is_deeper_than_any_is_refused() -> None:
    mounts = [
        {"name": "v", "mountPath": path} for path in ("/a" * 200, "/a" * 201, "/" + "a" * 4095)
    ]
    job = a_job().pod(volumes=[{"name": "v", "emptyDir": {}}]).with_container(volumeMounts=mounts)
    found = problems_of(job.text())
    assert [problem.path[-22:] for problem in found] == [
        "volumeMounts[1].mountPath"[-22:],
        "volumeMounts[2].mountPath"[-22:],
    ]


LONGEST = 128 * 1024 - 1  # as Linux has it: execve(2), "Limits on size of arguments"


@pytest.mark.parametrize("over", [0, 1])
def test_what_no_program_can_be_given_is_refused_and_a_byte_less_is_not(over: int) -> None:
    job = a_job()
    word = "ü" * ((LONGEST - 3) // 2) + "x" + "x" * over  # bytes count, not letters
    job.container()["env"] = [{"name": "A", "value": word}]
    job.container()["args"] = ["ok", f"{word}A="]
    found = problems_of(job.text())
    places = [problem.path.rpartition("containers[0].")[2] for problem in found]
    assert places == ["env[0].value", "args[1]"] * over
    assert all("131,072 bytes long" in problem.message for problem in found)


def test_a_value_that_is_shown_is_cut() -> None:
    [problem] = problems_of(a_job().spec(intranet="x" * 10_000).text())
    assert len(str(problem)) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)


def judge(given_in: object) -> Loaded | None:
    """The one promise: Loaded or InvalidJob, and something to read in either."""
    try:
        return (
            load_job(given_in) if isinstance(given_in, str | bytes) else validate_document(given_in)
        )
    except InvalidJob as invalid:
        found = invalid.problems
    assert found
    assert all(problem.message and "\n" not in problem.message for problem in found)
    return None


@pytest.mark.parametrize(
    "volumes", [[{"": 1, "\n": 1}], [{"name": "a\nb", "emptyDir": {}}]], ids=["sources", "names"]
)
def test_what_stands_where_a_word_should_does_not_break_the_line(volumes: list[Any]) -> None:
    job = a_job().pod(volumes=volumes)
    job.container()["volumeMounts"] = [{"name": "other", "mountPath": "/x"}]
    assert judge(job.doc()) is None


@given(st.text() | st.binary())
@settings(max_examples=300, deadline=None)
def test_any_text_at_all_is_answered(text: str | bytes) -> None:
    judge(text)


@given(st.text(alphabet=list("abk:-?*&!|>'\"#%@`{}[], \t\n<=0.1~/")))
@settings(max_examples=500, deadline=None)
def test_any_text_that_looks_like_yaml_is_answered(text: str) -> None:
    judge(text)


@given(json_values)
@settings(max_examples=300, deadline=None)
def test_any_json_at_all_is_answered(value: object) -> None:
    judge(value)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += _places(item, (*path, i))
    return found


def _whole_jobs() -> list[dict[str, Any]]:
    """One of each sort, with something in every field that is looked at."""
    full = (
        a_job()
        .with_ps()
        .spec(
            mode="PS",
            elastic=1,
            runPolicy={"backoffLimit": 1, "suspend": False, "restartScope": "Role"},
            schedulingPolicy={"minAvailable": 2, "minResources": {"cpu": "1"}},
        )
    )
    full.pod(
        volumes=[{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        initContainers=[{"name": "i", "image": "x"}],
    )
    full.container().update(
        env=[{"name": "A", "value": "b"}],
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        resources={"limits": {"cpu": 1, "nvidia.com/gpu": 1}, "requests": {"cpu": "500m"}},
        ports=[{"containerPort": 80}],
    )
    full.document["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    task = {"name": "a", "replicas": 1, "completion": {"minFailed": 1}, "ports": [{"label": "x"}]}
    return [full.doc(), a_job().with_tasks(task).doc()]


@pytest.mark.parametrize("job", _whole_jobs(), ids=["ps", "tasks"])
def test_the_jobs_that_are_changed_below_are_good_before(job: dict[str, Any]) -> None:
    assert judge(job) is not None


@pytest.mark.parametrize("job", _whole_jobs(), ids=["ps", "tasks"])
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_job_with_any_value_in_any_place_is_answered(job: dict[str, Any], data: Any) -> None:
    """Two mutations, then: what still loads must also survive the round trip."""
    changed: Any = copy.deepcopy(job)
    for _ in range(2):
        places = [place for place in _places(changed) if place]
        place = data.draw(st.sampled_from(places))
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        if data.draw(st.booleans()) and isinstance(holder, dict):
            holder[data.draw(st.text(max_size=8))] = data.draw(json_values)
        else:
            holder[place[-1]] = data.draw(json_values)
    loaded = judge(changed)
    if loaded is not None:
        assert validate_document(document(loaded.job)).job.spec == loaded.job.spec
