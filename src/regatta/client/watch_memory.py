"""What a watch has told, so that another connection tells only what is different."""

from __future__ import annotations

Key = tuple[str, str]


class WatchMemory:
    """Keeps a digest per job, not the job: a watcher of thousands stays small."""

    def __init__(self) -> None:
        self._told: dict[Key, int] = {}
        #: Told before this connection, and not seen on it yet.
        self._unseen: set[Key] = set()
        self._synced = False

    def reconnected(self) -> None:
        """What comes now begins again with everything that is there."""
        self._unseen = set(self._told)

    def is_news(self, key: Key, text: str) -> bool:
        digest = hash(text)
        self._unseen.discard(key)
        if self._told.get(key) == digest:
            return False
        self._told[key] = digest
        return True

    def forget(self, key: Key) -> bool:
        """Whether it was known: only then is its end worth telling."""
        self._unseen.discard(key)
        return self._told.pop(key, None) is not None

    def vanished(self) -> list[Key]:
        """Everything that is there has been said: what ended while nobody was connected."""
        gone = [key for key in self._told if key in self._unseen]
        for key in gone:
            self.forget(key)
        return gone

    def first_sync(self) -> bool:
        """True once."""
        first, self._synced = not self._synced, True
        return first
