"""Every operation of a team's server.

One that is not here fails the tests, as does one here that the server does not have. One that can
be asked for in several ways has a line for each.
"""

from __future__ import annotations

from tests.server.team.authorisation.asks import Table
from tests.server.team.authorisation.openpai_accounts import ACCOUNTS
from tests.server.team.authorisation.openpai_jobs import JOBS
from tests.server.team.authorisation.our_operations import DESCRIPTION, OURS

OPERATIONS: Table = {**OURS, **ACCOUNTS, **JOBS}
ASKED: Table = {**OPERATIONS, **DESCRIPTION}
