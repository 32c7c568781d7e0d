"""Volumes as a replica sees them: a view of its own, and nothing left on the machine's.

Linux gives such a view to root and, where user namespaces are allowed, to anybody.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from regatta.engines.local.replicas.runspec import Mount
from tests.engines.local.runs import HAS_NAMESPACES, Pod, shell

pytestmark = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="this machine gives neither mount nor user namespaces to this user"
)

NOT_ROOT = 65534 if os.getuid() == 0 else None
TRY = ["unshare", "--user", "--mount", "true"]
ANYBODY_MAY = subprocess.run(TRY, check=False, user=NOT_ROOT, group=NOT_ROOT).returncode == 0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "part-0").write_text("hello\n")
    return folder


def a_root_path() -> str:
    return f"/regatta-test-{uuid.uuid4().hex[:8]}"


def test_a_replica_sees_a_volume_where_it_wants_it(pod: Pod, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "mnt"
    target.mkdir()
    mount = Mount(source=str(data), target=str(target))
    state = pod.play(shell(f"cat {target}/part-0; echo made > {target}/new", mounts=(mount,)))
    assert state.exit is not None
    assert state.exit.code == 0, state.exit.message
    assert pod.texts() == ["hello"]
    assert (data / "new").read_text() == "made\n"
    assert list(target.iterdir()) == []  # only the replica saw it


def test_a_path_in_the_root_needs_no_folder_there(pod: Pod, data: Path) -> None:
    target = a_root_path() + "/train"
    before = sorted(os.listdir("/"))
    mount = Mount(source=str(data), target=target)
    script = f"cat {target}/part-0; ls /proc/self/stat /tmp >/dev/null && ls -A /; test -w {data}"
    state = pod.play(shell(script, mounts=(mount,), cwd=str(data)))
    assert state.exit is not None
    assert state.exit.code == 0, state.exit.message
    hello, *entries = pod.texts()
    assert hello == "hello"
    assert sorted(entries) == sorted([*before, target.split("/")[1]])
    assert sorted(os.listdir("/")) == before


def test_the_rest_of_the_machine_is_the_machine(pod: Pod, data: Path, tmp_path: Path) -> None:
    mount = Mount(source=str(data), target=a_root_path())
    state = pod.play(shell(f"echo kept > {tmp_path}/result", mounts=(mount,)))
    assert state.exit is not None
    assert state.exit.code == 0, state.exit.message
    assert (tmp_path / "result").read_text() == "kept\n"


def test_a_missing_mount_point_elsewhere_is_made(pod: Pod, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "mnt"
    mount = Mount(source=str(data), target=str(target))
    state = pod.play(shell(f"cat {target}/part-0", mounts=(mount,)))
    assert state.exit is not None
    assert state.exit.code == 0, state.exit.message
    assert list(target.iterdir()) == []


def test_read_only_is_read_only(pod: Pod, data: Path) -> None:
    target = a_root_path()
    mount = Mount(source=str(data), target=target, read_only=True)
    state = pod.play(shell(f"cat {target}/part-0; touch {target}/x", mounts=(mount,)))
    assert state.exit is not None
    assert state.exit.code != 0
    assert pod.texts()[0] == "hello"
    assert not (data / "x").exists()


def test_a_mount_inside_another_is_seen(pod: Pod, data: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    target = a_root_path()
    mounts = (
        Mount(source=str(outer), target=target),
        Mount(source=str(data), target=target + "/inner"),
    )
    pod.play(shell(f"cat {target}/inner/part-0", mounts=mounts))
    assert pod.texts() == ["hello"]


def test_one_file_can_be_mounted(pod: Pod, data: Path) -> None:
    target = a_root_path() + "/conf"
    mount = Mount(source=str(data / "part-0"), target=target)
    pod.play(shell(f"cat {target}", mounts=(mount,)))
    assert pod.texts() == ["hello"]


def test_the_working_directory_may_be_in_a_volume(pod: Pod, data: Path) -> None:
    target = a_root_path()
    mount = Mount(source=str(data), target=target)
    pod.play(shell("pwd; cat part-0", mounts=(mount,), cwd=target))
    assert pod.texts() == [target, "hello"]


def test_what_cannot_be_mounted_names_the_path_and_the_option_that_helps(
    pod: Pod, tmp_path: Path
) -> None:
    mount = Mount(source=str(tmp_path / "gone"), target=a_root_path(), volume="train-data")
    state = pod.play(shell("echo ran", mounts=(mount,)))
    assert state.exit is not None
    assert (state.exit.code, state.exit.reason) == (126, "CannotMount")
    assert str(tmp_path / "gone") in state.exit.message
    assert "--volume train-data=" in state.exit.message


def as_anybody(*mounts: Mount, look: str) -> subprocess.CompletedProcess[str]:
    """What a program sees of these mounts that is not root's, whoever runs the tests."""
    program = (
        "import ctypes, encodings.ascii, json, os, sys; sys.path.append(sys.argv[1])\n"
        "from supervisor import mounts, linux\n"
        "if os.getuid() == 0:\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "    ctypes.CDLL(None).prctl(4, 1)  # dumpable again, as after an exec\n"
        "mounts.apply(json.loads(sys.argv[2]))\n"
        "os.execv('/bin/sh', ['sh', '-c', sys.argv[3]])"
    )
    local = Path(sys.modules["regatta.engines.local"].__path__[0])
    wanted = msgspec.json.encode(mounts).decode()
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(local), wanted, look],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A folder that everybody may look into: `data`, and `closed`, which nobody may write to."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)
        (place / "data").mkdir()
        (place / "data" / "part-0").write_text("hello\n")
        (place / "closed" / "inside").mkdir(parents=True)
        (place / "closed" / "inside" / "deep").write_text("deep\n")
        (place / "closed" / "file").write_text("file\n")
        (place / "closed" / "file").chmod(0o444)
        (place / "closed" / "link").symlink_to("file")
        (place / "closed").chmod(0o555)
        yield place
        (place / "closed").chmod(0o755)


