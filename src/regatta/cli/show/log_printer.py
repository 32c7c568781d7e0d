"""Log lines for people: whose line it is, in a colour of its own, then the text."""

from __future__ import annotations

from regatta.cli.show.ansi import REPLICA_COLOURS, Paint, harmless
from regatta.engines.base import LogLine


class LogPrinter:
    def __init__(self, paint: Paint, *, timestamps: bool = False, terminal: bool = False) -> None:
        self._paint = paint
        self._timestamps = timestamps
        self._terminal = terminal
        self._colours: dict[str, str] = {}
        self._width = 0

    def expect(self, replicas: list[str]) -> None:
        """Names that will come, so that prefixes line up and colours are the same every time."""
        for replica in replicas:
            self._colour(replica)

    def line(self, line: LogLine) -> str:
        colour = self._colour(line.pod)
        prefix = self._paint(f"{line.pod:<{self._width}} |", colour)
        when = f"{line.at} " if self._timestamps else ""
        text = harmless(line.text) if self._terminal else line.text
        return f"{prefix} {when}{text}"

    def _colour(self, replica: str) -> str:
        if replica not in self._colours:
            self._width = max(self._width, len(replica))
            self._colours[replica] = REPLICA_COLOURS[len(self._colours) % len(REPLICA_COLOURS)]
        return self._colours[replica]
