"""What exit codes are said to mean."""

from __future__ import annotations

import pytest

from regatta.api.openpai.retries import run_policy
from regatta.server.openpai.jobs.exit_specs import SPECS, in_version_one, spec_of

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
        (139, "", "SIGSEGVReceived", "UNKNOWN_FAILURE"),
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


def test_what_is_said_of_retries_is_what_jobs_do() -> None:
    """A code that ends a v2 job for good is `NEVER_RETRY`, and one that does not is not."""
    never = set(run_policy(3, 2)["noRetry"]["exitCodes"])
    for code, spec in SPECS.items():
        if code > 0:
            assert (spec.reaction == "NEVER_RETRY") == (code in never), spec


def test_every_spec_is_of_a_known_type_and_says_why() -> None:
    for spec in SPECS.values():
        assert spec.type in TYPES
        assert spec.reason.endswith(".")
        assert spec.solution or spec.type in ("USER_SUCCESS", "USER_STOP")


def test_the_first_api_has_other_numbers_for_the_same_ends() -> None:
    for code, old in ((-210, -7351), (-220, -7400), (0, 0), (3, 3)):
        shown = in_version_one(spec_of(code))
        assert shown is not None
        assert shown.code == old
    assert in_version_one(None) is None
