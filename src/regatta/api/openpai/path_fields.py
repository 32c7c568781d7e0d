"""The path fields of a v1 config: what they say, and which of them are folders that can be reached.

A folder can be reached where it lies inside the one that `$PAI_DEFAULT_FS_URI` names. Code is
copied from there and the folder for output made there, before the command. What another scheme
names (`hdfs://`) is only told to the replicas, in their variables.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

import msgspec

from regatta.api.checks.suggestions import shown
from regatta.api.openpai.wanted import Setting
from regatta.api.problems import Problem

ROOT = "PAI_DEFAULT_FS_URI"
#: Whole words: `$PAI_JOB_NAMES` is another variable.
_WORD = re.compile(r"\$(PAI_DEFAULT_FS_URI|PAI_JOB_NAME|PAI_USER_NAME|PAI_USERNAME)(?!\w)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SET_ROOT = f"set {ROOT} where jobs are submitted to: a folder that every replica can reach"


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """As variables tell them, and, where they can be reached, as paths."""

    data: str = ""
    output: str = ""
    code: str = ""
    code_path: str = ""
    output_path: str = ""
    problems: tuple[Problem, ...] = ()


def folders(*, job: str, data: str, output: str, code: str, setting: Setting) -> Folders:
    """What the three fields come to; empty ones were not written."""
    problems: list[Problem] = []
    if not output and setting.default_fs_uri:
        output = f"${ROOT}/Output/$PAI_USER_NAME/$PAI_JOB_NAME"
    said: dict[str, str] = {}
    for field, written in {"dataDir": data, "outputDir": output, "codeDir": code}.items():
        said[field] = _substituted(written, job, setting)
        if _names_root(written) and not setting.default_fs_uri:
            said[field] = ""
            problems.append(
                Problem(field, f"found ${ROOT}, which stands for nothing here; {_SET_ROOT}")
            )
    reached: dict[str, str] = {}
    for field in ("outputDir", "codeDir"):
        problems += _about(field, said[field], setting)
        reached[field] = (said[field] and _path(said[field])) or ""
    return Folders(
        data=said["dataDir"],
        output=said["outputDir"],
        code=said["codeDir"],
        code_path=reached["codeDir"],
        output_path=reached["outputDir"],
        problems=tuple(problems),
    )


def _names_root(written: str) -> bool:
    return any(found[1] == ROOT for found in _WORD.finditer(written))


def _substituted(written: str, job: str, setting: Setting) -> str:
    values = {
        ROOT: setting.default_fs_uri,
        "PAI_JOB_NAME": job,
        "PAI_USER_NAME": setting.owner,
        "PAI_USERNAME": setting.owner,
    }

    def value(found: re.Match[str]) -> str:
        follows = written[found.end() : found.end() + 1]
        return values[found[1]].removesuffix("/" if follows == "/" else "")

    return _WORD.sub(value, written)


def _about(field: str, said: str, setting: Setting) -> Iterator[Problem]:
    if not said:
        return
    path = _path(said)
    if path is None:
        happens = "not copied" if field == "codeDir" else "not made"
        yield Problem(
            field,
            f"found {shown(said)}: its scheme is not reached from here, so it is {happens}; the "
            "replicas are told of it in their variables",
            "warning",
        )
    elif not path.startswith("/"):
        yield Problem(
            field,
            f"found {shown(said)}; write an absolute path or a URI, such as ${ROOT}/{field}",
        )
    elif not setting.default_fs_uri:
        yield Problem(field, f"found {shown(said)}, and no folder of this place is open to jobs; "
                      f"{_SET_ROOT}")  # fmt: skip
    elif not _inside(path, _path(setting.default_fs_uri)):
        yield Problem(
            field,
            f"found {shown(said)}, which is outside {setting.default_fs_uri}; write a path below "
            f"${ROOT}",
        )


def _path(said: str) -> str | None:
    """The place in the file system, without `..`; None where another scheme names it."""
    scheme = _SCHEME.match(said)
    if scheme is None:
        return _normal(said)
    if scheme[1].lower() != "file":
        return None
    host, slash, path = said[scheme.end() :].partition("/")
    if host not in ("", "localhost"):
        return None
    return _normal(unquote(f"{slash}{path}") or "/")


def _normal(path: str) -> str:
    # POSIX leaves the meaning of two leading slashes open, and so does `normpath`.
    return posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def _inside(path: str, root: str | None) -> bool:
    """Strictly: the root itself is nobody's code and nobody's output."""
    return root is not None and path != root and path.startswith(f"{root.rstrip('/')}/")
