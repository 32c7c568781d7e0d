"""Puts a job's secrets into the variables of the processes that refer to them.

Read once, when the replica begins: their file goes when the job ends, and servers may run on.
"""

from __future__ import annotations

from . import jsonfile
from .spawn import CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def fill(spec: dict[str, Any]) -> None:
    """Raises CannotStart where one is not to be had: the job ended, or somebody took the file."""
    known: dict[str, Any] | None = None
    for process in [*spec["init"], *spec["containers"]]:
        for variable, (name, key) in process.get("secrets", {}).items():
            if known is None:
                known = jsonfile.read(spec["secrets_file"]) or {}
            if key not in known.get(name, {}):
                raise CannotStart(
                    "SecretsGone", f"{variable}: the job's secrets are no longer there", 126
                )
            process["env"][variable] = known[name][key]
