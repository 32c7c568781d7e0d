"""When to look at which job again. A job has one timer at a time; a new one replaces the old."""

from __future__ import annotations

import heapq


class Timers:
    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set_due(self, uid: str, due: float | None) -> None:
        if due is None:
            self._due.pop(uid, None)
        elif self._due.get(uid) != due:
            self._due[uid] = due
            heapq.heappush(self._heap, (due, uid))
            if len(self._heap) > 64 + 4 * len(self._due):  # mostly replaced timers
                self._heap = [(at, who) for who, at in self._due.items()]
                heapq.heapify(self._heap)

    def next(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # replaced since
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> set[str]:
        due = set()
        while (first := self.next()) is not None and first <= now:
            _, uid = heapq.heappop(self._heap)
            del self._due[uid]
            due.add(uid)
        return due

    def take_all(self) -> set[str]:
        """The wall clock jumped: everybody looks again."""
        everybody = set(self._due)
        self._due.clear()
        self._heap.clear()
        return everybody
