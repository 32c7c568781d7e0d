"""Who this person is at which server: tokens that `regatta login` got, in one file of their own.

It is the owner's alone from its first moment, is replaced as a whole, and tells servers apart by
scheme, host and port as they are written: a token never goes anywhere but where it came from.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from regatta.api.errors import UnusableFile
from regatta.daemon.server_files import FileLock
from regatta.engines.local.home import home_root

NAME = "credentials.json"
#: Another command that writes takes a moment.
_TRIES = 200
_PORTS = {"http": 80, "https": 443}


class Credential(msgspec.Struct, frozen=True):
    token: str
    user: str = ""
    #: As the person wrote it, with what a gateway wants besides.
    url: str = ""
    #: Seconds since the epoch; 0 where that is not known.
    expires: float = 0.0


class _File(msgspec.Struct):
    servers: dict[str, Credential] = {}


def credentials_path() -> Path:
    return home_root() / NAME


def stored_credential(url: str) -> Credential | None:
    """For the server at `url`. Raises UnusableFile."""
    try:
        path = credentials_path()
    except RuntimeError:  # no home, so nobody signed in from there
        return None
    return _read(path).servers.get(server_key(url))


def signed_in_at() -> dict[str, Credential]:
    """Every server that there is a sign-in for, by the address to ask it at. Raises
    UnusableFile."""
    try:
        path = credentials_path()
    except RuntimeError:
        return {}
    return {kept.url or key: kept for key, kept in _read(path).servers.items()}


def store_credential(url: str, credential: Credential) -> Path:
    """The file that has it now. Raises UnusableFile."""
    return _change(lambda servers: servers.update({server_key(url): credential}))


def forget_credential(url: str) -> None:
    _change(lambda servers: servers.pop(server_key(url), None))


def server_key(url: str) -> str:
    """The same for every spelling of an address. What follows the port is a way in, such as
    `/rest-server`, to the same server."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{port}"


def _change(change: Callable[[dict[str, Credential]], object]) -> Path:
    path = credentials_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path.with_suffix(".lock"))
        if not lock.take(_TRIES):
            raise UnusableFile(f"{path} is being written by another command; try again")
        try:
            content = _read(path)
            change(content.servers)
            _write(path, content)
        finally:
            lock.release()
    except OSError as unusable:
        raise _unusable(path, unusable.strerror or str(unusable)) from unusable
    return path


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise _unusable(path, "others may read it, and its tokens; `chmod 600` it")
            return msgspec.json.decode(file.read(), type=_File)
    except FileNotFoundError:
        return _File()
    except OSError as unusable:
        raise _unusable(path, unusable.strerror or str(unusable)) from unusable
    except (msgspec.DecodeError, UnicodeDecodeError) as odd:
        raise _unusable(path, f"{odd}; remove it and sign in again") from odd


def _write(path: Path, content: _File) -> None:
    draft = path.with_suffix(f".{os.getpid()}.{secrets.token_hex(4)}")
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _unusable(path: Path, why: str) -> UnusableFile:
    return UnusableFile(f"{path}, which keeps sign-ins, cannot be used: {why}")
