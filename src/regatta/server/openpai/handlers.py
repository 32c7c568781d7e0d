"""Whatever goes wrong while a request is worked on becomes an answer in the words of its asker:
OpenPAI's under `/api`, ours elsewhere."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from regatta.api.errors import InvalidJob, RegattaError
from regatta.server import responses
from regatta.server.openpai.openpai_refusals import (
    UNKNOWN,
    for_strangers,
    is_openpai_path,
    openpai_refusal,
    refused,
    told_code,
)


def install(app: FastAPI) -> None:
    """Instead of `responses.install`."""
    responses.install(app)
    plain = dict(app.exception_handlers)

    def theirs(kind: type[Exception]) -> None:
        ours = plain[kind]

        async def handle(request: Request, error: Exception) -> Response:
            why = error.__cause__
            if isinstance(error, HTTPException) and isinstance(why, RegattaError):
                return _refused(request, why)  # FastAPI was reading a body
            said = ours(request, error)
            response: Response = await said if hasattr(said, "__await__") else said
            if is_openpai_path(request.url.path):
                response = _in_their_words(request, error, response.status_code)
            request.state.refused = told_code(response)
            return response

        app.add_exception_handler(kind, handle)

    for kind in (RequestValidationError, HTTPException, Exception):
        theirs(kind)
    app.add_exception_handler(RegattaError, _refused)
    app.exception_handlers.pop(InvalidJob, None)  # it is one of those


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegattaError)
    if not hasattr(request.state, "caller"):
        error = for_strangers(error)
    response = refused(request.url.path, error)
    request.state.refused = told_code(response)
    return response


def _in_their_words(request: Request, error: Exception, status: int) -> Response:
    if isinstance(error, RequestValidationError):
        found = "; ".join(f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in error.errors())
        return openpai_refusal(400, "InvalidParametersError", found)
    if isinstance(error, HTTPException):
        if status == 404:
            return openpai_refusal(404, "NoApiError", f"API {request.url.path} is not found.")
        if status == 405:
            allowed = ", ".join(responses.methods_of(request))
            said = f"{request.method} means nothing at {request.url.path}; there is {allowed}"
            return openpai_refusal(405, "NoApiError", said, {"Allow": allowed})
        return openpai_refusal(status, "InvalidParametersError", str(error.detail))
    return openpai_refusal(
        500, UNKNOWN, "the server met something unexpected; its log has the details"
    )
