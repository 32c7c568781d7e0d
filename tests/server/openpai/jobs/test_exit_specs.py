"""What exit codes are said to mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from regatta.api.openpai.retries import run_policy
from regatta.server.openpai.jobs.exit_specs import (
    SPECS,
    VERSION_ONES_OWN,
    in_version_one,
    spec_of,
    task_code_in_version_one,
)
from regatta.server.openpai.jobs.job_shapes import ExitSpec

#: All that the older API may say of an end, by its own numbers.
SPECS_OF_VERSION_ONE = {
    shown.code: shown
    for spec in (*SPECS.values(), *VERSION_ONES_OWN.values())
    if (shown := in_version_one(spec))
}
TYPES = {
    "USER_SUCCESS",
    "USER_STOP",
    "USER_FAILURE",
    "PLATFORM_FAILURE",
    "RESOURCE_ALLOCATION_TIMEOUT",
    "UNKNOWN_FAILURE",
}


@pytest.mark.parametrize(
    ("code", "reason", "phrase", "kind"),
    [
        (0, "", "Succeeded", "USER_SUCCESS"),
        (-210, "", "StopFrameworkRequested", "USER_STOP"),
        (-220, "", "FrameworkAttemptCompletion", "USER_STOP"),
        (137, "", "SIGKILLReceived", "PLATFORM_FAILURE"),
        (137, "OOMKilled", "UserContainerDockerOOMKilled", "USER_FAILURE"),
        (None, "Evicted", "PodEvicted", "PLATFORM_FAILURE"),
        (134, "", "SIGABRTReceived", "UNKNOWN_FAILURE"),
        (139, "", "SIGSEGVReceived", "UNKNOWN_FAILURE"),
        (227, "", "EngineCoreDump", "USER_FAILURE"),
        (None, "NodeLost", "PodNodeLost", "PLATFORM_FAILURE"),
        (None, "Preempting", "PodPreemptedForCriticalPod", "PLATFORM_FAILURE"),
        (-1201, "", "ContainerDockerCreationError", "UNKNOWN_FAILURE"),
        (128, "StartError", "ContainerDockerStartUnknownError", "UNKNOWN_FAILURE"),
        (256, "", "PAIRuntimeExitAbnormally", "PLATFORM_FAILURE"),
    ],
)
def test_a_code_has_its_phrase_and_type(
    code: int | None, reason: str, phrase: str, kind: str
) -> None:
    spec = spec_of(code, reason)
    assert spec is not None
    assert (spec.phrase, spec.type) == (phrase, kind)


@pytest.mark.parametrize("code", [1, 3, 77, -42])
def test_a_code_that_nobody_listed_keeps_its_number_and_is_of_an_unknown_kind(code: int) -> None:
    spec = spec_of(code)
    assert spec is not None
    assert (spec.code, spec.type) == (code, "UNKNOWN_FAILURE")


def test_no_end_has_no_spec() -> None:
    assert spec_of(None) is None


@pytest.mark.parametrize(("protocol", "specs"), [(1, SPECS_OF_VERSION_ONE), (2, SPECS)])
def test_what_is_said_of_retries_is_what_jobs_do(
    protocol: Literal[1, 2], specs: Mapping[int, ExitSpec]
) -> None:
    """A code that ends a job for good is `NEVER_RETRY`, and one that does not is not."""
    never = set(run_policy(3, protocol)["noRetry"]["exitCodes"])
    assert never <= set(specs)
    for code, spec in specs.items():
        if code > 0:
            assert (spec.reaction == "NEVER_RETRY") == (code in never), spec


def test_no_end_is_said_to_be_for_good_and_retried() -> None:
    for spec in (*SPECS.values(), *SPECS_OF_VERSION_ONE.values()):
        for_good = spec.behavior in ("PERMANENT", "NON_TRANSIENT")
        assert for_good == (spec.reaction == "NEVER_RETRY"), spec


def test_every_spec_is_of_a_known_type_and_says_why() -> None:
    for spec in (*SPECS.values(), *SPECS_OF_VERSION_ONE.values()):
        assert spec.type in TYPES
        assert spec.reason.endswith(".")
        assert spec.solution or spec.type in ("USER_SUCCESS", "USER_STOP")


def test_the_first_api_has_other_numbers_for_the_same_ends() -> None:
    for code, old in ((-210, -7351), (-220, -7400), (253, -7103), (251, -7252), (0, 0), (3, 3)):
        shown = in_version_one(spec_of(code))
        assert shown is not None
        assert shown.code == old
    assert in_version_one(None) is None


@pytest.mark.parametrize(
    ("code", "reason", "old", "phrase", "kind"),
    [
        (7, "", 7, "CONTAINER_RUNTIME_UNKNOWN_FAILURE", "UNKNOWN_FAILURE"),
        (139, "", 139, "CONTAINER_KILLED_BY_SIGSEGV", "USER_FAILURE"),
        (193, "", 193, "CONTAINER_DOCKER_RUN_FAILED", "PLATFORM_FAILURE"),
        (196, "", 196, "CONTAINER_OOM_KILLED_BY_DOCKER", "USER_FAILURE"),
        (137, "OOMKilled", 196, "CONTAINER_OOM_KILLED_BY_DOCKER", "USER_FAILURE"),
        (None, "Evicted", -7111, "CONTAINER_NODE_LOST", "PLATFORM_FAILURE"),
        (None, "NodeLost", -7111, "CONTAINER_NODE_LOST", "PLATFORM_FAILURE"),
        (None, "Preempting", -7120, "CONTAINER_PREEMPTED", "PLATFORM_FAILURE"),
        (128, "StartError", 193, "CONTAINER_DOCKER_RUN_FAILED", "PLATFORM_FAILURE"),
    ],
)
def test_the_first_api_has_its_own_phrase_and_judgement(
    code: int | None, reason: str, old: int, phrase: str, kind: str
) -> None:
    shown = in_version_one(spec_of(code, reason))
    assert shown is not None
    assert (shown.code, shown.phrase, shown.type) == (old, phrase, kind)


@pytest.mark.parametrize("code", [-7200, -7251, -7300])
def test_the_first_api_can_say_that_too_much_was_asked_for(code: int) -> None:
    spec = SPECS_OF_VERSION_ONE[code]
    assert (spec.type, spec.reaction) == ("USER_FAILURE", "NEVER_RETRY")


@pytest.mark.parametrize(
    ("code", "old"), [(-210, -7400), (-220, -7400), (0, 0), (3, 3), (None, None)]
)
def test_a_task_of_a_job_that_was_stopped_ended_with_it_to_the_first_api(
    code: int | None, old: int | None
) -> None:
    assert task_code_in_version_one(code) == old
