"""A config that came over HTTP, handed in at the desk, and its warnings as a header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from starlette.requests import Request

from regatta.api.errors import InvalidConfig, InvalidJob, NameTaken, NeverFits
from regatta.api.load import Loaded
from regatta.api.problems import Problem
from regatta.engines.base import Submission
from regatta.server.accounts.caller import Caller
from regatta.server.openpai.jobs.telling.author_names import AuthorNames
from regatta.server.openpai.whole_body import whole_body
from regatta.server.openpai_errors import (
    NoVirtualCluster,
    OpenPaiError,
    no_storage,
    no_virtual_cluster,
)
from regatta.server.records.job_rows import JobRow
from regatta.server.team.team import Team

WARNING = "X-Warning"
#: A header of more than this is dropped by some clients with all that it came with.
LONGEST_WARNING = 4096
_PLUGINS, _OLD_PLUGIN = "com.microsoft.pai.runtimeplugin", "teamwise_storage"


class Read:
    """What a config turned out to be, once the desk has read it."""

    def __init__(self) -> None:
        self._loaded: Loaded | None = None

    def look(self, loaded: Loaded) -> None:
        """Raises OpenPaiError (404)."""
        self._loaded = loaded
        if loaded.config is not None and loaded.config.protocol == 2:
            for name in storages_named(loaded.config.extras):
                raise no_storage(name[:255])

    def told(self, text: str) -> str:
        """The engine's names in it as the author's."""
        if self._loaded is None or self._loaded.config is None:
            return text
        job, config = self._loaded.job, self._loaded.config
        names = AuthorNames(engine_name=job.name, name=config.name, roles=config.roles)
        return names.told(text)


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
    body = await whole_body(request)
    try:
        text = body.decode()
    except UnicodeDecodeError as odd:
        said = f"byte {odd.start} is not UTF-8; send the config as UTF-8 text"
        raise InvalidConfig([Problem("", said)], protocol) from None
    if not text.strip():
        what = {1: "JSON with jobName and taskRoles", 2: "YAML with protocolVersion: 2"}[protocol]
        said = f"the body is empty; send the job's config, {what}"
        raise InvalidConfig([Problem("", said)], protocol)
    submission, read = Submission(text=text, name=name), Read()
    try:
        row, accepted = await team.desk.submit(caller, submission, look=read.look)
    except NameTaken as taken:
        raise OpenPaiError(409, "ConflictJobError", str(taken)) from None
    except NoVirtualCluster as none:
        status = 404 if protocol == 1 else 400
        raise no_virtual_cluster(none.name, status, instead=none.instead) from None
    except InvalidConfig:
        raise
    except InvalidJob as odd:
        raise InvalidConfig(list(odd.problems), protocol) from odd
    except NeverFits as too_large:
        raise NeverFits(read.told(str(too_large)), too_large.problems) from None
    request.state.job = f"{row.username}~{row.name}"
    return row, warning_header(accepted.warnings)


def warning_header(warnings: Sequence[Problem]) -> dict[str, str]:
    """Headers hold a line of ASCII."""
    if not warnings:
        return {}
    said = dict.fromkeys(" ".join(str(warning).split()) for warning in warnings)
    line = "; ".join(said)  # each once: of several roles it may be the same
    plain = line.encode("ascii", "backslashreplace").decode()
    short = plain if len(plain) <= LONGEST_WARNING else f"{plain[: LONGEST_WARNING - 3]}..."
    return {WARNING: short}


def storages_named(extras: dict[str, Any]) -> Iterator[str]:
    """Those that a v2 config wants mounted, under `storages` and in the plugin that was there
    before it. An empty list names none: it means what its author is given without asking."""
    for item in _listed(extras.get("storages")):
        yield from _names([item.get("name")] if isinstance(item, dict) else [])
    for plugin in _listed(extras.get(_PLUGINS)):
        if isinstance(plugin, dict) and plugin.get("plugin") == _OLD_PLUGIN:
            parameters = plugin.get("parameters")
            found = parameters.get("storageConfigNames") if isinstance(parameters, dict) else None
            yield from _names(_listed(found))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(values: list[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str) and value)
