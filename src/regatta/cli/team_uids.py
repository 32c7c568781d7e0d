"""As which Unix account a user's jobs run, by command: refused here is what a submit would refuse
later, to somebody who can do nothing about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from regatta.cli.outcomes import Exit, Stop

if TYPE_CHECKING:
    from regatta.cli.settings import Settings
    from regatta.server.accounts.users import User

#: No uid has more.
_DIGITS = 10


def read_uid(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise Stop(Exit.INVALID, f"UID is {text!r}", "Write a number, such as 20001, or none.")
    if len(text) > _DIGITS:
        raise Stop(Exit.INVALID, f"UID has {len(text)} digits", _allowed())
    return int(text)


def require_usable(settings: Settings, user: User, uid: int) -> None:
    from regatta.cli.engine_choice import config_path
    from regatta.cli.team_places import team_folder, team_settings
    from regatta.daemon.find import local_home
    from regatta.server.team.isolating.isolation import default_work, why_not_uid
    from regatta.server.team.isolating.isolation_settings import isolation_of

    said = isolation_of(team_settings().isolation, "users", "localhost", file=config_path())
    work = said.work or default_work("users", team_folder(settings.chosen, local_home()))
    if why := why_not_uid(user, uid, work, said.register):
        raise Stop(
            Exit.INVALID, f"jobs of {user.name} could not run as uid {uid}: {why}", _allowed()
        )


def of_files_left(before: User, uid: int | None) -> Iterator[str]:
    """What an account loses with the uid that it had."""
    from regatta.server.team.isolating.unix_uids import same_named

    old = before.unix_uid
    # Without one it is, first of all, the person of its name.
    if old is None or old == (same_named(before.name, ()) if uid is None else uid):
        return
    if uid is None:
        yield "the server takes a new one when it next needs it, and none that it gave out before"
    yield f"files of uid {old}, the home of {before.name} among them, are no longer its own:"
    yield f"`regatta users uid {before.name} {old}` gives the uid back, or `chown` the files"


def _allowed() -> str:
    from regatta.server.team.isolating.unix_uids import FIRST_OF_PEOPLE, LARGEST, RESERVED

    system = " and ".join(map(str, RESERVED))
    return (
        f"Write one from {FIRST_OF_PEOPLE} to {LARGEST}, but for {system}, that is no other "
        "account's and was none's; or none: then the server takes one of its range."
    )
