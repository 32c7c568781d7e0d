"""Two accounts of this machine, by number, and a place that both can reach: for jobs as somebody.

They are nobody's: no name leads to them, and nothing of the machine is theirs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.engines.base import RunAs, Shell
from regatta.engines.local.home import Home, open_home
from tests.engines.local.jobs import eventually
from tests.engines.local.opening import end_everything

ANN, BOB = 230_001, 230_002
#: What a person's shell finds, and no more: this process's own interpreter may be root's.
PATH = "/usr/local/bin:/usr/bin:/bin"

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="jobs as another account need root, who alone can become one"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """Which anybody may pass."""
    folder = Path(tempfile.mkdtemp(prefix="regatta-accounts-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(place: Path) -> Iterator[Home]:
    """Closed by its own mode alone."""
    (place / "home").mkdir(mode=0o755)
    home = open_home(place / "home")
    yield home
    end_everything(home)


def work_of(place: Path, uid: int) -> Path:
    """The account's work folder."""
    folder = place / "work" / str(uid)
    if not folder.exists():
        for level in (place / "work", folder):
            level.mkdir(mode=0o711, exist_ok=True)
            level.chmod(0o711)
        (folder / "runs").mkdir()
        (folder / "runs").chmod(0o711)
        (folder / "job").mkdir(mode=0o700)
        os.chown(folder / "job", uid, uid)
    return folder / "job"


def run_as(place: Path, uid: int) -> RunAs:
    return RunAs(uid=uid, gid=uid, name=f"u{uid}", home=str(work_of(place, uid)))


def as_account(place: Path, uid: int, **more: object) -> dict[str, object]:
    """Fields of the shell with which a server runs this account's jobs."""
    work = work_of(place, uid)
    return {
        "directory": str(work),
        "environment": {"PATH": PATH},
        "run_as": run_as(place, uid),
        "runs": str(work.parent / "runs"),
        **more,
    }


def shell_as(place: Path, uid: int, **more: object) -> Shell:
    return Shell(**as_account(place, uid, **more))  # type: ignore[arg-type]


def text_of(file: Path) -> str:
    return eventually(lambda: file.exists() and file.read_text(), str(file))
