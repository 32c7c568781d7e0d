"""The path fields of a v1 config: what they say, and which of them are folders that can be reached.

A folder can be reached where it lies inside the one that `$PAI_DEFAULT_FS_URI` names. Code is
copied from there and the folder for output made there, before the command. What another scheme
names (`hdfs://`) is only told to the replicas, in their variables. Each account of a machine has a
folder of its own for output, in one that all of them share.
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
#: Where somebody's jobs write that do not say where.
_OWN = f"${ROOT}/Output/$PAI_USER_NAME"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SET_ROOT = (
    f"name a folder that every replica can reach: {ROOT}=/srv/share regatta run FILE, or in the "
    "settings of the server that takes it"
)
_ASK_FOR_ROOT = (
    "this server takes it from its own settings alone: ask whoever runs it to name a folder that "
    "every replica can reach, as team.defaultFsUri"
)
_NO_ROOT = f"no {ROOT} says which folders jobs may use"


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """As variables tell them, and, where they can be reached, as paths."""

    data: str = ""
    output: str = ""
    code: str = ""
    code_path: str = ""
    output_path: str = ""
    #: The one around that which has to be an account's own; empty: nobody says so.
    own_output: str = ""
    problems: tuple[Problem, ...] = ()


def folders(*, job: str, data: str, output: str, code: str, setting: Setting) -> Folders:
    """What the three fields come to; empty ones were not written."""
    problems: list[Problem] = []
    if not output and setting.default_fs_uri:
        output = f"{_OWN}/$PAI_JOB_NAME"
    said: dict[str, str] = {}
    for field, written in {"dataDir": data, "outputDir": output, "codeDir": code}.items():
        said[field] = _substituted(written, job, setting)
        if _names_root(written) and not setting.default_fs_uri:
            said[field] = ""
            how = _ASK_FOR_ROOT if setting.fs_uri_is_servers else _SET_ROOT
            problems.append(Problem(field, f"found ${ROOT}, which stands for nothing here; {how}"))
        elif _names_root(written) and setting.unheard_fs_uri not in ("", setting.default_fs_uri):
            problems.append(Problem(field, _other_root(setting), "warning"))
    reached: dict[str, str] = {}
    for field in ("outputDir", "codeDir"):
        problems += _about(field, said[field], setting)
        path = _path(said[field]) or ""
        reached[field] = path if _inside(path, _path(setting.default_fs_uri)) else ""
    return Folders(
        data=said["dataDir"],
        output=said["outputDir"],
        code=said["codeDir"],
        code_path=reached["codeDir"],
        output_path=reached["outputDir"],
        own_output=_own(reached["outputDir"], setting) if setting.accounts else "",
        problems=tuple(problems),
    )


def _own(output: str, setting: Setting) -> str:
    """Nothing where it is not that one nor in it, or the user's name is no folder's, as `..`."""
    own = _path(_substituted(_OWN, "", setting)) or ""
    is_own = own.endswith(f"/Output/{setting.owner}")
    return own if is_own and (output == own or _inside(output, own)) else ""


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
    path, root = _path(said), _path(setting.default_fs_uri)
    if setting.default_fs_uri and root is not None and not root.startswith("/"):
        yield Problem(
            field,
            f"{ROOT} is {shown(setting.default_fs_uri)}; set it to an absolute path or a file:// "
            "URI",
        )
    elif path is None:
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
    elif not _inside(path, _path(setting.default_fs_uri)):
        where = _where_it_is_not(setting)
        if field == "codeDir":
            yield Problem(field, f"found {shown(said)}, and {where}; write a path below ${ROOT}")
        else:
            yield Problem(
                field,
                f"found {shown(said)}, and {where}: it is not made; the replicas are told of it "
                "in their variables",
                "warning",
            )


def _other_root(setting: Setting) -> str:
    return (
        f"${ROOT} is {setting.default_fs_uri} here, as this server's settings say, and not "
        f"{shown(setting.unheard_fs_uri)}"
    )


def _where_it_is_not(setting: Setting) -> str:
    if setting.default_fs_uri:
        return f"it is not below {setting.default_fs_uri}"
    if setting.fs_uri_is_servers:
        return f"{_NO_ROOT} (team.defaultFsUri of the server's settings; ask whoever runs it)"
    return f"{_NO_ROOT} ({ROOT}=/srv/share regatta run FILE)"


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
    if root is None or not root.startswith("/"):
        return False
    return path != root and path.startswith(f"{root.rstrip('/')}/")
