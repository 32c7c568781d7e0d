"""Finding this machine's server: where it says that it is, and whether it answers there.

The little HTTP that this takes is written here, on the standard library: starting and stopping a
server must not need the client that talks to it.
"""

from __future__ import annotations

import http.client
import re
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from regatta import __version__
from regatta.api.errors import (
    RegattaError,
    ServerHangs,
    ServerUnreachable,
    TeamServerDown,
    Unanswered,
)
from regatta.daemon.server_files import Address, ServerFiles, is_held
from regatta.engines.local.home import Home, open_home

#: A server that lives answers at once; on a busy machine it may take a moment, hence several tries.
HEALTH_SECONDS, HEALTH_TRIES = 2.0, 6
#: How long one that lives may take to say again where it is: its file was removed.
ADDRESS_SECONDS, _PAUSE = 5.0, 0.02


class _Health(msgspec.Struct):
    pid: int = 0


def local_files() -> ServerFiles:
    return ServerFiles(local_home().path)


def local_home() -> Home:
    try:
        return open_home()
    except RuntimeError as homeless:
        raise RegattaError(
            "there is no home folder for the state: HOME is not set and the system knows none for "
            "this user; set REGATTA_HOME to a folder of yours"
        ) from homeless


def cluster_files(home: Home, context: str) -> ServerFiles:
    """Those of a server in front of a cluster. It keeps no jobs here, only its own files, apart
    from those of the server that runs jobs on this machine."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", context).strip(".") or "current"
    folder = home.path / "clusters" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ServerFiles(folder)


def answering(files: ServerFiles) -> Address | None:
    """The server that answers now, if there is one.

    The port of a server that died may be somebody else's by now, who must not see the token: the
    answer has to name the process that the address names. Raises `ServerHangs` where that process
    is still the server and does not answer.
    """
    address = _written(files)
    if address is None:
        return None
    for _ in range(HEALTH_TRIES):
        try:
            answer = ask(address, "GET", "/healthz", timeout=HEALTH_SECONDS)
            health = msgspec.json.decode(answer, type=_Health)
        except Unanswered:
            if _serves(files, address.pid):
                continue
            return None  # its successor listens already and does not answer yet
        except (RegattaError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return address if health.pid == address.pid else None
    raise ServerHangs(
        f"the server (process {address.pid}) runs but does not answer; `kill -9 {address.pid}` "
        "ends it: its jobs go on, and the next command starts another"
    )


def _written(files: ServerFiles) -> Address | None:
    """Where the server says that it is. One that holds its lock and says nothing is about to:
    it starts, or somebody removed the file."""
    deadline = time.monotonic() + ADDRESS_SECONDS
    while (address := files.read()) is None:
        if not is_held(files.server_lock) or time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE)
    return address


def usable(files: ServerFiles) -> Address | None:
    """The server that answers now, unless it has to make way for one of our version."""
    running = answering(files)
    return running if running is not None and not is_older(running.version) else None


def team_is_down(files: ServerFiles) -> TeamServerDown:
    return TeamServerDown(
        f"the jobs in {files.folder} are a team's, and its server does not run; whoever looks "
        "after it starts it with `regatta serve --team`"
    )


def token_for(url: str) -> str:
    """The token when `url` is a server of this machine, else none."""
    home = local_home().path
    for folder in (home, *sorted(home.glob("clusters/*"))):
        files = ServerFiles(folder)
        address = files.read()
        if address is not None and address.url == url and not files.is_team:
            return files.token()
    return ""


def ask(address: Address, method: str, path: str, *, token: str = "", timeout: float) -> bytes:
    """Raises `Unanswered` where the request went out and no answer came back."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with closing(_open(address, timeout)) as connection:
        try:
            connection.connect()
        except OSError as broken:
            raise ServerUnreachable(f"no server answers at {address.url}: {broken}") from broken
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as broken:
            raise Unanswered(f"no server answers at {address.url}: {broken}") from broken
    if response.status >= 300:
        said = content[:200].decode("utf-8", "replace").strip()
        raise ServerUnreachable(
            f"the server at {address.url} refused {method} {path}: HTTP {response.status} {said}"
        )
    return content


def _open(address: Address, timeout: float) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(address.url)
        if parts.scheme == "https":  # a team's, whose certificate may be for another name only
            import ssl

            # Whoever answers has to name the process, and is sent no token.
            anybody = ssl._create_unverified_context()
            return http.client.HTTPSConnection(parts.netloc, timeout=timeout, context=anybody)
        return http.client.HTTPConnection(parts.netloc, timeout=timeout)
    except (ValueError, http.client.InvalidURL) as odd:
        raise ServerUnreachable(f"no server can be at {address.url!r}: {odd}") from odd


def _serves(files: ServerFiles, pid: int) -> bool:
    """Whether this process lives and the server's lock is held."""
    return Path(f"/proc/{pid}").exists() and is_held(files.server_lock)


def is_older(version: str) -> bool:
    """Whether a running server is of an earlier version than this client, and must make way.

    A newer one stays: its database may already be in a form that this version cannot read.
    """
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
