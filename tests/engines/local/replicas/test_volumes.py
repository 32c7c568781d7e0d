"""Which directory of this machine a pod's volume is, or what to do where it is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regatta.api.source.companions import Companions, PersistentVolume, PersistentVolumeClaim
from regatta.engines.local.replicas.runspec import Mount
from regatta.engines.local.replicas.volumes import Volumes, is_there_already, mounted_devices

MOUNTED = [("filer:/export/team", "/mnt/team"), ("/dev/sda1", "/"), ("[fd00::1]:/v6", "/mnt/six")]
NONE = Companions()


def mounts_of(
    volume: dict[str, Any],
    tmp_path: Path,
    mount: dict[str, Any] | None = None,
    overrides: dict[str, str] | None = None,
    companions: Companions = NONE,
) -> tuple[list[Mount], Volumes]:
    volumes = Volumes(
        {"volumes": [{"name": "data"} | volume]},
        namespace="default",
        overrides=overrides or {},
        companions=companions,
        directory=str(tmp_path),
        folder=Path("/runs/0"),
        mounted=lambda: MOUNTED,
    )
    container = {"volumeMounts": [{"name": "data", "mountPath": "/data"} | (mount or {})]}
    return volumes.mounts(container, "spec.containers[0]", lambda text: text.upper()), volumes


def mount_of(volume: dict[str, Any], tmp_path: Path, **changes: Any) -> Mount:
    mounts, volumes = mounts_of(volume, tmp_path, **changes)
    assert volumes.problems == []
    return mounts[0]


def problem_of(volume: dict[str, Any], tmp_path: Path, **changes: Any) -> tuple[str, str]:
    mounts, volumes = mounts_of(volume, tmp_path, **changes)
    assert mounts == []
    (problem,) = volumes.problems
    return problem.path, problem.message


def claimed(**volume: Any) -> Companions:
    return Companions(
        volumes=(PersistentVolume(name="pv", **volume),),
        claims=(PersistentVolumeClaim(name="claim", volume_name="pv"),),
    )


CLAIM = {"persistentVolumeClaim": {"claimName": "claim"}}


def test_an_empty_dir_is_a_folder_of_the_run(tmp_path: Path) -> None:
    mounts, volumes = mounts_of({"emptyDir": {}}, tmp_path)
    assert mounts[0].source == "/runs/0/volumes/data"
    assert volumes.folders == ["/runs/0/volumes/data"]


def test_shared_memory_is_the_machines(tmp_path: Path) -> None:
    mounts, volumes = mounts_of(
        {"emptyDir": {"medium": "Memory"}}, tmp_path, mount={"mountPath": "/dev/shm"}
    )
    assert is_there_already(mounts[0])
    assert volumes.folders == []


def test_a_host_path_is_that_path(tmp_path: Path) -> None:
    mount = mount_of({"hostPath": {"path": str(tmp_path)}}, tmp_path, mount={"readOnly": True})
    assert mount == Mount(source=str(tmp_path), target="/data", read_only=True, volume="data")


def test_a_host_path_can_be_made(tmp_path: Path) -> None:
    wanted = str(tmp_path / "new")
    _, volumes = mounts_of({"hostPath": {"path": wanted, "type": "DirectoryOrCreate"}}, tmp_path)
    assert volumes.folders == [wanted]


def test_a_claim_is_the_folder_of_its_volume(tmp_path: Path) -> None:
    mount = mount_of(CLAIM, tmp_path, companions=claimed(host_path=str(tmp_path), read_only=True))
    assert (mount.source, mount.read_only) == (str(tmp_path), True)


@pytest.mark.parametrize(
    ("server", "path", "folder"),
    [
        ("filer", "/export/team", "/mnt/team"),
        ("filer", "/export/team/", "/mnt/team"),
    ],
)
def test_an_nfs_export_is_where_it_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, path: str, folder: str
) -> None:
    monkeypatch.setattr("os.path.exists", lambda path: True)
    for volume, companions in (
        ({"nfs": {"server": server, "path": path}}, Companions()),
        (CLAIM, claimed(nfs_server=server, nfs_path=path)),
    ):
        assert mount_of(volume, tmp_path, companions=companions).source == folder


def test_a_folder_inside_a_mounted_export_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.exists", lambda path: True)
    volume = {"nfs": {"server": "filer", "path": "/export/team/criteo/day-1"}}
    assert mount_of(volume, tmp_path).source == "/mnt/team/criteo/day-1"
    volume = {"nfs": {"server": "fd00::1", "path": "/v6"}}
    assert mount_of(volume, tmp_path).source == "/mnt/six"


def test_the_users_choice_wins(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    mount = mount_of({"cephfs": {"monitors": []}}, tmp_path, overrides={"data": "mine"})
    assert mount.source == str(tmp_path / "mine")


@pytest.mark.parametrize(
    ("mount", "source"),
    [({"subPath": "a/b"}, "a/b"), ({"subPathExpr": "x"}, "X")],
    ids=["subPath", "subPathExpr"],
)
def test_a_sub_path_is_inside_the_volume(
    tmp_path: Path, mount: dict[str, Any], source: str
) -> None:
    mounts, volumes = mounts_of({"emptyDir": {}}, tmp_path, mount=mount)
    assert mounts[0].source == f"/runs/0/volumes/data/{source}"
    assert volumes.folders == [mounts[0].source]


@pytest.mark.parametrize(
    ("volume", "path", "words"),
    [
        (
            {"configMap": {"name": "c"}},
            "spec.volumes[0].configMap",
            "configMap volumes do not exist",
        ),
        ({"secret": {"secretName": "s"}}, "spec.volumes[0].secret", "secret volumes"),
        ({"projected": {}}, "spec.volumes[0].projected", "projected volumes"),
        ({"cephfs": {"monitors": []}}, "spec.volumes[0].cephfs", "cephfs volumes"),
        ({"csi": {"driver": "d"}}, "spec.volumes[0].csi", "csi volumes"),
        (
            {"hostPath": {"path": "/no/such"}},
            "spec.volumes[0].hostPath.path",
            "/no/such is not there",
        ),
        (CLAIM, "spec.volumes[0].persistentVolumeClaim.claimName", "'claim'"),
        (
            {"nfs": {"server": "other", "path": "/x"}},
            "spec.volumes[0].nfs",
            "mount -t nfs other:/x",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_had_names_the_volume_option(
    tmp_path: Path, volume: dict[str, Any], path: str, words: str
) -> None:
    where, message = problem_of(volume, tmp_path)
    assert where == path
    assert words in message
    assert "--volume data=" in message


@pytest.mark.parametrize(
    ("companions", "words"),
    [
        (claimed(host_path="/no/such"), "/no/such (PersistentVolume 'pv'), which is not there"),
        (claimed(spec={"capacity": {}, "rbd": {"image": "i"}}), "is a rbd volume"),
        (claimed(nfs_server="other", nfs_path="/x"), "other:/x is not mounted"),
    ],
    ids=["gone", "rbd", "nfs"],
)
def test_a_claim_that_leads_nowhere_says_why(
    tmp_path: Path, companions: Companions, words: str
) -> None:
    _, message = problem_of(CLAIM, tmp_path, companions=companions)
    assert words in message
    assert "--volume data=" in message


@pytest.mark.parametrize(
    ("mount", "path"),
    [
        ({"name": "dta"}, "spec.containers[0].volumeMounts[0].name"),
        ({"mountPath": "data"}, "spec.containers[0].volumeMounts[0].mountPath"),
        ({"subPath": "../../etc"}, "spec.containers[0].volumeMounts[0].subPath"),
        ({"subPath": "/etc"}, "spec.containers[0].volumeMounts[0].subPath"),
    ],
    ids=str,
)
def test_a_mount_that_makes_no_sense_is_refused(
    tmp_path: Path, mount: dict[str, Any], path: str
) -> None:
    assert problem_of({"emptyDir": {}}, tmp_path, mount=mount)[0] == path


def test_an_override_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    _, message = problem_of({"emptyDir": {}}, tmp_path, overrides={"data": "gone"})
    assert f"{tmp_path}/gone is not there" in message


def test_a_path_that_is_the_directory_already_needs_nothing(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert is_there_already(Mount(source=str(tmp_path), target=str(link)))
    assert not is_there_already(Mount(source=str(tmp_path), target="/data"))
    assert not is_there_already(Mount(source=str(tmp_path), target=str(link), read_only=True))


def test_outer_mounts_come_first(tmp_path: Path) -> None:
    volumes = Volumes(
        {"volumes": [{"name": "a", "emptyDir": {}}]},
        namespace="default", overrides={}, companions=Companions(),
        directory=str(tmp_path), folder=Path("/runs/0"),
    )  # fmt: skip
    container = {"volumeMounts": [{"name": "a", "mountPath": p} for p in ("/d/e/f", "/d", "/d/e")]}
    mounts = volumes.mounts(container, "c", str)
    assert [mount.target for mount in mounts] == ["/d", "/d/e", "/d/e/f"]


def test_the_machine_tells_what_is_mounted() -> None:
    assert "/" in [point for _, point in mounted_devices()]
