"""A config that came over HTTP, handed in at the desk, and its warnings as a header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from starlette.requests import Request

from regatta.api.errors import InvalidConfig, InvalidJob, NameTaken
from regatta.api.problems import Problem
from regatta.engines.base import Submission
from regatta.server.accounts.caller import Caller
from regatta.server.openpai_errors import OpenPaiError
from regatta.server.records.job_rows import JobRow
from regatta.server.team.team import Team

WARNING = "X-Warning"
#: A header of more than this is dropped by some clients with all that it came with.
LONGEST_WARNING = 4096


async def submit_config(
    team: Team,
    caller: Caller,
    request: Request,
    *,
    protocol: Literal[1, 2],
    name: str | None = None,
) -> tuple[JobRow, dict[str, str]]:
    """Whatever the body calls itself: v1's JSON is YAML too. `protocol`: the API's own, for what is
    neither. `name`: that the path gives the job. Returns its record and the answer's headers."""
    body = await request.body()
    try:
        text = body.decode()
    except UnicodeDecodeError as odd:
        said = f"byte {odd.start} is not UTF-8; send the config as UTF-8 text"
        raise InvalidConfig([Problem("", said)], protocol) from None
    if not text.strip():
        what = {1: "JSON with jobName and taskRoles", 2: "YAML with protocolVersion: 2"}[protocol]
        said = f"the body is empty; send the job's config, {what}"
        raise InvalidConfig([Problem("", said)], protocol)
    submission = Submission(text=text, name=name)
    try:
        row, accepted = await team.desk.submit(caller, submission)
    except NameTaken as taken:
        raise OpenPaiError(409, "ConflictJobError", str(taken)) from None
    except InvalidConfig:
        raise
    except InvalidJob as odd:
        raise InvalidConfig(list(odd.problems), protocol) from odd
    request.state.job = f"{row.username}~{row.name}"
    return row, warning_header(accepted.warnings)


def warning_header(warnings: Sequence[Problem]) -> dict[str, str]:
    """Headers hold a line of ASCII."""
    if not warnings:
        return {}
    line = "; ".join(" ".join(str(warning).split()) for warning in warnings)
    plain = line.encode("ascii", "backslashreplace").decode()
    short = plain if len(plain) <= LONGEST_WARNING else f"{plain[: LONGEST_WARNING - 3]}..."
    return {WARNING: short}
