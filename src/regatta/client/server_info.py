"""What a server says of itself as a process, and asking it to leave. Nothing about jobs."""

from __future__ import annotations

import msgspec

from regatta.client.channel import API, Channel, read
from regatta.engines.base import Traits


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

    @property
    def traits(self) -> Traits:
        return Traits(engine=self.engine, namespace=self.namespace, takes_shell=self.takes_shell)


async def read_info(channel: Channel) -> ServerInfo:
    return read(channel, await channel.request("GET", f"{API}/server"), ServerInfo)


async def ask_to_stop(channel: Channel) -> None:
    await channel.request("POST", f"{API}/server/stop")