@pytest.mark.skipif(not ANYBODY_MAY, reason="user namespaces are root's only on this machine")
@pytest.mark.parametrize("inside", ["", "/new", "/new/deeper"])
def test_anybody_can_have_a_volume_in_a_folder_they_may_not_write_to(
    anybodys: Path, inside: str
) -> None:
    closed = anybodys / "closed"
    mounts = (
        Mount(source=str(anybodys / "data"), target=f"{closed}/mnt{inside}"),
        Mount(source=str(anybodys / "data" / "part-0"), target=f"{closed}/conf"),
    )
    look = (
        f"cd {closed}; cat mnt{inside}/part-0 conf inside/deep file link; readlink link; "
        "ls; echo x > file"
    )
    done = as_anybody(*mounts, look=look)
    seen = ["hello", "hello", "deep", "file", "file", "file"]
    assert done.stdout.split() == [*seen, "conf", "file", "inside", "link", "mnt"]
    assert "denied" in done.stderr  # what one may not write to stays so
    left = sorted(os.listdir(closed))
    assert left == ["file", "inside", "link"]  # the machine's own is as it was


def test_anybody_can_have_a_view_of_their_own(data: Path, tmp_path: Path) -> None:
    """The same without root's rights: in a user namespace, as the user that one is."""
    target = a_root_path()
    program = (
        "import os, sys; sys.path.append(sys.argv[1]); from supervisor import mounts, linux\n"
        "root = linux.unshare\n"
        "def unshare(flags):\n"
        "    if flags == linux.CLONE_NEWNS: raise PermissionError(1, 'not permitted')\n"
        "    root(flags)\n"
        "linux.unshare = unshare\n"
        "mounts.apply([{'source': sys.argv[2], 'target': sys.argv[3], 'read_only': True,"
        " 'volume': 'v'}])\n"
        "print(os.getuid(), open(sys.argv[3] + '/part-0').read(), end='')"
    )
    local = Path(sys.modules["regatta.engines.local"].__path__[0])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(local), str(data), target],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{os.getuid()} hello\n", "")
