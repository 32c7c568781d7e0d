"""What Linux can give a program at its start: each variable and argument, and all together."""

from __future__ import annotations

import os

from regatta.api.amounts import readable
from regatta.api.source.limits import MAX_STRING, MAX_STRINGS
from regatta.engines.local.replicas.runspec import Process

#: Beside each of them a program is given its address.
_ADDRESS = 8


def what_is_too_long(process: Process) -> str:
    """In a sentence; empty where nothing is."""
    variables = {f"the variable {name}": f"{name}={value}" for name, value in process.env.items()}
    words = {f"word {number} of the command": word for number, word in enumerate(process.argv, 1)}
    sizes = {what: len(os.fsencode(text)) + 1 for what, text in {**variables, **words}.items()}
    for what, size in sizes.items():
        if size > MAX_STRING:
            return (
                f"{what} is {size - 1:,} bytes long, and Linux gives a program at most "
                f"{MAX_STRING - 1:,}. Write it to a file, and name the file."
            )
    total, most = sum(sizes.values()) + _ADDRESS * len(sizes), room_for_all()
    if total > most:
        return (
            f"its variables and arguments take {readable(total)} together, and Linux gives a "
            f"program at most {readable(most)}. Write the largest of them to files."
        )
    return ""


def room_for_all() -> int:
    """A quarter of the stack that a program may have, and some room for what a start adds."""
    return min(os.sysconf("SC_ARG_MAX"), MAX_STRINGS) - 8192
