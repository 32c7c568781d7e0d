"""Which namespace of an engine holds an account's jobs. Pure.

Each account has its own, so that jobs of different people may share a name, and so that nothing
which stands beside one person's job on a cluster is within another's reach. The name says whose it
is meant to be; whose a job really is, only the records know.
"""

from __future__ import annotations

from regatta.api.checks.names import LONGEST
from regatta.api.openpai.dns_names import job_label

PREFIX = "user-"
#: Of a hash: somebody who may choose the name of their account must not find another's namespace.
DIGITS = 20


def account_namespace(user: str) -> str:
    """Of no two accounts the same: they differ by more than case."""
    return PREFIX + job_label(user.lower(), LONGEST - len(PREFIX), DIGITS)
