"""`make mutants`: which mistakes in the brain, in reading jobs and in the scheduler go unnoticed.

    python -m tools.mutants [--survivors] [PART_OF_A_PATH ...]

Prints, for every file, how many mutants were tried and which survived: no test that runs the
changed line failed. It ends with an error when one in `controller/` survived that is not among the
explained ones of `equivalent.toml`. What was found is kept in `.mutants`, so that a run that was
interrupted goes on where it was; after a change of code or tests everything is tried again, first
with the test that noticed last time, which takes a fraction of the time. With `--survivors` only
what survived the last time, or is new, is tried: for whoever writes the tests that are missing.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutants.mutations import Mutant, mutants_of
from tools.mutants.running import Coverage, Trial, cover, ended, start

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/regatta"
KEPT = ROOT / ".mutants/results.json"
EXPLAINED = Path(__file__).with_name("equivalent.toml")

#: What is mutated, and the tests that should notice.
ROOMS = {
    "controller": ("tests/controller",),
    "api": ("tests/api",),
    "engines/local/scheduling/scheduler.py": ("tests/engines/local/scheduling/test_scheduler.py",),
}
#: Written by a program, or only descriptions of data.
LEFT_OUT = ("api/crd/", "api/errors.py", "api/job.py")
#: Tests of time, and tests with random input: neither says the same twice.
UNFIT = (
    "tests/controller/test_large_jobs.py",
    "tests/api/test_hostile_input.py::test_a",
    "tests/api/openpai/test_hostile_configs.py",
)
#: Survivors here are an error.
STRICT = "controller/"


@dataclass
class File:
    path: Path
    tests: tuple[str, ...]
    tree: ast.Module
    mutants: list[Mutant]
    survivors: list[Mutant] = field(default_factory=list)
    tried: int = 0

    @property
    def name(self) -> str:
        return self.path.relative_to(SOURCE).as_posix()

    @property
    def module(self) -> str:
        parts = self.path.relative_to(SOURCE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(arguments: list[str]) -> int:
    wanted = [argument for argument in arguments if argument != "--survivors"]
    os.nice(10)
    os.chdir(ROOT)
    os.environ |= {"REGATTA_SEED": "1", "REGATTA_HISTORIES": "10"}
    began = time.monotonic()
    files = [file for file in _files() if not wanted or any(part in file.name for part in wanted)]
    if not files:
        print(f"mutants: no file of {', '.join(ROOMS)} is named like {' or '.join(wanted)}")
        return 2
    folders = sorted({test for file in files for test in file.tests})
    print(f"mutants: {sum(len(f.mutants) for f in files):,} in {len(files)} files", flush=True)
    coverage = cover([file.path for file in files], folders, UNFIT)
    memory = Memory.read(_fingerprint(folders))
    if "--survivors" in arguments:
        memory.trust_what_was_noticed()
    for file in files:
        _try_all(file, coverage, memory)
        _tell(file)
    return _sum_up(files, explained=_explained(), whole=not wanted, began=began)


def _files() -> Iterator[File]:
    for room, tests in ROOMS.items():
        place = SOURCE / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if path.relative_to(SOURCE).as_posix().startswith(LEFT_OUT):
                continue
            tree, mutants = mutants_of(path, path.read_text())
            if mutants:
                yield File(path, tests, tree, mutants)


# -- trying ------------------------------------------------------------------------------------


def _try_all(file: File, coverage: Coverage, memory: Memory) -> None:
    """As many at a time as there are processors."""
    under_way: dict[str, Trial] = {}
    waiting = list(reversed(list(_keyed(file))))
    while waiting or under_way:
        while waiting and len(under_way) < (os.cpu_count() or 1):
            key, mutant = waiting.pop()
            tests = _order(file, mutant, coverage, memory.noticed.get(key))
            if key in memory.results:
                continue
            if not tests:
                memory.keep(key, "")
                continue
            seconds = sum(coverage.seconds[test] for test in tests)
            under_way[key] = start(file.module, file.tree, mutant, tests, seconds)
        for key, trial in list(under_way.items()):
            result = ended(trial)
            if result is not None:
                memory.keep(key, result)
                del under_way[key]
        time.sleep(0.005)
    memory.write()
    for key, mutant in _keyed(file):
        file.tried += 1
        if not memory.results[key]:
            file.survivors.append(mutant)


def _order(file: File, mutant: Mutant, coverage: Coverage, last: str | None) -> list[str]:
    """The tests that reach the change, the one that noticed last time first, then the quickest."""
    if mutant.function:
        tests = coverage.of(file.path, mutant.lines)
    else:  # it runs when the module is imported, whoever reads it afterwards
        tests = {test for test in coverage.seconds if test.startswith(file.tests)}
    return sorted(tests, key=lambda test: (test != last, coverage.seconds[test], test))


def _keyed(file: File) -> Iterator[tuple[str, Mutant]]:
    """A name for each mutant that stays when lines above it come and go."""
    times: dict[str, int] = {}
    for mutant in file.mutants:
        name = f"{file.name} {mutant.function} {mutant.change}"
        times[name] = times.get(name, 0) + 1
        yield f"{name} #{times[name]}", mutant


# -- what was found ----------------------------------------------------------------------------


@dataclass
class Memory:
    """What became of each mutant: the test that noticed it, or nothing."""

    fingerprint: str
    #: With the code and the tests as they are.
    results: dict[str, str]
    #: The last time, whatever they were then.
    noticed: dict[str, str]

    @classmethod
    def read(cls, fingerprint: str) -> Memory:
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"noticed": {}}
        same = kept.get("fingerprint") == fingerprint
        return cls(fingerprint, kept["results"] if same else {}, kept["noticed"])

    def trust_what_was_noticed(self) -> None:
        self.results = {key: result for key, result in self.noticed.items() if result}

    def keep(self, key: str, result: str) -> None:
        self.results[key] = self.noticed[key] = result
        if len(self.results) % 50 == 0:
            self.write()

    def write(self) -> None:
        KEPT.parent.mkdir(exist_ok=True)
        new = KEPT.with_suffix(".new")
        new.write_text(json.dumps(self.__dict__))
        new.replace(KEPT)


def _fingerprint(folders: list[str]) -> str:
    """Of all that decides a result: the code that is mutated, its tests and this tool."""
    code = hashlib.sha256(repr(folders).encode())
    for place in (*(SOURCE / room for room in ROOMS), ROOT / "tests", Path(__file__).parent):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            code.update(path.read_bytes())
    return code.hexdigest()


# -- telling -----------------------------------------------------------------------------------


def _tell(file: File) -> None:
    print(f"{file.name}: {file.tried} tried, {len(file.survivors)} survived", flush=True)
    for mutant in file.survivors:
        place = f" in {mutant.function}" if mutant.function else ""
        print(f"  {mutant.line}{place}: {mutant.change}", flush=True)


def _sum_up(files: list[File], explained: dict[Name, str], whole: bool, began: float) -> int:
    survivors = {_name(f, m) for f in files for m in f.survivors}
    tried, lived = sum(f.tried for f in files), sum(len(f.survivors) for f in files)
    minutes = (time.monotonic() - began) / 60
    known = survivors & set(explained)
    print(f"{tried:,} tried, {lived} survived ({len(known)} explained), {minutes:.1f} minutes")
    unexplained = sorted(n for n in survivors if n[0].startswith(STRICT) and n not in explained)
    for name in unexplained:
        print(f"a test must notice, or {EXPLAINED.name} explain: {' | '.join(name)}")
    looked_at = {file.name for file in files}
    obsolete = sorted(n for n in explained if n not in survivors and (whole or n[0] in looked_at))
    for name in obsolete:
        print(f"{EXPLAINED.name} explains what does not survive: {' | '.join(name)}")
    return 1 if unexplained or obsolete else 0


#: File, function and change.
Name = tuple[str, str, str]


def _name(file: File, mutant: Mutant) -> Name:
    return (file.name, mutant.function, mutant.change)


def _explained() -> dict[Name, str]:
    entries = tomllib.loads(EXPLAINED.read_text()).get("mutant", [])
    return {(e["file"], e.get("function", ""), e["change"]): e["why"] for e in entries}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
