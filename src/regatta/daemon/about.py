"""What a server says of itself and, where it has accounts, of the asker's: it writes this, and its
clients read it."""

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


class Whoami(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    admin: bool
    groups: tuple[str, ...]
    #: Those that one may submit to.
    virtual_clusters: tuple[str, ...]
    #: Of the engine: where one's jobs are.
    namespace: str
    #: Of the token that was shown.
    kind: str
    #: Null: when it is revoked.
    expires: str | None


class OwnToken(msgspec.Struct, frozen=True, rename="camel"):
    handle: str
    kind: str
    created: str
    expires: str | None
    last_used: str | None
    #: Whether it is the one that asks.
    current: bool


class NewToken(msgspec.Struct, frozen=True):
    #: Shown this once.
    token: str
    handle: str
    kind: str
