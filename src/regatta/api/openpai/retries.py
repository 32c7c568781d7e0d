"""How often a job of OpenPAI's starts again, and after which ends it never does."""

from __future__ import annotations

from typing import Any, Literal

#: Ends that OpenPAI calls the user's own, and permanent: signals for a program's mistakes, a full
#: disk, a missing image, barriers that cannot open, and what it recognised in a log.
_NEVER = (132, 135, 136, 141, 198, *range(220, 223), *range(224, 236), 249, 252, 254)
#: A segmentation fault is that in v1 alone, which has a number for running out of memory, too.
_NEVER_IN_V1 = (139, 196)
FOR_EVER = -1
MOST_RETRIES = 1000


def run_policy(
    retries: int, protocol: Literal[1, 2], *, each_alone: bool = False
) -> dict[str, Any]:
    """`each_alone`: a replica that fails starts again, and not the job."""
    if retries == 0:
        return {}
    codes = sorted(_NEVER if protocol == 2 else (*_NEVER, *_NEVER_IN_V1))
    policy: dict[str, Any] = {
        "backoffLimit": retries,
        "noRetry": {"exitCodes": codes, "reasons": ["OOMKilled"]},
    }
    return {**policy, "restartScope": "Replica"} if each_alone else policy
