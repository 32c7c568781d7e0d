"""What a server says of itself as a process, and asking it to leave. Nothing about jobs."""

from __future__ import annotations

from regatta.client.channel import API, Channel, read
from regatta.daemon.about import ServerInfo


async def read_info(channel: Channel) -> ServerInfo:
    return read(channel, await channel.request("GET", f"{API}/server"), ServerInfo)


async def ask_to_stop(channel: Channel) -> None:
    await channel.request("POST", f"{API}/server/stop")
