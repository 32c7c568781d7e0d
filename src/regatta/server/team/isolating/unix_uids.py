"""Which uid of this machine a team's account is: its own, never another's nor the system's."""

from __future__ import annotations

import grp
import os
import pwd
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from regatta.api.errors import BadSetting, NotPossible
from regatta.engines.base import RunAs
from regatta.server.team.isolating.given_uids import GivenUids

#: Below are the system's.
FIRST_OF_PEOPLE = 1000
#: `nobody`, and what 16 bits make of "no uid": both are the system's, too.
RESERVED = (65534, 65535)
LARGEST = 2**31 - 1
DEFAULT_UIDS = range(200_000, 300_000)
_SUBORDINATE = (Path("/etc/subuid"), Path("/etc/subgid"))
#: The last uid of the range that was given out, in the work folder: none is given twice, also when
#: the account that had it is gone and its files are not.
_LAST = "last-uid"


@dataclass(frozen=True, slots=True)
class UnixAccount:
    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    #: Where the machine says that it lives; empty: it says nothing of it.
    home: str

    def run_as(self, home: str) -> RunAs:
        return RunAs(uid=self.uid, gid=self.gid, groups=self.groups, name=self.name, home=home)


def read_uids(text: str) -> range:
    """`200000-299999`, as the settings write it."""
    found = re.fullmatch(r"\s*(\d{1,10})\s*-\s*(\d{1,10})\s*", text)
    if found is None:
        raise BadSetting(f"uids: is {text!r}; write the first and the last, as 200000-299999")
    return range(int(found[1]), int(found[2]) + 1)


def check_uids(uids: range, subordinate: Collection[Path] = _SUBORDINATE) -> None:
    """Raises BadSetting where the range is not the accounts' alone."""
    first, last = uids.start, uids.stop - 1
    said = f"uids: is {first}-{last}"
    if not uids:
        raise BadSetting(f"{said}, in which there is none; write the first and the last")
    if first < FIRST_OF_PEOPLE:
        raise BadSetting(
            f"{said}, and those below {FIRST_OF_PEOPLE} are the system's; begin at "
            f"{DEFAULT_UIDS.start}"
        )
    if last > LARGEST:
        raise BadSetting(f"{said}; the last may be {LARGEST} at most")
    if any(uid in uids for uid in RESERVED):
        raise BadSetting(f"{said}, and {RESERVED[0]} (nobody) is the system's; leave it out")
    for file in subordinate:
        for owner, start, count in _ranges(file):
            if start < uids.stop and first < start + count:
                raise BadSetting(
                    f"{said}, but {start}-{start + count - 1} are {owner}'s for containers "
                    f"({file}), who could then be any of them; choose others"
                )


def _ranges(file: Path) -> list[tuple[str, int, int]]:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return []
    fields = [line.split(":") for line in lines]
    return [
        (owner, int(start), int(count))
        for owner, start, count in (line for line in fields if len(line) == 3)
        if start.isdigit() and count.isdigit()
    ]


def find_account(name: str, uid: int, given: GivenUids) -> UnixAccount:
    """As whom jobs of this uid run. Raises NotPossible where nobody's may."""
    known = _entry(uid)
    # A person of this machine is the same person to every server.
    if why := why_no_jobs(uid) or (given.claim(uid) if known is None else ""):
        raise NotPossible(
            f"jobs of {name} cannot run as uid {uid}: {why}. An admin gives the account another "
            "uid, or none, so that one of the server's range is taken."
        )
    if known is None:
        return UnixAccount(uid=uid, gid=uid, groups=(), name=name, home="")
    groups = os.getgrouplist(known.pw_name, known.pw_gid)
    return UnixAccount(
        uid=uid,
        gid=known.pw_gid,
        groups=tuple(sorted({group for group in groups if group != 0})),
        name=known.pw_name,
        home=known.pw_dir,
    )


def why_given(uid: int, given: GivenUids) -> str:
    """Why it is the account of another server of this machine; empty: it is not."""
    return given.why_anothers(uid) if _entry(uid) is None else ""


def why_no_jobs(uid: int) -> str:
    """Why nobody's jobs run as this uid on this machine; empty: they can."""
    if why := why_refused(uid):
        return why
    known = _entry(uid)
    if known is None:
        return f"group {uid}, of the same number, is others'" if _is_somebodys(uid) else ""
    return f"that is {known.pw_name}, whose group is root's" if known.pw_gid == 0 else ""


def _entry(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def why_refused(uid: int) -> str:
    if uid < FIRST_OF_PEOPLE or uid in RESERVED:
        return "that is one of the system's"
    if uid in (os.getuid(), os.geteuid()):
        return "that is the server's own"
    if uid > LARGEST:
        return f"the largest is {LARGEST}"
    return ""


def same_named(name: str, held: Collection[int]) -> int | None:
    """The uid of the person of this machine who has the account's name."""
    try:
        uid = pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return None
    return None if uid in held or why_refused(uid) else uid


def take_next(uids: range, work: Path, held: Collection[int], given: GivenUids) -> int:
    """The next of the range, which nobody has or had; on record before it is anybody's."""
    last = max([_last(work), *(uid for uid in held if uid in uids)], default=0)
    for uid in range(max(uids.start, last + 1), uids.stop):
        if not _is_somebodys(uid) and not (work / str(uid)).exists() and given.take(uid):
            _write_last(work, uid)
            return uid
    raise NotPossible(
        f"every uid of the server's range ({uids.start}-{uids.stop - 1}) has been given out, and "
        "none is given twice; an admin names a larger one with uids: in the server's settings"
    )


def _is_somebodys(number: int) -> bool:
    for find in (pwd.getpwuid, grp.getgrgid):
        try:
            find(number)
        except KeyError:
            continue
        return True
    return False


def _last(work: Path) -> int:
    try:
        text = (work / _LAST).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return 0
    if not text.isdigit():
        raise BadSetting(
            f"{work / _LAST} says {text[:40]!r}; write the last uid there that was given out"
        )
    return int(text)


def _write_last(work: Path, uid: int) -> None:
    """Safe on disk: after a power cut nobody gets it again."""
    temporary = work / f".{_LAST}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, f"{uid}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(work / _LAST)
