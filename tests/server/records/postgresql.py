"""A real PostgreSQL of the tests' own: Debian's, in a temporary folder, on loopback.

`initdb` refuses root, so as root it runs as `postgres`; it ends with the process that started it,
however that one ends.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.kubernetes.controlplane.machine import apt_install
from tests.kubernetes.controlplane.processes import free_port

USER, PASSWORD = "regatta", "p@ss/w:rd %41"
#: What is committed must survive PostgreSQL's own death here, though not the machine's.
_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "max_connections=60",
    "listen_addresses=127.0.0.1",
)
_numbers = itertools.count(1)


def why_no_postgresql() -> str | None:
    """Why there is none here, or None where there is or can be."""
    if _programs() is not None:
        return None
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        return "PostgreSQL is not installed, and is installed only as root on Debian"
    return None


def install_postgresql() -> None:
    if _programs() is None:
        apt_install(["postgresql"], "the team's records")


def _programs() -> Path | None:
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(found, key=lambda path: float(path.parts[-3]), default=None)
    return newest.parent if newest else None


class PostgreSQL:
    """Runs between `start` and `stop`, any number of times; `remove` ends it for good."""

    def __init__(self) -> None:
        if why := why_no_postgresql():
            pytest.skip(why)  # told in the summary, with how many tests it was
        programs = _programs()
        assert programs is not None, "PostgreSQL was to be installed before any test ran"
        self._programs = programs
        # Not in a folder of pytest's, which only its owner may enter.
        self.folder = Path(tempfile.mkdtemp(prefix="regatta-postgresql-"))
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self.folder, secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        words = [f"--pgdata={self._data}", f"--username={USER}", f"--pwfile={secret}"]
        words += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        command = self._as_its_user("initdb", *words)
        subprocess.run(command, check=True, capture_output=True, cwd="/")
        self.port = free_port()

    def start(self) -> PostgreSQL:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        where = ["-D", str(self._data), "-p", str(self.port), "-k", str(self.folder)]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_its_user("postgres", *where, *settings), stdout=log, stderr=log, cwd="/"
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start in 60 s"
            time.sleep(0.02)
        return self

    def stop(self, *, at_once: bool = False) -> None:
        """Connections are cut; `at_once` as when the machine had died."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            self._process.wait(60)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It says nothing, and its kernel acknowledges what it is sent: as when its host hangs."""
        assert self._process is not None
        pid = self._process.pid
        os.kill(pid, signal.SIGSTOP)  # first, or it would start more
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        try:
            for child in children:
                os.kill(int(child), signal.SIGSTOP)
            yield
        finally:
            for child in children:
                os.kill(int(child), signal.SIGCONT)
            os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        self.stop(at_once=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"test_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        self.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        with self._connect() as connection:
            connection.execute(statement.encode())

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname="postgres",
            autocommit=True,
        )

    def _answers(self) -> bool:
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _as_its_user(self, program: str, *words: str) -> list[str]:
        command = [str(self._programs / program), *words]
        end_with_us = ["setpriv", "--pdeathsig", "INT"]
        if os.geteuid() == 0:
            end_with_us += ["--reuid=postgres", "--regid=postgres", "--init-groups"]
        return [*end_with_us, *command]
