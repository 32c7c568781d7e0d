"""What the state folder holds, and how much room it takes."""

from __future__ import annotations

from regatta.controller.retention import Retention
from regatta.engines.inventory import Storage
from regatta.engines.local.folders import size_on_disk
from regatta.engines.local.home import Home
from regatta.engines.local.store.database import Store

#: Folders whose size is not on record.
MOST_LOOKED_AT = 200


class Stock:
    def __init__(self, home: Home, store: Store, retention: Retention) -> None:
        self._home, self._store, self._retention = home, store, retention

    def take(self) -> Storage:
        """Sizes of what has ended are on record, or soon will be; what lives is looked at."""
        read = self._store.read
        counts = read.counts()
        live = sum(size_on_disk(self._home.job(uid)) for uid in read.without_size(MOST_LOOKED_AT))
        database = self._home.database.name
        files = [self._home.path / f"{database}{part}" for part in ("", "-wal", "-shm")]
        return Storage(
            live=counts.live,
            finished=counts.finished,
            runs=counts.runs,
            oldest=counts.oldest,
            log_bytes=counts.log_bytes + live,
            ended_log_bytes=counts.log_bytes,
            database_bytes=sum(file.stat().st_size for file in files if file.exists()),
            aside_bytes=size_on_disk(self._home.aside),
            retention=self._retention,
        )
