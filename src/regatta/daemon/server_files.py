"""Where this machine's server is, and the word that opens it.

The server writes these files and its clients read them, so they live in the lower of the two
rooms. All sit in the machine's state folder, which only its owner may enter:

    server.json      url, process and version of the server that runs now
    server.token     the bearer token, 0600, kept across restarts
    team             says that this is a team's: it has accounts, and no token; and where its
                     records are
    server.lock      held by the server for its life: there is never a second one
    guardian.lock    held by the process that restarts the server
    starting.lock    held by the client that starts a server, while it waits for it
    server.log       what server and guardian print
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from regatta.api.errors import UnusableFile

_PAUSE = 0.01


class Address(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    url: str
    pid: int
    version: str
    #: Seconds since the epoch.
    started_at: float = 0.0


class ServerFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = folder / "server.json"
        self.token_file = folder / "server.token"
        self._team_mark = folder / "team"
        self.server_lock = folder / "server.lock"
        self.guardian_lock = folder / "guardian.lock"
        self.starting_lock = folder / "starting.lock"
        self.log = folder / "server.log"

    def read(self) -> Address | None:
        """The address last written, whether or not anybody still answers there."""
        try:
            return msgspec.json.decode(self.address.read_bytes(), type=Address)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def write(self, address: Address) -> None:
        draft = self.address.with_suffix(f".{os.getpid()}")
        text = msgspec.json.encode(address)
        try:
            draft.write_bytes(text)
            draft.replace(self.address)
        except OSError:  # a full disk, perhaps full of files: the one that is there has room
            draft.unlink(missing_ok=True)
            if not self.address.exists():
                raise
            with self.address.open("r+b") as written:
                written.write(text)
                written.truncate()

    def forget(self, pid: int) -> None:
        """Says that this server leaves and none is wanted: a guardian that finds no address does
        not restart one, and nobody who followed a job starts another. A successor's stays."""
        written = self.read()
        if written is None or written.pid == pid:
            self.address.unlink(missing_ok=True)

    def token(self) -> str:
        """The token, made on first use. Two makers agree: only one creation can succeed."""
        try:
            return self._read_token()
        except FileNotFoundError:
            pass
        draft = self.token_file.with_suffix(f".{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave a door that opens to nothing
        with suppress(FileExistsError):
            os.link(draft, self.token_file)
        draft.unlink()
        return self._read_token()

    def _read_token(self) -> str:
        try:
            token = self.token_file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as unusable:
            raise UnusableFile(
                f"the token in {self.token_file} cannot be read ({_why(unusable)}); remove it: the "
                "next server makes another"
            ) from unusable
        if not token:  # it would open the door to everybody
            raise UnusableFile(
                f"the token in {self.token_file} is empty; remove it: the next server makes another"
            )
        return token

    @property
    def is_team(self) -> bool:
        """Whether the jobs here are several people's, who each sign in."""
        return self._team_mark.exists()

    def become_team(self) -> None:
        """From now on. A token that was there opens nothing any more."""
        self._team_mark.touch(mode=0o600)
        self.token_file.unlink(missing_ok=True)

    def note_team_database(self, where: str) -> None:
        """Where the team's server that runs now keeps its records, for people: no user, no
        password."""
        self._team_mark.write_text(where, encoding="utf-8")

    @property
    def team_database(self) -> str:
        """As it was noted last; empty: nobody has."""
        try:
            return self._team_mark.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def open_log(self) -> int:
        """A descriptor that appends to the log."""
        try:
            return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as unusable:
            raise UnusableFile(
                f"{self.log} cannot be written ({_why(unusable)}), and no server starts without "
                "its log; make it yours again with chown and chmod, or remove it"
            ) from unusable

    def last_words(self) -> str:
        """What the log ends with, as the end of a sentence about a server that did not come up."""
        try:
            lines = self.log.read_text("utf-8", "replace").strip().splitlines()[-5:]
        except FileNotFoundError:
            return f"; nothing was written to {self.log}"
        except OSError as unusable:
            return f"; {self.log}, which may say why, cannot be read ({_why(unusable)})"
        return f"; the end of {self.log}:\n  " + "\n  ".join(lines)


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else error.reason


class FileLock:
    """A lock that the kernel lets go of when its holder dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, tries: int = 1) -> bool:
        """More than one try, where somebody may hold it just to see whether it is held."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        for _ in range(tries):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE if tries > 1 else 0)
            else:
                self._descriptor = descriptor
                return True
        os.close(descriptor)
        return False

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def in_place(self) -> bool:
        """Whether the file that is held is still the one that others would find there."""
        assert self._descriptor is not None
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except OSError:
            return False


def is_held(path: Path) -> bool:
    """Whether somebody holds this lock. Makes no file; whoever takes the lock at this very moment
    has to try more than once. Two who look at once do not take each other for a holder: holders
    have it to themselves, and those who look share it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
