"""What a server says of itself as a process, and asking it to leave. Nothing about jobs."""

from __future__ import annotations

import msgspec

from regatta.client.channel import Channel, not_regatta
from regatta.engines.base import Traits

API = "/regatta/v1"


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
    answer = await channel.request("GET", f"{API}/server")
    try:
        return msgspec.json.decode(answer, type=ServerInfo)
    except (msgspec.DecodeError, UnicodeDecodeError) as odd:
        raise not_regatta(channel.url, f"its answer cannot be read ({odd})") from odd


async def ask_to_stop(channel: Channel) -> None:
    await channel.request("POST", f"{API}/server/stop")
