from __future__ import annotations

import pytest

from regatta.api.errors import RegattaError
from regatta.server import openpai_errors as errors
from regatta.server.openpai_errors import OpenPaiError, TooManyRequests


@pytest.mark.parametrize(
    ("error", "status", "code", "message"),
    [
        (
            errors.guest(),
            401,
            "UnauthorizedUserError",
            "Guest is not allowed to do this operation.",
        ),
        (errors.invalid_token(), 401, "UnauthorizedUserError", "Your token is invalid."),
        (errors.no_user("x"), 404, "NoUserError", "User x is not found."),
        (errors.no_user("x", 400), 400, "NoUserError", "User x is not found."),
        (errors.incorrect_password(), 400, "IncorrectPasswordError", "Password is incorrect."),
        (errors.user_exists("x"), 409, "ConflictUserError", "User name x already exists."),
        (errors.remove_admin("x"), 403, "RemoveAdminError", "Admin x is not allowed to remove."),
        (errors.no_group("x"), 404, "NoGroupError", "Group x is not found."),
        (errors.no_job("x"), 404, "NoJobError", "Job x is not found."),
    ],
)
def test_a_refusal_is_in_openpais_words(
    error: OpenPaiError, status: int, code: str, message: str
) -> None:
    assert (error.status, error.code, str(error)) == (status, code, message)
    assert isinstance(error, RegattaError)


@pytest.mark.parametrize(
    ("seconds", "after", "said"),
    [(0.001, 1, "1 second"), (1, 1, "1 second"), (1.01, 2, "2 seconds"), (30, 30, "30 seconds")],
)
def test_who_is_told_to_wait_is_told_whole_seconds(seconds: float, after: int, said: str) -> None:
    error = TooManyRequests("too often", seconds)
    assert (error.status, error.retry_after) == (429, after)
    assert str(error) == f"too often; try again in {said}"


def test_one_refusal_does_not_change_the_next() -> None:
    errors.guest()
    assert OpenPaiError.code == RegattaError.code
    assert OpenPaiError.status == RegattaError.status
