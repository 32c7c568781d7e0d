"""An operator as a process: an event loop, signals, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import signal

from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.operator.leader import LeadershipLost
from regatta.engines.kubernetes.operator.operator import Operator, OperatorSettings

_log = logging.getLogger(__name__)


def run_operator(access: ClusterAccess, settings: OperatorSettings) -> bool:
    """Until SIGTERM or SIGINT (True), or until somebody else may lead (False)."""
    return asyncio.run(_run(Operator(access, settings)))


async def _run(operator: Operator) -> bool:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await operator.run(stop)
    except LeadershipLost as lost:
        # The process ends, so that nothing half done goes on; whoever started it starts another.
        _log.error("%s", lost)
        return False
    return True
