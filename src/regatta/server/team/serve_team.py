"""The process of a team's server: its database is its own, then the engine is opened, what the
server before left half done is settled, and only then is anybody let in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regatta.api.errors import RecordsAway
from regatta.daemon.server_files import Address
from regatta.engines.base import Engine
from regatta.server.accounts.user_groups import ensure_groups
from regatta.server.accounts.users import list_users
from regatta.server.origins import Ours
from regatta.server.records.away import at_a_start
from regatta.server.records.recording.recorder import Recorder
from regatta.server.records.single_server import SingleServer
from regatta.server.records.team_database import Database
from regatta.server.run import Process, Served, run
from regatta.server.team.forgetting import keep_house
from regatta.server.team.grounds import Grounds
from regatta.server.team.strange_records import about_strange_records
from regatta.server.team.team import Team
from regatta.server.team.team_app import make_team_app
from regatta.server.team.team_settings import TeamSettings
from regatta.server.transport_rules import Transport

log = logging.getLogger(__name__)

#: The database is another server's now.
LOST_DATABASE = 74
ANOTHER_DATABASE = (
    "accounts and records are kept in %s from now on, and were in %s until now: whoever had an "
    "account there has none here unless it was copied, and the jobs of before are not on record. "
    "To go on with that one, stop this server and name it with --database"
)
#: Seconds before what broke in the background is begun again.
AGAIN_SECONDS = 5.0
#: That submits which are underway have when the server leaves.
FINISH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Opening:
    """What a team's server is opened with."""

    folder: Path
    database_url: str
    settings: TeamSettings
    engine_name: str
    open_engine: Callable[[Database], tuple[Engine, Grounds]]
    transport: Transport


def serve_team(
    opening: Opening,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[Address, bool], None] | None = None,
) -> int:
    """Until told to stop; the exit status. `ready` is told once requests are answered, and whether
    there are accounts. Raises BadSetting, RecordsInUse, RecordsAway and what an engine raises."""
    has_accounts = False

    async def open_served(process: Process) -> Served:
        nonlocal has_accounts
        process.files.become_team()
        kept_in = process.files.team_database
        try:
            database = await asyncio.to_thread(Database, opening.database_url, kept_in)
        except RecordsAway as away:
            raise at_a_start(away) from None
        held = SingleServer(database.address)
        try:
            await asyncio.to_thread(held.take)
            if kept_in not in ("", str(database.address)):
                log.warning(ANOTHER_DATABASE, database.address, kept_in)
            process.files.note_team_database(str(database.address))
            await database.run(ensure_groups, 0)
            has_accounts = bool(await database.read(list_users))
            engine, grounds = opening.open_engine(database)
        except BaseException as why:
            held.release()
            database.close()
            if isinstance(why, RecordsAway):
                raise at_a_start(why) from None
            raise
        folder = str(opening.folder)
        if said := await about_strange_records(database, engine, opening.engine_name, folder):
            log.warning("%s", said)
        team = Team(database, engine, opening.engine_name, opening.settings, grounds)
        await team.desk.loose_ends.settle_at_a_start()
        await grounds.clear_previews()
        ours = Ours(
            secure=opening.transport.secure,
            names=frozenset(process.hosts),
            any_address=process.any_address,
            public=frozenset(opening.settings.public_urls),
        )
        app = make_team_app(
            team,
            ours,
            describe=lambda: {**process.describe(), "home": ""},
            stop=process.stop,
            behind_proxy=opening.transport.behind_proxy,
        )

        def leave(why: str) -> None:
            log.error("leaving: %s", why)
            app.state.leave(LOST_DATABASE)

        recorder = Recorder(engine, database, engine_name=opening.engine_name)
        background = [
            asyncio.create_task(_for_ever("recording", recorder.run)),
            asyncio.create_task(_for_ever("cleaning up", lambda: keep_house(team))),
            asyncio.create_task(_for_ever("finishing", team.desk.loose_ends.tie_up)),
            asyncio.create_task(held.keep(leave)),
        ]

        async def close() -> None:
            await team.desk.finish(FINISH_SECONDS)
            for task in background:
                task.cancel()
            for task in background:
                with suppress(asyncio.CancelledError):
                    await task
            await engine.close()
            team.close()
            held.release()
            database.close()

        return Served(app, close)

    def announced(address: Address) -> None:
        if ready is not None:
            ready(address, has_accounts)

    return run(
        opening.folder,
        open_served,
        host=host,
        port=port,
        ready=announced,
        tls=opening.transport.tls,
        with_token=False,
    )


async def _for_ever(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """A mistake of ours in the background must not end what it does until the next start."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("%s broke; it begins again in %g s", what, AGAIN_SECONDS)
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # a group tells of its mistake instead
                raise asyncio.CancelledError from None
        await asyncio.sleep(AGAIN_SECONDS)
