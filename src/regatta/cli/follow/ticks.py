"""A blocking stream, read by a thread, so that the one who shows it can also look at the clock."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


class _End:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def ticking(source: Iterable[T], every: float) -> Iterator[T | None]:
    """The source's items in order, and None whenever `every` seconds brought nothing.

    Signals are handled in between, as the waiting is never long. What the source raises is raised
    here. A reader who is slow holds the source back.
    """
    inbox: queue.Queue[T | _End] = queue.Queue(maxsize=64)

    def read() -> None:
        try:
            for item in source:
                inbox.put(item)
        except Exception as error:  # noqa: BLE001 - raised again on the reading side
            inbox.put(_End(error))
        else:
            inbox.put(_End())

    threading.Thread(target=read, name="stream", daemon=True).start()
    while True:
        try:
            item = inbox.get(timeout=every)
        except queue.Empty:
            yield None
            continue
        if not isinstance(item, _End):
            yield item
        elif item.error is not None:
            raise item.error
        else:
            return
