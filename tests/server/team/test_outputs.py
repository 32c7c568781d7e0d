"""Where members' jobs write that do not say where: each in a folder that nobody else made."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.api.errors import NotPossible
from regatta.server.team.isolating import outputs
from regatta.server.team.isolating.isolation import IsolationSettings
from regatta.server.team.isolating.outputs import make_own, open_output
from regatta.server.team.team_settings import TeamSettings
from tests.doors import eventually, shell_job
from tests.engines.local.accounts_here import needs_root, place
from tests.server.team.serving import NO_LIMITS, TeamServer, a_team_server

__all__ = ["place"]

pytestmark = needs_root

ROB, EVE = 243_001, 243_002
UIDS = range(243_010, 243_020)


@pytest.fixture
def share(place: Path) -> Path:
    folder = place / "share"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def make(share: Path, name: str = "rob", uid: int = ROB) -> Path:
    make_own(share / "Output" / name, name, uid, uid)
    return share / "Output" / name


def whose(folder: Path) -> tuple[int, int, int]:
    found = folder.lstat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def an_output(share: Path, mode: int, uid: int = 0) -> Path:
    folder = share / "Output"
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, uid, uid)
    return folder


# -- what root makes ---------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_an_account_gets_a_closed_folder_of_its_own_in_one_that_is_roots(
    share: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        own = make(share)
    finally:
        os.umask(before)
    assert whose(share / "Output") == (0, 0, 0o755)
    assert whose(own) == (ROB, ROB, 0o700)
    assert os.listdir(share / "Output") == ["rob"]


def test_what_is_the_accounts_already_stays_as_it_wants_it(share: Path) -> None:
    own = make(share)
    own.chmod(0o755)
    (own / "model").touch()
    assert make(share) == own
    assert whose(own) == (ROB, ROB, 0o755)
    assert os.listdir(own) == ["model"]


@pytest.mark.parametrize("mode", [0o755, 0o1777])
@pytest.mark.parametrize("owner", [EVE, 0])
def test_a_folder_that_somebody_else_made_is_neither_used_nor_taken(
    share: Path, mode: int, owner: int
) -> None:
    theirs = an_output(share, mode) / "rob"
    theirs.mkdir()
    theirs.chmod(0o777)
    os.chown(theirs, owner, owner)
    said = "root's \\(uid 0\\)" if owner == 0 else f"uid {EVE}'s"
    with pytest.raises(NotPossible, match=rf"Output/rob, where .* is {said} and not rob's .*ask"):
        make(share)
    assert whose(theirs) == (owner, owner, 0o777)
    assert os.listdir(share / "Output") == ["rob"]


@pytest.mark.parametrize("leads", ["inside", "outside"])
def test_a_link_that_a_member_laid_is_not_followed(share: Path, place: Path, leads: str) -> None:
    output = an_output(share, 0o1777)
    victim = (output if leads == "inside" else place) / "victim"
    victim.mkdir(mode=0o700)
    (output / "rob").symlink_to(victim)
    os.chown(output / "rob", EVE, EVE, follow_symlinks=False)
    with pytest.raises(NotPossible, match=f"is no folder but a file or link, uid {EVE}'s"):
        make(share)
    assert whose(victim) == (0, 0, 0o700)


def test_a_link_in_the_place_of_output_is_not_followed(share: Path, place: Path) -> None:
    (place / "victim").mkdir()
    (share / "Output").symlink_to(place / "victim")
    make(share)
    assert os.listdir(place / "victim") == []


@pytest.mark.parametrize(("mode", "uid"), [(0o777, 0), (0o755, EVE), (0o1777, EVE)])
def test_root_makes_nothing_where_others_could_exchange_it(
    share: Path, mode: int, uid: int
) -> None:
    """Nor judges what is there: the task does, as the account."""
    output = an_output(share, mode, uid)
    make(share)
    assert os.listdir(output) == []
    (output / "rob").mkdir()
    make(share)


def test_a_share_in_which_names_can_be_exchanged_gets_no_output(share: Path) -> None:
    share.chmod(0o777)
    make(share)
    assert os.listdir(share) == []


def test_on_a_share_that_takes_root_for_nobody_the_task_is_to_find_out(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    output = an_output(share, 0o1777)
    monkeypatch.setattr(outputs.os, "fchown", refuse)
    make(share)
    assert os.listdir(output) == []
    (output / "rob").mkdir()
    make(share)
    assert os.listdir(output) == ["rob"]


def test_a_file_system_that_says_one_owner_of_everything_keeps_no_job_from_running(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs.os, "fchown", lambda *_: None)
    output = an_output(share, 0o1777)
    (output / "rob").mkdir()
    make(share)
    assert os.listdir(output) == ["rob"]


def test_many_submissions_of_one_account_at_once_have_one_folder(share: Path) -> None:
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            make(share)
        except NotPossible as error:
            failed.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert os.listdir(share / "Output") == ["rob"]


# -- what is told at the start -----------------------------------------------------------------


def test_nothing_has_to_be_prepared(share: Path) -> None:
    assert open_output(share) == ()
    assert whose(share / "Output") == (0, 0, 0o755)
    assert open_output(share) == ()
    (share / "Output").chmod(0o1777)
    assert open_output(share) == ()
    assert os.listdir(share / "Output") == []


@pytest.mark.parametrize(
    ("mode", "uid", "told"),
    [
        (0o777, 0, "Output (mode 777), and it has no sticky bit: members can exchange"),
        (0o775, 0, None),
        (0o1777, EVE, f"Output is uid {EVE}'s, who can exchange members' folders"),
        (0o700, 0, "other accounts may not pass"),
    ],
)
def test_an_output_that_does_not_keep_members_apart_is_told_of(
    share: Path, mode: int, uid: int, told: str | None
) -> None:
    an_output(share, mode, uid)
    said = open_output(share)
    assert [told in line for line in said] == [True] if told else said == ()


def test_a_group_that_can_write_to_output_is_others(share: Path) -> None:
    os.chown(an_output(share, 0o775), 0, EVE)
    (said,) = open_output(share)
    assert "others can write to" in said


def test_a_share_in_which_output_can_be_exchanged_is_told_of(share: Path) -> None:
    share.chmod(0o777)
    exchanged, missing = open_output(share)
    assert f"others can write to {share} (mode 777)" in exchanged
    assert f"root cannot make or use {share}/Output (No such file" in missing


def test_an_output_that_nobody_can_make_folders_in_is_told_of(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs.os, "fchown", lambda *_: None)
    (said,) = open_output(share)
    assert "neither root nor other accounts can make folders in" in said


# -- with jobs ---------------------------------------------------------------------------------


@pytest.fixture
def server(place: Path, share: Path) -> Iterator[TeamServer]:
    isolation = IsolationSettings("users", work=place / "work", uids=UIDS, register=place / "uids")
    settings = TeamSettings(rates=NO_LIMITS, default_fs_uri=str(share))
    with a_team_server(place, isolation=isolation, settings=settings) as serving:
        yield serving


def config(name: str, command: str, **fields: object) -> str:
    role = {"name": "main", "command": command, "memoryMB": 100, "cpuNumber": 1}
    return json.dumps({"jobName": name, "image": "x", "taskRoles": [role], **fields})


def hand_in(server: TeamServer, who: str, text: str, query: str = "") -> tuple[int, str]:
    sent = server.ask("POST", f"/regatta/v1/jobs{query}", server.token(who), body={"text": text})
    return sent.status, sent.body.decode()


def ended(server: TeamServer, who: str, name: str) -> str:
    def phase() -> str:
        jobs = server.ask("GET", "/regatta/v1/jobs", server.token(who)).json["items"]
        found = {job["metadata"]["name"]: job["status"].get("phase") for job in jobs}
        return found[name] if found.get(name) in ("Completed", "Failed") else ""

    return str(eventually(phase, f"the end of {name}"))


def test_what_a_job_writes_by_default_is_closed_to_other_members(
    server: TeamServer, share: Path
) -> None:
    assert hand_in(server, "rob", config("traina", "echo mine >$PAI_OUTPUT_DIR/model"))[0] == 201
    assert ended(server, "rob", "traina") == "Completed"
    rob = UIDS.start
    assert whose(share / "Output") == (0, 0, 0o755)
    assert whose(share / "Output/rob") == (rob, rob, 0o700)
    model = share / "Output/rob/traina/model"
    assert model.read_text() == "mine\n"
    told = share.parent / "told"
    told.mkdir()
    told.chmod(0o777)
    tries = (
        f"cat {model}; ls {share}/Output/rob; mkdir {share}/Output/ann; "
        f"mv {share}/Output/rob {share}/Output/gone"
    )
    hand_in(server, "eve", shell_job("tries", f"({tries}) 2>{told}/refused >{told}/seen; true"))
    assert ended(server, "eve", "tries") == "Completed"
    assert (told / "seen").read_text() == ""
    assert (told / "refused").read_text().count("Permission denied") == 4
    assert sorted(os.listdir(share / "Output")) == ["rob"]


def test_a_folder_that_another_member_laid_out_before_is_not_written_to(
    server: TeamServer, share: Path
) -> None:
    """As a member could where all may write to `Output`."""
    output = an_output(share, 0o1777)
    lays = f"umask 0; mkdir -p {output}/rob/traina; touch {output}/rob/traina/model"
    assert hand_in(server, "eve", shell_job("lays", lays))[0] == 201
    assert ended(server, "eve", "lays") == "Completed"
    eve = UIDS.start
    text = config("traina", "echo mine >$PAI_OUTPUT_DIR/model")
    for query in ("", "?dryRun=true"):
        status, said = hand_in(server, "rob", text, query)
        assert status == 409, said
        assert f"{output}/rob, where the job would write, is uid {eve}'s and not rob's" in said
        assert "ask whoever runs the server to remove it" in said
    assert (output / "rob/traina/model").read_text() == ""
    elsewhere = config("trainb", "true", outputDir="$PAI_DEFAULT_FS_URI/elsewhere")
    assert hand_in(server, "rob", elsewhere)[0] == 201


def test_where_root_makes_nothing_the_task_makes_it_and_writes_to_nobody_elses(
    server: TeamServer, share: Path
) -> None:
    output = an_output(share, 0o1777, EVE)
    assert hand_in(server, "rob", config("traina", "echo mine >$PAI_OUTPUT_DIR/model"))[0] == 201
    assert ended(server, "rob", "traina") == "Completed"
    assert whose(output / "rob") == (UIDS.start, UIDS.start, 0o700)
    (output / "ann").mkdir()
    (output / "ann").chmod(0o777)
    os.chown(output / "ann", EVE, EVE)
    assert hand_in(server, "ann", config("trainb", "echo mine >$PAI_OUTPUT_DIR/model"))[0] == 201
    assert ended(server, "ann", "trainb") == "Failed"
    assert os.listdir(output / "ann") == []
    assert sorted(os.listdir(output)) == ["ann", "rob"]
