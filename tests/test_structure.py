"""The tree answers a stranger's questions: rooms with names, and a page that names them truly."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/regatta"
PAGE = (ROOT / "docs/architecture.md").read_text()
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted({path.parent for path in MODULES})

#: Verbs are named after what a person types, and a training program's `regatta` after ours.
NAMED_AFTER_USE = ("cli/verbs", "_inject/regatta")
MOST_MODULES = 17

#: Data, names and tables of contents: what decides nothing needs no test of its own.
DECIDES_NOTHING = {"plan", "world"}


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("package", PACKAGES, ids=place)
def test_every_package_has_its_line_in_the_architecture(package: Path) -> None:
    if place(package) not in (".", "_inject/regatta"):
        assert f"| `src/regatta/{place(package)}/` |" in PAGE


def test_every_file_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./]+)`", PAGE))
    assert len(named) > 50
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_architecture_answers_at_least_twelve_questions_with_a_file() -> None:
    section = PAGE.partition("## Where is it decided?")[2].partition("\n## ")[0]
    answers = re.findall(r"^\| .+ \| `(src/regatta/[\w./]+\.py)` \|$", section, re.MULTILINE)
    assert len(answers) >= 12
    assert all((ROOT / file).is_file() for file in answers)


@pytest.mark.parametrize("package", PACKAGES, ids=place)
def test_no_folder_holds_more_than_one_can_look_through(package: Path) -> None:
    if place(package) != "cli/verbs":
        modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, modules


def test_no_two_modules_differ_only_by_their_folder() -> None:
    """Unless they are the same part of the engines, of which a server is the third. What can go
    wrong in a package stands in its `errors`."""
    named: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        if path.stem not in ("__init__", "__main__", "errors") and not place(path).startswith(
            NAMED_AFTER_USE
        ):
            named[path.stem].append(place(path))
    clashes = {name: places for name, places in named.items() if not _same_part(places)}
    assert clashes == {}


def _same_part(places: list[str]) -> bool:
    if len(places) == 1:
        return True
    prefixes = ("engines/local/", "engines/kubernetes/", "client/")
    engines = [next((p for p in prefixes if place.startswith(p)), "") for place in places]
    return "" not in engines and len(set(engines)) == len(places)


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_every_module_says_why_it_exists(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), f"{place(path)} has no docstring"


@pytest.mark.parametrize(
    "path", sorted((SOURCE / "controller").rglob("[!_]*.py")), ids=lambda p: p.stem
)
def test_every_module_of_the_brain_has_a_test_of_its_name(path: Path) -> None:
    if path.stem not in DECIDES_NOTHING:
        inside = path.relative_to(SOURCE)
        test = ROOT / "tests" / inside.parent / f"test_{path.stem}.py"
        assert test.is_file(), f"{test.relative_to(ROOT)} is missing"
