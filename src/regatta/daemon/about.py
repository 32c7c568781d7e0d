"""What a server says of itself: it writes this, and its clients read it."""

from __future__ import annotations

import msgspec

from regatta.engines.inventory import Traits


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    version: str
    pid: int
    url: str = ""
    home: str = ""
    engine: str = "local"
    namespace: str = "default"
    takes_shell: bool = True
    started_at: float = 0.0
    #: False where it runs in the foreground (`regatta serve`).
    guarded: bool = True
    #: What keeps its engine from its work just now.
    notices: tuple[str, ...] = ()

    @property
    def traits(self) -> Traits:
        return Traits(
            engine=self.engine,
            namespace=self.namespace,
            takes_shell=self.takes_shell,
            notices=self.notices,
        )
