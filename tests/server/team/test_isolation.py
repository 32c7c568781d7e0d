"""Whose process a team's job is: accounts that nobody else is, folders that are theirs alone."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regatta.api.errors import BadSetting
from regatta.api.job import Phase
from regatta.engines.base import LogQuery, Shell
from regatta.engines.blocking import Blocking
from regatta.engines.local.home import Home
from regatta.server.accounts.users import User
from regatta.server.records.team_database import Database
from regatta.server.team.isolating.isolation import (
    Isolation,
    IsolationSettings,
    default_work,
)
from tests.engines.local.accounts_here import home, needs_root, place
from tests.engines.local.jobs import a_job, a_submission, eventually, texts, wait_for
from tests.engines.local.opening import engine, open_engine
from tests.server.team.isolations import UIDS, database, isolate, new_user, shell_for

__all__ = ["database", "engine", "home", "isolate", "new_user", "open_engine", "place"]


# -- settings ----------------------------------------------------------------------------------


def test_users_needs_root(
    isolate: Callable[..., Isolation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BadSetting, match="users needs root"):
        isolate()


def test_containers_need_a_runtime(isolate: Callable[..., Isolation], tmp_path: Path) -> None:
    nothing = {"PATH": str(tmp_path)}
    with pytest.raises(BadSetting, match="needs podman or docker, which is not on PATH"):
        isolate("container", environment=nothing)
    with pytest.raises(BadSetting, match="it is podman or docker"):
        isolate("container", runtime="lxc")
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    with pytest.raises(BadSetting, match="needs podman, which"):
        isolate("container", environment=nothing, runtime="podman")
    isolate("container", environment=nothing)


def test_containers_cannot_have_folders_within_each_other(
    isolate: Callable[..., Isolation], tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    for name in ("data/inner", "data-x"):
        (tmp_path / name).mkdir(parents=True)
    nested = tuple(str(tmp_path / name) for name in ("data", "data-x", "data/inner"))
    with pytest.raises(BadSetting, match=r"inner is in .*data; a container"):
        isolate("container", environment={"PATH": str(tmp_path)}, folders=nested)
    with pytest.raises(BadSetting, match="is no folder of this machine"):
        isolate("none", folders=("/no/such/folder",))


@pytest.mark.parametrize("python", ["", "~/bin/python", "venv/bin/python"])
def test_an_interpreter_is_named_by_its_full_path(
    isolate: Callable[..., Isolation], python: str
) -> None:
    with pytest.raises(BadSetting, match=r"images: paddle is .*; write the full path"):
        isolate("none", images={"paddle": python})
    isolate("none", images={"paddle": "/opt/bin/python", "*": "python3.11"})


@needs_root
def test_a_work_folder_has_to_be_where_accounts_reach_it_and_nobody_changes_it(
    isolate: Callable[..., Isolation], place: Path
) -> None:
    (place / "home/state").mkdir(parents=True)
    with pytest.raises(BadSetting, match="lie in each other"):
        isolate(work=place / "home/state/work")
    (place / "closed").mkdir(mode=0o700)
    with pytest.raises(BadSetting, match=r"closed, which other accounts may not pass"):
        isolate(work=place / "closed/work")
    before = os.umask(0o077)
    try:
        isolate(work=place / "new/folder/work")
    finally:
        os.umask(before)
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    with pytest.raises(BadSetting, match="nobody else may write to it"):
        isolate(work=place / "open")


def test_the_work_folder_is_beside_the_state_folder_where_accounts_can_reach_it(
    place: Path,
) -> None:
    (place / "closed").mkdir(mode=0o700)
    assert default_work("users", place / "home/state") == place / "home/work"
    assert default_work("users", place / "closed/state") == Path("/var/lib/regatta/work")
    assert default_work("none", place / "closed/state") == place / "closed/work"


def test_two_servers_do_not_share_a_work_folder(
    isolate: Callable[..., Isolation], database: Database, place: Path
) -> None:
    """Each would take the other's accounts and jobs for its own."""
    isolate("none")
    isolate("none")
    settings = IsolationSettings(kind="none", work=place / "work")
    with pytest.raises(BadSetting, match=r"is that of the server whose state folder is .*/state;"):
        Isolation(settings, database, place / "home/other")


def test_none_says_what_it_does_not_keep(isolate: Callable[..., Isolation]) -> None:
    (said,) = isolate("none").remarks()
    promised = "every member's job runs as root" if os.geteuid() == 0 else "read each other's files"
    assert promised in said


@needs_root
def test_the_others_have_nothing_to_say(isolate: Callable[..., Isolation]) -> None:
    assert isolate("users").remarks() == ()


def test_a_runtime_that_does_not_work_is_told_at_the_start(
    isolate: Callable[..., Isolation], tmp_path: Path
) -> None:
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ -e "$0.daemon" ] || { echo no daemon >&2; exit 1; }\n')
    docker.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    isolation = isolate("container", environment=path, runtime="docker")
    (said,) = isolation.remarks()
    assert "docker does not work here (no daemon)" in said
    assert "`docker version` succeeds" in said
    (tmp_path / "docker.daemon").touch()
    assert isolation.remarks() == ()


