"""Folders that programs left in a state of their own are removed; what cannot be is told.

Root may do anything, so each removal is also tried by another user.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from regatta.engines.local.replicas import removing
from regatta.engines.local.replicas.removing import remove_tree

NOBODY = 65534
AS_NOBODY = os.geteuid() == 0


def remove_as_nobody(folder: Path) -> str:
    """What kept it from being removed, as a user without rights of any kind."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        try:
            if AS_NOBODY:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(write, str(remove_tree(folder) or "").encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as said:
        words = said.read()
    os.waitpid(child, 0)
    return words


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that nobody owns and can reach: the tests' own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _give(place)
        yield place


def _give(*paths: Path) -> None:
    if AS_NOBODY:
        for path in paths:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def a_tree(place: Path) -> Path:
    tree = place / "tree"
    (tree / "in" / "ner").mkdir(parents=True)
    (tree / "in" / "file").write_text("data")
    _give(tree, tree / "in", tree / "in" / "ner", tree / "in" / "file")
    return tree


@pytest.mark.parametrize("mode", [0o555, 0o444, 0o311, 0o000], ids=oct)
def test_a_folder_whose_owner_took_the_right_away_is_removed(place: Path, mode: int) -> None:
    tree = a_tree(place)
    (tree / "in").chmod(mode)
    assert remove_as_nobody(tree) == ""
    assert not tree.exists()


def test_links_are_removed_and_what_they_lead_to_stays_as_it_is(place: Path) -> None:
    outside = place / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    outside.chmod(0o555)
    tree = a_tree(place)
    (tree / "to-folder").symlink_to(outside)
    (tree / "in" / "to-file").symlink_to(outside / "kept")
    (tree / "in" / "to-nothing").symlink_to("nowhere")
    _give(outside, outside / "kept")
    assert remove_as_nobody(tree) == ""
    assert not tree.exists()
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o555


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "kept").touch()
    (tmp_path / "link").symlink_to("real")
    assert remove_tree(tmp_path / "link") is not None
    assert (tmp_path / "real" / "kept").exists()


def make_chain(top: Path) -> None:
    """Of folders in it: deeper than a path can say, so that it is for the test to remove."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_a_chain_of_folders_longer_than_any_stack_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    make_chain(tree)
    assert remove_tree(tree) is None
    assert not tree.exists()


@pytest.mark.skipif(not AS_NOBODY, reason="only root can make what another user cannot remove")
def test_what_another_user_owns_is_named_and_the_rest_is_gone(place: Path) -> None:
    tree = a_tree(place)
    theirs = tree / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    said = remove_as_nobody(tree)
    assert "Permission denied" in said
    assert str(theirs / "file") in said
    assert [path.name for path in tree.iterdir()] == ["theirs"]


def test_more_than_is_listed_at_once_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "AT_ONCE", 3)
    tree = tmp_path / "tree"
    for name in range(10):
        (tree / f"in{name}" / "ner").mkdir(parents=True)
        (tree / "in0" / f"file{name}").touch()
    assert remove_tree(tree) is None
    assert not tree.exists()


@pytest.mark.skipif(not AS_NOBODY, reason="only root can make what another user cannot remove")
def test_a_removal_that_gets_no_further_ends(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removing, "AT_ONCE", 2)
    tree = a_tree(place)
    for name in range(9):
        (tree / f"theirs{name}" / "file").mkdir(parents=True)
    assert "Permission denied" in remove_as_nobody(tree)


@pytest.mark.skipif(not AS_NOBODY, reason="only root can make what another user cannot remove")
def test_one_that_stays_keeps_none_of_a_large_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "AT_ONCE", 3)
    tree = a_tree(place)
    (tree / "in" / "theirs").mkdir()
    (tree / "in" / "theirs" / "file").touch()
    for folder in ("a", "z"):
        (tree / folder).mkdir()
        _give(tree / folder)
        for number in range(10):
            (tree / folder / str(number)).touch()
    assert "Permission denied" in remove_as_nobody(tree)
    assert sorted(path.name for path in tree.rglob("*")) == ["file", "in", "theirs"]


def test_nothing_there_is_nothing_to_remove(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "none") is None
    assert remove_tree(tmp_path / "no" / "parent") is None
