"""Which program a job file may have meant that was written for an image: what lies where it would
run.

Guesses for a line that a person reads before it runs; nothing is started that way by itself.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Tried in this order, after one of the role's name and before a folder's only program.
_USUAL = ("train.py", "main.py", "run.py", "train.sh", "run.sh")
_NO_PROGRAMS = ("setup.py", "conftest.py", "__init__.py")
#: How many folders above are looked at, for what an image is made of and for an environment.
_ABOVE = 3
_PYTHON = re.compile(r"python[0-9.]*$")
_START = re.compile(r"^\s*(FROM|CMD|ENTRYPOINT)\s+(.+)$", re.IGNORECASE | re.MULTILINE)


def start_in(folder: Path, role: str, container: dict[str, Any]) -> list[str]:
    """What this role would run in the folder: its command, or a program for its image, with paths
    of the image's own put right. None where its script would not be found."""
    from regatta.engines.local.submit.preflight import read_command

    words = words_of(container)
    if not container.get("command"):
        return program_of(folder, role, words, container.get("image") or "")
    words = _of_this_machine(words)
    command = read_command(tuple(words))
    file = command.script or (command.program if "/" in command.program else "")
    here = folder / (container.get("workingDir") or "")
    mounts = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
    brought = any((here / file).is_relative_to(mount) for mount in mounts)
    if not file or brought or os.path.isfile(here / file):
        return words
    name = Path(file).name
    if not os.path.isabs(file) or file not in words or not os.path.isfile(here / name):
        return []
    at = words.index(file)
    if at > 0:
        return [*words[:at], name, *words[at + 1 :]]
    return [_interpreter(name), name, *words[1:]] if name.endswith((".py", ".sh")) else []


def words_of(container: dict[str, Any]) -> list[str]:
    return [str(word) for key in ("command", "args") for word in container.get(key) or ()]


def program_of(folder: Path, role: str, args: list[str], image: str) -> list[str]:
    """The words that start this role's program of the folder, with these args; none where it has
    none.

    A folder may hold a Dockerfile that is another image's, such as that of the repository it is
    the root of. Its ENTRYPOINT and CMD count where they start a script or a module that lies
    beside it, or where the image has the folder's name and the program is on this machine. Else
    what lies there counts, as if there were no Dockerfile.
    """
    entry, command = _of_dockerfile(folder)
    if not _is_of_image([*entry, *command], folder, image):
        entry, command = [], []
    if entry:
        words = [*entry, *(args or command)]
    elif args and shutil.which(args[0]):
        words = args
    elif args and os.path.isfile(folder / args[0]):
        words = [_interpreter(args[0]), *args]
    else:
        found = command or _of_files(folder, role)
        words = [*found, *args] if found else []  # an option is no program
    return words if all(_is_there(word, folder) for word in words) else []


def folders_of(image: str, folder: Path) -> Iterator[Path]:
    """The job's own, then those near it that have the image's name: what it is made of."""
    yield folder
    for spellings in _names_of(image):
        for place in near(folder):
            for spelt in spellings:
                for found in (place / spelt, place / "examples" / spelt):
                    if os.path.isdir(found):
                        yield found


def near(folder: Path) -> list[Path]:
    """The folder and a few above it, then those of the shell."""
    try:
        here = [Path.cwd()]
    except FileNotFoundError:
        here = []
    found = [step for start in (folder, *here) for step in (start, *start.parents[:_ABOVE])]
    return list(dict.fromkeys(found))


def paddle_beside(words: list[str], folder: Path) -> Path | None:
    """An interpreter nearby that has the PaddlePaddle which the program wants and the shell's has
    not."""
    if not _wants_paddle(words, folder) or _has_paddle():
        return None
    for place in near(folder):
        for environment in sorted((*place.glob(".venv*"), *place.glob("venv*"))):
            python = environment / "bin" / "python"
            if os.path.exists(python) and any(environment.glob("lib/python*/site-packages/paddle")):
                return python
    return None


def shortest(path: Path) -> str:
    """As one would type it here."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except FileNotFoundError:
        return str(path)


def _names_of(image: str) -> list[list[str]]:
    """What a folder of the image would be called: its name, and that without what marks a demo,
    each as people spell it."""
    name = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    return [
        list(dict.fromkeys((known, known.replace("-", "_"), known.replace("_", "-"))))
        for known in dict.fromkeys((name, name.removeprefix("demo-")))
        if known
    ]


def _of_this_machine(words: list[str]) -> list[str]:
    """With the shell's Python in place of one that only the image has."""
    program = Path(words[0])
    if program.is_absolute() and _PYTHON.match(program.name) and not os.path.exists(program):
        return ["python", *words[1:]]
    return words


def _is_of_image(start: list[str], folder: Path, image: str) -> bool:
    """Whether a Dockerfile that starts these words is plausibly the image's: see `program_of`."""
    if not all(_is_there(word, folder) for word in start):
        return False
    if any(os.path.isfile(folder / word) for word in start) or _module_is_there(start, folder):
        return True
    named = any(folder.name in spellings for spellings in _names_of(image))
    return named and any(shutil.which(word) or word == "python" for word in start[:1])


def _module_is_there(start: list[str], folder: Path) -> bool:
    if "-m" not in start[:-1]:
        return False
    first = start[start.index("-m") + 1].partition(".")[0]
    return os.path.isdir(folder / first) or os.path.isfile(folder / f"{first}.py")


def _of_dockerfile(folder: Path) -> tuple[list[str], list[str]]:
    """ENTRYPOINT and CMD of the last stage."""
    try:
        text = (folder / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    except (OSError, UnicodeDecodeError):
        return [], []
    found: dict[str, list[str]] = {}
    for keyword, rest in _START.findall(text):
        if keyword.upper() == "FROM":
            found.clear()
        else:
            found[keyword.upper()] = _words(rest.strip())
    return found.get("ENTRYPOINT", []), found.get("CMD", [])


def _words(written: str) -> list[str]:
    try:
        words = json.loads(written) if written.startswith("[") else None
        if isinstance(words, list):
            return [str(word) for word in words]
        return shlex.split(written)
    except ValueError:
        return []


def _of_files(folder: Path, role: str) -> list[str]:
    try:
        there = sorted(path.name for path in folder.glob("*.py")) + sorted(
            path.name for path in folder.glob("*.sh")
        )
    except OSError:
        return []
    names = [name for name in there if name not in _NO_PROGRAMS and not name.startswith("test_")]
    usual = [name for name in (f"{role}.py", f"{role}.sh", *_USUAL) if name in names]
    if not usual and len(names) != 1:
        return []
    program = (usual or names)[0]
    return [_interpreter(program), program]


def _interpreter(program: str) -> str:
    return "sh" if program.endswith(".sh") else "python"


def _is_there(word: str, folder: Path) -> bool:
    return not word.endswith((".py", ".sh")) or os.path.isfile(folder / word)


def _wants_paddle(words: list[str], folder: Path) -> bool:
    from regatta.engines.local.submit.preflight import read_command

    command = read_command(tuple(words))
    if command.interpreter not in ("python", "python3"):  # which --python has no say in
        return False
    if command.module.startswith("paddle"):
        return True
    script = folder / command.script
    if not command.script:
        return any("paddle" in word for word in words[1:])
    return os.path.isfile(script) and b"paddle" in script.read_bytes()


def _has_paddle() -> bool:
    program = shutil.which("python") or shutil.which("python3")
    if program is None:
        return False
    asked = "import importlib.util as u, sys; sys.exit(u.find_spec('paddle') is None)"
    return subprocess.run([program, "-c", asked], capture_output=True, check=False).returncode == 0
