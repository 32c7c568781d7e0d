"""Names of OpenPAI's jobs and roles as host names.

`Train_MNIST.v2` can be no host name. A name that already is one stays as it is; any other is
shortened to what a host name may hold, and six digits of its own hash keep it apart from others
that are shortened alike. A name that ends as if it were such a result is treated as the others are,
so that nobody can choose a name which somebody else's becomes.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from regatta.api.checks.names import LONGEST

LONGEST_ROLE = 20
#: Where the digits would leave no room for a word, no name can be made.
_LEAST = 8

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DERIVED = re.compile(r".*-[0-9a-f]{6,}", re.ASCII)
_OTHER = re.compile(r"[^a-z0-9]+", re.ASCII)


def job_label(original: str, room: int = LONGEST, digits: int = 6) -> str:
    """The job's name as a host name of at most `room` characters. `digits`: of the hash; six tell
    apart what one person calls their things, and nobody can try for an equal one of twenty."""
    return _label(original, room, "job", digits)


def role_labels(originals: Iterable[str]) -> dict[str, str]:
    """Each role's name as a host name: those of one job all differ. Where no other of its roles
    comes near, the digits of a hash are not needed: `ps_server` is ps-server."""
    names = list(dict.fromkeys(originals))
    slugs = Counter(_slug(name, "role") for name in names)
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for original in names:
        label, digits = _slug(original, "role"), 6
        if slugs[label] > 1 or len(label) > LONGEST_ROLE or _DERIVED.fullmatch(label):
            label = _label(original, LONGEST_ROLE, "role")
        while label in taken:  # the same word and the same six digits: more digits differ
            digits += 1
            label = _derived(original, LONGEST_ROLE, "role", digits)
        taken.add(label)
        labels[original] = label
    return labels


def room_for_job(roles: Iterable[tuple[str, int]]) -> int:
    """What `<job>-<role>-<index>` leaves to the job, by its roles' labels and replicas."""
    longest = max(len(f"-{label}-{max(replicas, 1) - 1}") for label, replicas in roles)
    return LONGEST - longest


def _label(original: str, room: int, word: str, digits: int = 6) -> str:
    if _LABEL.fullmatch(original) and len(original) <= room and not _DERIVED.fullmatch(original):
        return original
    return _derived(original, room, word, digits)


def _derived(original: str, room: int, word: str, digits: int) -> str:
    if room < _LEAST:
        raise ValueError(f"a name needs room for {_LEAST} characters, not {room}")
    mark = hashlib.sha256(original.encode()).hexdigest()[:digits]
    return f"{_slug(original, word)[: room - digits - 1].rstrip('-')}-{mark}"


def _slug(original: str, word: str) -> str:
    slug = _OTHER.sub("-", original.lower()).strip("-")
    return slug if slug[:1].isalpha() else f"{word}-{slug}".rstrip("-")
