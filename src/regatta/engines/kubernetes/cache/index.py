"""Objects by key and by index, each change in constant time however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Generic, TypeVar

from regatta.engines.kubernetes.api.models import KubeObject

T = TypeVar("T", bound=KubeObject)

#: Under which values an object is to be found.
Indexer = Callable[[T], Iterable[str]]


class Store(Generic[T]):
    def __init__(self, indexers: Mapping[str, Indexer[T]]) -> None:
        self._objects: dict[str, T] = {}
        self._indexers = dict(indexers)
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def keys(self) -> KeysView[str]:
        return self._objects.keys()

    def by(self, index: str, value: str) -> ValuesView[T]:
        """A live view: copy it before awaiting anything."""
        return self._indexes[index].get(value, {}).values()

    def values(self, index: str) -> Iterable[str]:
        """Every value that at least one object is filed under."""
        return self._indexes[index].keys()

    def put(self, thing: T) -> None:
        key = thing.metadata.key
        old = self._objects.get(key)
        if old is not None:
            self._unfile(key, old)
        self._objects[key] = thing
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(thing):
                index.setdefault(value, {})[key] = thing

    def remove(self, key: str) -> T | None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._unfile(key, old)
        return old

    def _unfile(self, key: str, thing: T) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(thing):
                filed = index[value]
                del filed[key]
                if not filed:
                    del index[value]


def by_controller(thing: KubeObject) -> Iterable[str]:
    """Under the uid of the owner that manages it."""
    uid = thing.metadata.controller_uid
    return (uid,) if uid else ()


def by_label(label: str) -> Callable[[KubeObject], Iterable[str]]:
    """Under `namespace/value` of a label."""

    def index(thing: KubeObject) -> Iterable[str]:
        value = thing.metadata.labels.get(label)
        return (f"{thing.metadata.namespace}/{value}",) if value else ()

    return index
