"""Refusals as OpenPAI's clients read them: `{code, message}`, whatever went wrong.

What our own parts say of jobs is put into OpenPAI's codes here; the sentence stays theirs, since
people read that one, but where a client's own tests compare the text.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from regatta.api.errors import (
    ForeignHost,
    InvalidConfig,
    InvalidJob,
    JobIsLive,
    JobNotFound,
    NameTaken,
    NeverFits,
    NoRecord,
    NotAllowed,
    NotPossible,
    PreflightFailed,
    RecordsAway,
    RegattaError,
    Unauthorized,
)
from regatta.api.problems import how_many
from regatta.server.openpai_errors import (
    ADMINS_ONLY,
    GUEST,
    INVALID_TOKEN,
    NO_APPLICATIONS,
    OpenPaiError,
)
from regatta.server.responses import UNEXPECTED, answer, refusal, retry_header

#: What OpenPAI's routes are under, once the gate has removed `/rest-server`.
PREFIX = "/api"

#: What it calls what it has no name for.
UNKNOWN = "UnknownError"
#: Our kinds, in its words: code and status.
_CODES: Mapping[type[RegattaError], tuple[str, int]] = {
    NameTaken: ("ConflictJobError", 409),
    JobIsLive: ("ConflictJobError", 409),
    NoRecord: ("NoJobError", 404),
    JobNotFound: ("NoJobError", 404),
    NeverFits: ("InvalidParametersError", 400),
    PreflightFailed: ("InvalidParametersError", 400),
    InvalidJob: ("InvalidParametersError", 400),
    NotPossible: ("BadConfigurationError", 409),
    ForeignHost: ("ForbiddenUserError", 403),
}


#: Its refusals in our words, by status.
_OURS = {401: Unauthorized.code, 403: NotAllowed.code, 404: JobNotFound.code}


#: And its sentences, which say nothing of what to do.
_IN_OUR_WORDS = {
    GUEST: (
        "nobody is signed in: send `Authorization: Bearer TOKEN` with a token of yours. "
        "`regatta login URL` signs you in and sends it from then on; other clients get one from "
        "`POST /api/v2/authn/basic/login` with username and password."
    ),
    INVALID_TOKEN: (
        "this token is not good here: it was revoked, has expired, or is another server's. Sign in "
        "again: `regatta login URL`, or `POST /api/v2/authn/basic/login`."
    ),
    ADMINS_ONLY: (
        "this is for admins, and your account is none; ask an admin to do it, or to make your "
        "account one. `regatta whoami` says who you are."
    ),
    NO_APPLICATIONS: (
        "this was asked with an application's token, which is good for jobs alone; sign in as "
        "yourself (`regatta login URL`, or `POST /api/v2/authn/basic/login`) and use that token."
    ),
}


class OpenPaiRefusal(msgspec.Struct, frozen=True):
    code: str
    message: str


def is_openpai_path(path: str) -> bool:
    return path == PREFIX or path.startswith(PREFIX + "/")


def openpai_refusal(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    return answer(OpenPaiRefusal(code, message), status, headers)


def refused(path: str, error: RegattaError) -> Response:
    """In the words of whoever asked: by path."""
    if not is_openpai_path(path):
        said = how_many(error.problems) if isinstance(error, InvalidJob) else str(error)
        code = error.code
        if isinstance(error, OpenPaiError):  # our clients know our own kinds
            code = _OURS.get(error.status, code)
            said = _IN_OUR_WORDS.get(said, said)
        response = refusal(error.status, code, said, error.problems)
    else:
        code, status = in_openpai_words(error)
        response = openpai_refusal(status, code, whole_message(error))
    response.headers.update(retry_header(error))
    return response


def told_code(response: Response) -> str:
    """Of a refusal that goes out: the audit has what the client got."""
    return msgspec.json.decode(response.body, type=OpenPaiRefusal).code


def code_of_unexpected(path: str) -> str:
    """What a mistake of the server's own is called there."""
    return UNKNOWN if is_openpai_path(path) else UNEXPECTED


def for_strangers(error: RegattaError) -> RegattaError:
    """What somebody may be told who is not known: nothing of the server's own places."""
    if isinstance(error, RecordsAway):
        return RecordsAway("the team's database does not answer just now; try again in a moment")
    return error


def in_openpai_words(error: RegattaError) -> tuple[str, int]:
    if isinstance(error, OpenPaiError):
        return error.code, error.status
    if isinstance(error, InvalidConfig):
        return error.openpai_code, 400
    for kind in type(error).__mro__:
        if kind in _CODES:
            return _CODES[kind]
    return (UNKNOWN if error.status >= 500 else error.code), error.status


def whole_message(error: RegattaError) -> str:
    """With every problem: there is no other field for them."""
    if isinstance(error, InvalidJob):  # its text is its problems
        return str(error)
    return "\n".join([str(error), *map(str, error.problems)])
