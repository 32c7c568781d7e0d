"""Files that somebody else rotates: mounted tokens, certificates, authorities."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from regatta.engines.kubernetes.access.config_errors import ConfigError

#: Rotated tokens and certificates are noticed within this many seconds.
FRESH_SECONDS = 60.0


class FreshFile:
    """A file that is read again when its content is older than `max_age`.

    A read that fails later keeps the last content: a kubelet swaps mounted tokens by rename, and
    the old one is good for a while yet.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_age: float = FRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._max_age = max_age
        self._clock = clock
        self._read_at = float("-inf")
        self._content = b""

    def read(self) -> bytes:
        now = self._clock()
        if now - self._read_at >= self._max_age:
            try:
                self._content = self.path.read_bytes()
            except OSError as missing:
                if not self._content:
                    raise ConfigError(
                        f"cannot read {self.path}, which the cluster's configuration names: "
                        f"{missing.strerror}"
                    ) from missing
            self._read_at = now
        return self._content

    def expire(self) -> None:
        """Whoever was shown the content did not like it: read it again next time."""
        self._read_at = float("-inf")


def content(source: bytes | FreshFile) -> bytes:
    return source.read() if isinstance(source, FreshFile) else source
