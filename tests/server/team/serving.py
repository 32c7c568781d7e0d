"""A team's server as it is: uvicorn on a port of this machine, the local engine, a database, the
recorder, and people whose passwords cost little to check."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from regatta.engines.local.engine import LocalEngine
from regatta.engines.local.home import Home, open_home
from regatta.engines.local.scheduling.machine import Machine
from regatta.server import run
from regatta.server.accounts.administration import COMMAND_LINE, add_user
from regatta.server.accounts.audit import Entry, read_audit
from regatta.server.accounts.passwords import Hashes, Passwords
from regatta.server.accounts.rate_limits import Rate, Rates
from regatta.server.accounts.tokens import Kind, issue
from regatta.server.accounts.user_groups import ensure_groups
from regatta.server.accounts.users import User, get_user
from regatta.server.bounds.connections import Strangers
from regatta.server.openpai_errors import OpenPaiError
from regatta.server.origins import Ours
from regatta.server.records.moments import now_millis
from regatta.server.records.recording.recorder import Recorder
from regatta.server.records.team_database import Database
from regatta.server.team.grounds import MachineGrounds
from regatta.server.team.isolating.isolation import Isolation, IsolationSettings
from regatta.server.team.team import Team
from regatta.server.team.team_app import make_team_app
from regatta.server.team.team_settings import TeamSettings
from tests.doors import eventually
from tests.engines.local.opening import end_everything
from tests.server.accounts.people import CHEAP, PASSWORD

PATIENCE = 60.0
OFF = Rate(0, 1.0)
NO_LIMITS = Rates(requests=OFF, lists=OFF, submits=OFF, sign_in_address=OFF, sign_in_name=OFF)
#: Jobs of tests run what the tests themselves do.
HERE = {"PATH": os.environ["PATH"]}
MACHINE = Machine(cpus=8, memory=16 << 30, gpus=(), pods=110)


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> tuple[int, str]:
        """Of a refusal: what clients look at."""
        return self.status, self.json["code"]


class TeamServer:
    def __init__(self, url: str, team: Team, database: Database, work: Path) -> None:
        self.url, self.team, self.database = url, team, database
        #: Where its jobs work.
        self.work = work
        self._shift = 0
        self._hashes = Hashes(CHEAP)

    def now(self) -> int:
        return now_millis() + self._shift

    def pass_time(self, seconds: float) -> None:
        """For tokens, which look at the server's clock. Limits have their own."""
        self._shift += int(seconds * 1000)

    def add_user(self, name: str, password: str = PASSWORD, *, admin: bool = False) -> User:
        return self.database.run_here(
            add_user, self._hashes, name, password, now_millis(), admin=admin
        )

    def token(self, name: str, kind: Kind = Kind.SIGN_IN) -> str:
        """Of somebody who has signed in; who is not there yet is made, with a password."""
        with suppress(OpenPaiError):
            self.add_user(name)
        user = self.database.read_here(get_user, name)
        return self.database.run_here(issue, user.id, kind, self.now()).value

    def admin_token(self, name: str = "boss") -> str:
        with suppress(OpenPaiError):
            self.add_user(name, admin=True)
        return self.token(name)

    def audited(self, count: int) -> list[Entry]:
        """What requests left in the audit, the newest first; an answer goes out before its entry
        is written, so `count` of them are waited for."""

        def enough() -> list[Entry] | None:
            entries = self.database.read_here(read_audit, limit=1000).entries
            asked = [entry for entry in entries if entry.who != COMMAND_LINE]
            return asked if len(asked) >= count else None

        return eventually(enough, f"{count} entries in the audit")

    def ask(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        text: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """`body`: sent as JSON; `form`: as browsers send one; `text`: as it is."""
        sent: dict[str, str] = {"Authorization": f"Bearer {token}"} if token else {}
        payload = text
        if body is not None:
            sent["Content-Type"], payload = "application/json", json.dumps(body)
        if form is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
            payload = urlencode(form)
        netloc = urlsplit(self.url).netloc
        with closing(http.client.HTTPConnection(netloc, timeout=PATIENCE)) as connection:
            connection.request(method, path, payload, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())


@contextmanager
def a_team_server(
    folder: Path,
    *,
    url: str = "",
    settings: TeamSettings | None = None,
    machine: Machine = MACHINE,
    ours: Ours | None = None,
    behind_proxy: bool = False,
    isolation: IsolationSettings | None = None,
) -> Iterator[TeamServer]:
    """`url`: of the database; else SQLite in `folder`. There are no limits unless `settings` has
    them, and jobs run as the tests do unless `isolation` says otherwise."""
    settings = settings or TeamSettings(rates=NO_LIMITS)
    home = open_home(folder / "home")
    database = Database(url or f"sqlite:///{folder}/team.db")
    database.run_here(ensure_groups, now_millis())
    open_to_all = IsolationSettings("none", work=folder / "work", environment=HERE)
    grounds = MachineGrounds(Isolation(isolation or open_to_all, database, home.path))
    serving = _Serving(
        home, database, settings, machine, ours or Ours(), behind_proxy, folder, grounds
    )
    try:
        with serving.running() as server:
            yield server
    finally:
        end_everything(home)
        database.close()


class _Serving:
    """In a thread, with a loop of its own."""

    def __init__(
        self,
        home: Home,
        database: Database,
        settings: TeamSettings,
        machine: Machine,
        ours: Ours,
        behind_proxy: bool,
        folder: Path,
        grounds: MachineGrounds,
    ) -> None:
        self._grounds = grounds
        self._home, self._database, self._settings = home, database, settings
        self._machine, self._ours, self._behind_proxy = machine, ours, behind_proxy
        self._folder = folder
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._stop: Callable[[], None] = lambda: None
        self._server: TeamServer | None = None

    @contextmanager
    def running(self) -> Iterator[TeamServer]:
        thread = threading.Thread(target=self._run, name="team-server")
        thread.start()
        try:
            assert self._ready.wait(PATIENCE), "the server did not come up"
            if self._failed is not None:
                raise self._failed
            assert self._server is not None
            yield self._server
        finally:
            self._stop()
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the server did not end"

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failed:  # noqa: BLE001  # told where the server was asked for
            self._failed = failed
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as a server has it
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        engine = LocalEngine(self._home, machine=self._machine)
        passwords = Passwords(Hashes(CHEAP))
        team = Team(
            self._database,
            engine,
            "local",
            self._settings,
            self._grounds,
            passwords=passwords,
            now=lambda: self._server.now() if self._server else now_millis(),
        )
        self._server = TeamServer(url, team, self._database, self._folder / "work")
        loop = asyncio.get_running_loop()

        def stop(_: int) -> None:
            server.should_exit = True

        app = make_team_app(
            team,
            self._ours,
            describe=partial(_described, url, self._folder),
            stop=stop,
            behind_proxy=self._behind_proxy,
        )
        server = run._Server(app, Strangers(1024), self._ready.set, None)
        self._stop = lambda: loop.call_soon_threadsafe(app.state.leave)
        recording = asyncio.create_task(Recorder(engine, self._database).run())
        try:
            await server.serve(sockets=[listener])
        finally:
            self._stop = lambda: None
            recording.cancel()
            with suppress(asyncio.CancelledError):
                await recording
            await engine.close()
            team.close()
            listener.close()


def _described(url: str, folder: Path) -> dict[str, Any]:
    return {
        "version": "0",
        "pid": os.getpid(),
        "url": url,
        "home": str(folder),
        "startedAt": 0.0,
        "guarded": False,
    }
