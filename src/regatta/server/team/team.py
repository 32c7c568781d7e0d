"""What the routes of a team's server share: the database, the engine, and who may do how much."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from regatta.engines.base import Engine
from regatta.server.accounts.passwords import Passwords
from regatta.server.accounts.rate_limits import RequestLimits
from regatta.server.accounts.reception import Reception
from regatta.server.accounts.sign_in_guard import SignInGuard
from regatta.server.records.moments import now_millis
from regatta.server.records.team_database import Database
from regatta.server.team.desk import Desk
from regatta.server.team.grounds import Grounds
from regatta.server.team.team_settings import TeamSettings


class Team:
    def __init__(
        self,
        database: Database,
        engine: Engine,
        engine_name: str,
        settings: TeamSettings,
        grounds: Grounds,
        *,
        passwords: Passwords | None = None,
        now: Callable[[], int] = now_millis,
    ) -> None:
        """`now`: milliseconds since 1970."""
        self.database, self.settings, self.now = database, settings, now
        self.engine, self.engine_name = engine, engine_name
        self.limits = RequestLimits(settings.rates)
        self._passwords = passwords or Passwords()
        guard = SignInGuard(settings.rates)
        self.reception = Reception(
            database,
            self._passwords,
            guard,
            now,
            tells_unknown_users=settings.tells_unknown_users,
        )
        self.desk = Desk(database, engine, engine_name, settings, grounds, self.limits, now)
        #: Signs links that are good for a moment; those of the server before this one are not.
        self.link_key = secrets.token_bytes(32)

    def close(self) -> None:
        self._passwords.close()
