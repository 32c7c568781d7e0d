"""`team:` in `config.yaml`: how a team's server is to be. Read once, when it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from regatta.api.errors import BadSetting
from regatta.server.accounts.account_rules import DEFAULT_CLUSTER, check_names
from regatta.server.accounts.rate_limits import Rates, rate_of
from regatta.server.accounts.visibility import Visibility
from regatta.server.openpai_errors import OpenPaiError
from regatta.server.origins import is_origin

SECTION = "team"
#: How `signIn` says that unknown users are told from wrong passwords, and that they are not.
OPENPAI, ALIKE = "openpai", "alike"

_RATES = {
    "requests": "requests",
    "lists": "lists",
    "submits": "submits",
    "signInAddress": "sign_in_address",
    "signInName": "sign_in_name",
}


@dataclass(frozen=True, slots=True)
class TeamSettings:
    #: Empty: SQLite beside the engine's own files.
    database: str = ""
    visibility: Visibility = Visibility.OWN
    rates: Rates = field(default_factory=Rates)
    #: Of a job's record, from the job's end, and of the audit; 0: for ever.
    keep_days: float = 0.0
    audit_days: float = 365.0
    #: Whether somebody who signs in is told that there is no such user, as OpenPAI does.
    tells_unknown_users: bool = False
    #: What $PAI_DEFAULT_FS_URI stands for.
    default_fs_uri: str = ""
    virtual_clusters: tuple[str, ...] = (DEFAULT_CLUSTER,)
    #: Under which clients know the server, such as that of a proxy in front.
    public_urls: tuple[str, ...] = ()
    #: What `isolation` says: `server/team/isolating/isolation.py` reads it.
    isolation: dict[str, Any] = field(default_factory=dict)


def team_database_url(folder: Path, settings: TeamSettings) -> str:
    """`folder`: the server's own."""
    return settings.database or f"sqlite:///{folder / 'team.db'}"


def share_of(uri: str, file: Path) -> Path | None:
    """The folder that `defaultFsUri` names, which may not be there; None: it names none of a
    machine. Raises BadSetting."""
    scheme, colon, rest = uri.partition("://")
    if not uri or (colon and scheme.lower() != "file"):
        return None
    path = unquote(rest.removeprefix("localhost")) if colon else uri
    if not path.startswith("/"):
        raise BadSetting(
            f"{file}: {SECTION}.defaultFsUri is {uri!r}; write a path that begins with /, or a "
            "file:/// URI"
        )
    return Path(path)


def about_share(share: Path | None) -> tuple[str, ...]:
    """What whoever starts a server on a machine has to know of it."""
    if share is None or share.is_dir():
        return ()
    return (
        f"{SECTION}.defaultFsUri names {share}, which is no folder of this machine now: OpenPAI's "
        "configs find no code in it, and no place for what they write",
    )


def read_team_settings(path: Path, said: Any) -> TeamSettings:
    """`said`: what the file at `path` has under `team`. Raises BadSetting with all that is
    wrong."""
    if said is None:
        return TeamSettings()
    if not isinstance(said, dict):
        raise BadSetting(f"{path}: {SECTION} is {said!r}; write a map, such as `visibility: own`.")
    values: dict[str, Any] = {}
    problems = []
    for name, value in said.items():
        if name not in READERS:
            problems.append(f"{SECTION}.{name} is unknown; it may hold {', '.join(READERS)}.")
            continue
        target, right, read = READERS[name]
        try:
            values[target] = read(value)
        except (ValueError, TypeError):
            problems.append(f"{SECTION}.{name} is {value!r}; write {right}.")
        except (BadSetting, OpenPaiError) as wrong:
            problems.append(f"{SECTION}.{name}: {wrong}.")
    if problems:
        raise BadSetting(f"{path}: {' '.join(problems)}")
    return TeamSettings(**values)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _days(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**6:
        raise ValueError
    return float(value)


def _sign_in(value: object) -> bool:
    if value not in (OPENPAI, ALIKE):
        raise ValueError
    return value == OPENPAI


def _rates(value: Any) -> Rates:
    if not isinstance(value, dict):
        raise ValueError
    unknown = [name for name in value if name not in _RATES]
    if unknown:
        raise BadSetting(f"there is no rate {unknown[0]!r}; there are {', '.join(_RATES)}")
    # YAML reads a bare `off` as false.
    said = {name: "off" if rate is False else str(rate) for name, rate in value.items()}
    return Rates(**{_RATES[name]: rate_of(name, rate) for name, rate in said.items()})


def _clusters(value: object) -> tuple[str, ...]:
    names = check_names("it", value)
    return tuple(dict.fromkeys([DEFAULT_CLUSTER, *names]))


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(map(_text, value))


def public_urls(value: object) -> tuple[str, ...]:
    """Raises ValueError."""
    urls = _texts(value)
    if not all(map(is_origin, urls)):
        raise ValueError
    return urls


def _map(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return value


#: By the name in the file: the setting, what is right, and who reads it (ValueError: it is not).
READERS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "database": ("database", "a URL, such as postgresql://USER:PASSWORD@HOST/DATABASE", _text),
    "visibility": ("visibility", "own, group or all", Visibility),
    "rates": ("rates", "a map, such as `{requests: 600/min, submits: off}`", _rates),
    "keepDays": ("keep_days", "a number of days, or 0 for ever", _days),
    "auditDays": ("audit_days", "a number of days, or 0 for ever", _days),
    "signIn": ("tells_unknown_users", f"{ALIKE} or {OPENPAI}", _sign_in),
    "defaultFsUri": ("default_fs_uri", "a path, or a file:// URI", _text),
    "virtualClusters": ("virtual_clusters", "a list of names", _clusters),
    "publicUrls": (
        "public_urls",
        "a list of URLs without a path, such as [https://train.example.org]",
        public_urls,
    ),
    "isolation": ("isolation", "a map, such as `{kind: users}`", _map),
}
