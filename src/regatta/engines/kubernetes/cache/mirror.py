"""What changed, told once: from single events, and from the difference that a full list makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from regatta.engines.kubernetes.api.models import KubeObject
from regatta.engines.kubernetes.cache.index import Store

T = TypeVar("T", bound=KubeObject)

#: What was there and what is there now; None for nothing.
Handler = Callable[[T | None, T | None], None]


class Mirror(Generic[T]):
    def __init__(self, store: Store[T]) -> None:
        self.store = store
        self.handlers: list[Handler[T]] = []

    def put(self, thing: T) -> bool:
        """Added or modified; whether that was news."""
        key = thing.metadata.key
        old = self.store.get(key)
        if old is not None:
            if old.metadata.uid != thing.metadata.uid:
                self._drop(key)
                old = None
            elif old.metadata.resource_version == thing.metadata.resource_version:
                return False
        self.store.put(thing)
        self._tell(old, thing)
        return True

    def deleted(self, last: T) -> bool:
        """`last` is the object's final state, which may tell how it ended."""
        key = last.metadata.key
        held = self.store.get(key)
        if held is None or held.metadata.uid != last.metadata.uid:
            return False
        self.store.remove(key)
        self._tell(last, None)
        return True

    def replace(self, things: Iterable[T]) -> int:
        """These are all there are; how many differences that made."""
        present = {thing.metadata.key: thing for thing in things}
        gone = self.store.keys() - present.keys()
        for key in gone:
            self._drop(key)
        return len(gone) + sum(map(self.put, present.values()))

    def _drop(self, key: str) -> None:
        self._tell(self.store.remove(key), None)

    def _tell(self, old: T | None, new: T | None) -> None:
        for handler in self.handlers:
            handler(old, new)