def test_an_interpreter_that_is_not_there_is_told_at_the_start(
    isolate: Callable[..., Isolation],
) -> None:
    said = isolate("none", images={"a": "/no/such/python", "b": sys.executable}).remarks()[-1]
    assert said.startswith("images: a stands for /no/such/python, which is no program")


# -- shells ------------------------------------------------------------------------------------


@needs_root
def test_a_shell_is_of_the_settings_alone(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], place: Path
) -> None:
    isolation = isolate(
        environment={"PATH": "/opt/bin", "HTTP_PROXY": "http://127.0.0.1:1", "TZ": "UTC"},
        images={"paddle": "/opt/paddle/bin/python"},
        folders=("/tmp",),
    )
    shell = shell_for(isolation, new_user("ann"), "ann~first")
    folder = place / "work" / str(UIDS.start)
    assert shell.directory == str(folder / "jobs/ann~first")
    assert shell.environment == {"PATH": "/opt/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
    assert shell.given == {"HTTP_PROXY": "http://127.0.0.1:1"}
    assert shell.images == {"paddle": "/opt/paddle/bin/python"}
    assert (shell.python, shell.runtime, shell.folders) == (None, "none", ("/tmp",))
    assert shell.runs == str(folder / "runs")
    found = Path(shell.directory).stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (UIDS.start, 0o700)
    assert (Path(shell.library) / "regatta/progress.py").stat().st_mode & 0o004
    for above in (folder, folder / "jobs", folder / "runs"):
        assert above.stat().st_uid == 0
        assert not above.stat().st_mode & 0o022


@needs_root
def test_on_a_full_disk_what_is_in_place_is_not_written_again(
    isolate: Callable[..., Isolation], monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for write in ("write_bytes", "write_text"):
        monkeypatch.setattr(Path, write, full)
    isolate()


def test_a_container_sees_no_folder_that_the_settings_do_not_name(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    isolation = isolate("container", environment={"PATH": str(tmp_path)})
    shell = shell_for(isolation, new_user("ann"), "first")
    assert (shell.runtime, shell.folders, shell.run_as) == ("docker", (), None)
    assert shell.environment["PATH"] == str(tmp_path)
    assert os.path.isdir(shell.runs)


@pytest.mark.parametrize("kind", ["none", pytest.param("users", marks=needs_root)])
def test_a_jobs_folder_goes_with_it(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], place: Path, kind: str
) -> None:
    isolation = isolate(kind)
    ann = new_user("ann")
    victim = place / "victim"
    (victim / "inner").mkdir(parents=True)
    folders = [
        Path(shell_for(isolation, ann, name).directory) for name in ("one", "preview-two", "three")
    ]
    for folder in folders:
        (folder / "link").symlink_to(victim)
        (folder / "deep/er").mkdir(parents=True)
        (folder / "deep").chmod(0)
    assert isolation.forget("one") is None
    assert isolation.forget("never-was") is None
    assert [folder.exists() for folder in folders] == [False, True, True]
    assert isolation.forget_previews() == []
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert (victim / "inner").is_dir()


@pytest.mark.parametrize("odd", ["", "..", "a/b", "../x", "*", ".hidden", "a" * 300])
def test_a_job_cannot_be_called_another_place(
    isolate: Callable[..., Isolation], new_user: Callable[[str], User], odd: str
) -> None:
    isolation = isolate("none")
    with pytest.raises(ValueError, match="names no folder"):
        shell_for(isolation, new_user("ann"), odd)
    with pytest.raises(ValueError, match="names no folder"):
        isolation.forget(odd)


# -- with an engine ----------------------------------------------------------------------------


@needs_root
def test_two_accounts_jobs_run_beside_each_other(
    isolate: Callable[..., Isolation],
    new_user: Callable[[str], User],
    engine: Blocking,
    home: Home,
) -> None:
    isolation = isolate(images={"*": "/usr/bin/python3"}, environment={"TOLD": "by settings"})
    bobs = shell_for(isolation, new_user("bob"), "bobs")
    anns = shell_for(isolation, new_user("ann"), "anns")
    hold(engine, "bobs", "echo mine >secret; touch ready; sleep 600", bobs)
    eventually((Path(bobs.directory) / "ready").exists, "bob's job")
    script = (
        f"id -u; echo $TOLD; echo $HOME; cat {bobs.directory}/secret; ls {home.path}; "
        "python3 -c 'import regatta; regatta.progress(1, total=2); print(1)'; touch $HOME/kept"
    )
    hold(engine, "anns", script, anns)
    wait_for(engine, "anns", Phase.COMPLETED)
    said = texts(engine.logs("default", "anns", LogQuery()))
    assert anns.run_as is not None
    assert said[:3] == [str(UIDS.start + 1), "by settings", anns.run_as.home]
    assert [line for line in said[3:] if "Permission denied" in line] == said[3:5]
    assert said[5:] == ["1"]
    progress = engine.get("default", "anns").status.progress
    assert progress is not None
    assert progress.step == 1
    engine.delete("default", "anns")
    eventually(lambda: not list(Path(anns.runs).iterdir()), "the end of what it wrote")
    assert isolation.forget("anns") is None


def hold(engine: Blocking, name: str, script: str, shell: Shell) -> None:
    submission, _ = a_submission(a_job(name, script))
    engine.submit(submission, shell)
