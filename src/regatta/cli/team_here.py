"""What commands on the machine of a team's server say of it to somebody who is not signed in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from regatta.cli.settings import Settings
    from regatta.daemon.server_files import Address


class TeamHere(NamedTuple):
    folder: Path
    address: Address

    def told(self) -> str:
        at = self.address
        return (
            f"the jobs in {self.folder} are a team's; its server runs at {at.url} "
            f"(process {at.pid}, version {at.version})\n"
            f"  `regatta login {at.url}` signs in; more is told, and done, for those who have"
        )


def team_here(settings: Settings) -> TeamHere | None:
    """None: another server was named, or this machine's is for one person. Raises ServerUnreachable
    where the team's does not run."""
    if settings.server:
        return None
    from regatta.daemon.find import answering, local_files, team_is_down

    files = local_files()
    if not files.is_team:
        return None
    address = answering(files)
    if address is None:
        raise team_is_down(files)
    return TeamHere(files.folder, address)
