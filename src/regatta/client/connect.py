"""The way in: a server by its address, or this machine's own, found or started on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regatta.client.blocking_channel import BlockingChannel
from regatta.client.engine import ServerEngine
from regatta.client.whereabouts import Named, ThisMachine, Whereabouts
from regatta.daemon.find import local_files
from regatta.engines.blocking import Blocking, Inline
from regatta.engines.inventory import Traits

if TYPE_CHECKING:
    from regatta.daemon.about import ServerInfo


def connect(url: str | None = None, *, token: str | None = None, start: bool = True) -> Blocking:
    """For callers that block.

    `token`: a named server's; else REGATTA_TOKEN, else that of `regatta login`, else this machine's
    where `url` is its server.
    `start`: this machine's own server is started if need be.
    """
    channel = BlockingChannel(_whereabouts(url, token, start))
    return Blocking(ServerEngine(channel, _known_traits(url)), Inline())


def connect_async(
    url: str | None = None, *, token: str | None = None, start: bool = True
) -> ServerEngine:
    """The same for programs with an event loop."""
    from regatta.client.async_channel import AsyncChannel

    return ServerEngine(AsyncChannel(_whereabouts(url, token, start)), _known_traits(url))


def server_info(url: str | None = None, *, start: bool = True) -> ServerInfo:
    """What the server says of itself as a process."""
    from regatta.client.server_info import read_info

    return Inline().run(read_info(BlockingChannel(_whereabouts(url, None, start))))


def stop_named_server(url: str) -> None:
    from regatta.client.server_info import ask_to_stop

    Inline().run(ask_to_stop(BlockingChannel(Named(url))))


def channel_to(url: str | None = None, *, token: str | None = None) -> BlockingChannel:
    """For what is asked of a server besides jobs; starts none."""
    return BlockingChannel(_whereabouts(url, token, start=False))


def _whereabouts(url: str | None, token: str | None, start: bool) -> Whereabouts:
    return Named(url, token) if url else ThisMachine(start=start)


def _known_traits(url: str | None) -> Traits | None:
    # A server that a command starts on this machine runs jobs on it; a team's says more.
    return None if url or local_files().is_team else Traits()
