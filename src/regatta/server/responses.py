"""How answers and refusals look: JSON, and `{code, message, problems}` for every error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from regatta.api.errors import InvalidJob, RegattaError
from regatta.api.job import Job, document
from regatta.api.problems import Problem, how_many
from regatta.server.unreadable import about_body, not_json, problems_of

log = logging.getLogger(__name__)

#: The code of a mistake of the server's own.
UNEXPECTED = "InternalError"
#: Of a list, so much at least goes out at once.
PART = 32 * 1024
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


class Refusal(msgspec.Struct, frozen=True):
    code: str
    message: str
    problems: tuple[Problem, ...] = ()


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


async def answer_many(
    make: Callable[[], Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """With what may be thousands of things: `make` and what writes it down run in a thread, so that
    others are answered meanwhile."""
    return await asyncio.to_thread(lambda: answer(make(), status, headers))


def answer_job(job: Job) -> Response:
    return answer(document(job))


async def items(values: list[Any]) -> Response:
    """`values` is used up: what is written down is not held as well."""
    return await asyncio.to_thread(lambda: Parts(_written(values)))


def _written(values: list[Any]) -> list[bytes]:
    parts, part, comma = [], bytearray(b'{"items":['), b""
    values.reverse()
    while values:
        value = values.pop()
        part += comma + msgspec.json.encode(document(value) if isinstance(value, Job) else value)
        comma = b","
        if len(part) >= PART:
            parts.append(bytes(part))
            part.clear()
    parts.append(bytes(part) + b"]}")
    return parts


class Parts(Response):
    """JSON that goes out in the parts it was made of: put together it would be there twice."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts
        size = {"Content-Length": str(sum(map(len, parts)))}
        super().__init__(None, 200, size, "application/json")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        self._parts.reverse()
        while self._parts:
            part = self._parts.pop()
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def refusal(status: int, code: str, message: str, problems: Sequence[Problem] = ()) -> Response:
    return answer(Refusal(code, message, tuple(problems)), status)


def retry_header(error: RegattaError) -> dict[str, str]:
    return {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}


def install(app: FastAPI) -> None:
    """Every way a request can fail becomes one shape."""
    app.add_exception_handler(RegattaError, _engine_error)
    app.add_exception_handler(InvalidJob, _invalid_job)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _broken)


def _engine_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RegattaError)
    response = refusal(error.status, error.code, str(error), error.problems)
    response.headers.update(retry_header(error))
    return response


def _invalid_job(_: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidJob)
    return refusal(error.status, error.code, how_many(error.problems), error.problems)


def _bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
        said = "the body is to be JSON; send the header `Content-Type: application/json` with it"
        return refusal(400, "BadRequest", said)
    if said_of_json := not_json(error.errors()):
        return refusal(400, "BadRequest", said_of_json)
    read_as = request.scope["route"].body_field
    problems = problems_of(error.errors(), read_as and read_as.field_info.annotation)
    return refusal(400, "BadRequest", "the request could not be read", problems)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, RegattaError):  # so FastAPI tells what a body's reader raised
        return _engine_error(request, error.__cause__)
    if error.status_code == 404:
        message = f"there is no {request.url.path} here; the API is under /regatta/v1"
        return refusal(404, "NoSuchPath", message)
    if error.status_code == 405:
        allowed = ", ".join(methods_of(request))
        message = f"{request.method} means nothing at {request.url.path}; there is {allowed}"
        return answer(Refusal("NoSuchMethod", message), 405, {"Allow": allowed})
    if error.status_code == 400 and error.__cause__ is not None:  # what its reader raised
        return refusal(400, "BadRequest", about_body(error.__cause__))
    code = "TooLarge" if error.status_code == 413 else "BadRequest"
    return refusal(error.status_code, code, str(error.detail))


def methods_of(request: Request) -> list[str]:
    """What may be asked of this path, as `openapi.json` has it: Starlette tells the methods of one
    route, and a path has several. Where a path is a route's own and also fits into another's
    braces, its own counts."""
    described: dict[str, Any] = request.app.openapi()["paths"]
    parts = request.scope["path"].split("/")
    fitting = [path for path in described if _fits(path.split("/"), parts)]
    if not fitting:  # of the description itself, which it does not describe
        return ["GET"]
    own = min(fitting, key=lambda path: path.count("{"))
    return [method for method in METHODS if method.lower() in described[own]]


def _fits(template: list[str], parts: list[str]) -> bool:
    return len(template) == len(parts) and all(
        wanted == part or (wanted.startswith("{") and part)
        for wanted, part in zip(template, parts, strict=True)
    )


def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(
        500,
        UNEXPECTED,
        f"the server met something unexpected ({type(error).__name__}: {error}); "
        "its log has the details (`regatta server status` names the file)",
    )
