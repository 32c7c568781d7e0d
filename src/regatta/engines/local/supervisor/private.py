"""Puts a job's secrets into the variables of the processes that refer to them, and takes them out
of what is said of how those ended.

Read once, when the replica begins: their file goes when the job ends, and servers may run on.
"""

from __future__ import annotations

from . import jsonfile
from .spawn import CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MASK = b"***"
#: A shorter line of a secret, such as a brace, says nothing, and is in everything.
SHORTEST_LINE = 4


def fill(spec: dict[str, Any]) -> list[str]:
    """What was given to any. Raises CannotStart where one is not to be had: the job ended, or
    somebody took the file."""
    known: dict[str, Any] | None = None
    given = []
    for process in [*spec["init"], *spec["containers"]]:
        for variable, (name, key) in process.get("secrets", {}).items():
            if known is None:
                known = jsonfile.read(spec["secrets_file"]) or {}
            if key not in known.get(name, {}):
                raise CannotStart(
                    "SecretsGone", f"{variable}: the job's secrets are no longer there", 126
                )
            process["env"][variable] = known[name][key]
            given.append(known[name][key])
    return given


class Masks:
    """A program may print a secret, and its log keeps that. Its last words go further: into the
    job, its record and what others are told of it, which all outlive the log."""

    def __init__(self, secrets: list[str]) -> None:
        texts = {*secrets}
        for secret in secrets:
            texts.update(line for line in secret.splitlines() if len(line) >= SHORTEST_LINE)
        #: The longest first: others may be parts of it.
        self._texts = sorted((text.encode() for text in texts if text), key=len, reverse=True)
        self.longest = len(self._texts[0]) if self._texts else 0

    def hide(self, words: bytes, cut: bool) -> bytes:
        """`cut`: they are the end of more, and may begin within a secret."""
        if cut:
            words = words[max((_tail_at_start(text, words) for text in self._texts), default=0) :]
        for text in self._texts:
            words = words.replace(text, MASK)
        return words


def _tail_at_start(text: bytes, words: bytes) -> int:
    """How much of its end the words begin with."""
    longest = min(len(text) - 1, len(words))
    return next((size for size in range(longest, 0, -1) if words.startswith(text[-size:])), 0)
