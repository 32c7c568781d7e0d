"""What changed since a reader last looked.

Of each object only its newest state: a reader who is slow holds back nobody, and keeps no more than
there are objects.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Generic, TypeVar

from regatta.engines.kubernetes.api.models import KubeObject, Metadata

T = TypeVar("T", bound=KubeObject)


class Unread(Generic[T]):
    def __init__(self) -> None:
        #: By uid: one that was replaced under its name is told as gone, then as new.
        self._newest: dict[str, tuple[Metadata, T | None]] = {}
        self._news = asyncio.Event()

    def changed(self, old: T | None, new: T | None) -> None:
        """A `Handler`."""
        thing = new or old
        assert thing is not None
        self._newest.pop(thing.metadata.uid, None)  # it goes to the end
        self._newest[thing.metadata.uid] = thing.metadata, new
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Whether there is something to read."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        return self._news.is_set()

    def take(self) -> list[tuple[Metadata, T | None]]:
        """In the order of their last change; None for what is no more."""
        taken, self._newest = list(self._newest.values()), {}
        self._news.clear()
        return taken
