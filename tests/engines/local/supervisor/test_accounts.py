"""A process that becomes an account: before it, it reaches files as that account; after it, for
good. Also where root is not allowed to mount, as in a plain container."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.local.accounts_here import needs_root

pytestmark = needs_root

ANN, BOB = 230_011, 230_012
ACCOUNT: dict[str, Any] = {"uid": ANN, "gid": ANN, "groups": [], "folders": None}

_CHILD = """
import json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from regatta.engines.local.supervisor import linux, mounts
asked = json.loads(sys.argv[2])
account = asked["account"]
os.umask(0o077)
linux.reach_files_as(account)
said = {}
def attempt(name, what):
    try:
        said[name] = what()
    except (OSError, mounts.CannotMount) as error:
        said[name] = getattr(error, "strerror", None) or str(error)
exec(asked["program"])
print(json.dumps(said))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="regatta-accounts-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def played(program: str, *, before: tuple[str, ...] = (), **account: Any) -> dict[str, Any]:
    source = str(Path(__file__).parents[4] / "src")
    asked = json.dumps({"program": program, "account": {**ACCOUNT, **account}})
    done = subprocess.run(
        [*before, sys.executable, "-c", _CHILD, source, asked], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_files_are_reached_as_the_account_while_other_rights_stay(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    said = played(
        f"attempt('list', lambda: os.listdir({str(place / 'closed')!r}))\n"
        f"attempt('make', lambda: os.mkdir({str(place / 'no')!r}))\n"
        f"attempt('theirs', lambda: os.mkdir({str(place / 'open/mine')!r}))\n"
        "attempt('who', lambda: [os.getuid(), os.geteuid()])\n"
    )
    assert said["list"] == said["make"] == "Permission denied"
    assert said["who"] == [0, 0]
    assert (place / "open/mine").stat().st_uid == ANN


def test_who_has_become_an_account_stays_it(place: Path) -> None:
    roots = place / "id"
    shutil.copy("/usr/bin/id", roots)
    roots.chmod(0o4755)
    said = played(
        "linux.become(account)\n"
        "attempt('back', lambda: os.setuid(0))\n"
        "attempt('groups', lambda: os.setgroups([0]))\n"
        "attempt('who', lambda: [*os.getresuid(), *os.getresgid(), *os.getgroups()])\n"
        f"attempt('setuid', lambda: subprocess.run([{str(roots)!r}, '-u'], capture_output=True)"
        ".stdout.decode())\n"
        "linux.become(account)\n",
        groups=[230_099],
    )
    assert said["back"] == said["groups"] == "Operation not permitted"
    assert said["who"] == [ANN] * 6 + [230_099]
    assert said["setuid"] == f"{ANN}\n"


MOUNTED = (
    "def show():\n"
    "    mount = {{'source': {source!r}, 'target': {target!r}, 'read_only': False}}\n"
    "    mounts.apply([mount | {{'volume': 'v'}}], account)\n"
    "    linux.become(account)\n"
    "    return open({target!r} + '/part').read()\n"
    "attempt('seen', show)\n"
    "attempt('who', lambda: [*os.getresuid()])\n"
    "attempt('rights', lambda: open('/proc/self/status').read())\n"
)


@pytest.mark.parametrize("may_mount", [True, False], ids=["mighty", "in a plain container"])
@pytest.mark.parametrize("target", ["/regatta-tests-none/data", "here"])
def test_a_mount_is_made_as_the_account(place: Path, may_mount: bool, target: str) -> None:
    data, point = place / "data", place / "points"
    for folder in (data, point):
        folder.mkdir()
        folder.chmod(0o755)
    (data / "part").write_text("hello")
    (data / "part").chmod(0o644)
    at = target if target.startswith("/") else str(point / target)
    before = () if may_mount else ("setpriv", "--bounding-set", "-sys_admin")
    said = played(MOUNTED.format(source=str(data), target=at), before=before)
    assert said["seen"] == "hello"
    assert said["who"] == [ANN] * 3
    assert "NoNewPrivs:\t1" in said["rights"]
    assert list(point.iterdir()) == []
    assert not os.path.lexists("/regatta-tests-none")


@pytest.mark.parametrize("may_mount", [True, False], ids=["mighty", "in a plain container"])
def test_what_the_account_cannot_reach_is_not_mounted(place: Path, may_mount: bool) -> None:
    """Not even where it leads to something that everybody may read."""
    (place / "closed/data").mkdir(parents=True)
    (place / "closed/data").chmod(0o777)
    (place / "closed/data/part").write_text("hello")
    (place / "closed").chmod(0o700)
    before = () if may_mount else ("setpriv", "--bounding-set", "-sys_admin")
    source = str(place / "closed/data")
    said = played(MOUNTED.format(source=source, target="/regatta-tests-none/x"), before=before)
    assert "Permission denied" in said["seen"]
    assert source in said["seen"]


@pytest.fixture
def another() -> Iterator[Path]:
    """What `/proc` has of a process of another account, which works in a closed folder."""
    folder = Path(tempfile.mkdtemp(prefix="regatta-another-"))
    os.chown(folder, BOB, BOB)
    with subprocess.Popen(
        ["/bin/sh", "-c", 'cd "$1"; echo there; read end', "sh", folder],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=BOB, group=BOB, extra_groups=[],
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"there\n"
        yield Path(f"/proc/{process.pid}")
        process.stdin.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("folders", [None, ["/data"]], ids=["any folder", "allowed folders"])
@pytest.mark.parametrize("may_mount", [True, False], ids=["mighty", "in a plain container"])
def test_what_another_accounts_process_has_open_is_neither_mounted_nor_told(
    place: Path, another: Path, may_mount: bool, folders: list[str] | None
) -> None:
    (place / "link").symlink_to(another / "cwd")
    before = () if may_mount else ("setpriv", "--bounding-set", "-sys_admin")
    program = MOUNTED.format(source=str(place / "link"), target="/regatta-tests-none/x")
    said = played(program, before=before, folders=folders)
    assert "Permission denied" in said["seen"]
    assert "regatta-another" not in said["seen"]


@pytest.mark.parametrize("link", ["exe", "cwd", "root", "fd/1"])
def test_what_the_supervisor_itself_has_open_is_neither_mounted_nor_told(
    place: Path, link: str
) -> None:
    (place / "link").symlink_to(f"/proc/self/{link}")
    program = MOUNTED.format(source=str(place / "link"), target="/regatta-tests-none/x")
    said = played(program, folders=["/data"])
    assert "it leads in a circle, or through what a process has open;" in said["seen"]


def test_rights_to_look_into_processes_are_not_used_for_an_account(
    place: Path, another: Path
) -> None:
    """Whichever call passes a link of `/proc`: mount points are made on such ways, too."""
    said = played(
        f"attempt('read', lambda: os.readlink({str(another / 'cwd')!r}))\n"
        f"attempt('pass', lambda: os.stat({str(another / 'cwd')!r}))\n"
        f"attempt('environment', lambda: open({str(another / 'environ')!r}).read())\n"
    )
    assert said == dict.fromkeys(("read", "pass", "environment"), "Permission denied")


def test_on_a_kernel_that_cannot_refuse_links_of_proc_the_accounts_rights_count(
    place: Path, another: Path
) -> None:
    said = played(
        "linux.SYS_OPENAT2 = 100_000\n"
        f"pinned = linux.pin({str(place)!r})\n"
        "attempt('data', lambda: os.readlink('/proc/self/fd/%d' % pinned))\n"
        f"attempt('theirs', lambda: linux.pin({str(another / 'cwd')!r}))\n"
    )
    assert said == {"data": str(place), "theirs": "Permission denied"}
