"""An account at a team's server: signing in and out, who one is, and one's tokens."""

from __future__ import annotations

import msgspec

from regatta.client.channel import API, Channel, read
from regatta.daemon.about import NewToken, OwnToken, Whoami

LOGIN = "/api/v2/authn/basic/login"


class SignedIn(msgspec.Struct, frozen=True):
    token: str
    user: str
    admin: bool


class _Tokens(msgspec.Struct):
    items: tuple[OwnToken, ...]


async def sign_in(channel: Channel, name: str, password: str, seconds: int) -> SignedIn:
    body = {"username": name, "password": password, "expiration": seconds}
    return read(channel, await channel.request("POST", LOGIN, body=body), SignedIn)


async def sign_out(channel: Channel) -> None:
    await channel.request("DELETE", f"{API}/session")


async def whoami(channel: Channel) -> Whoami:
    return read(channel, await channel.request("GET", f"{API}/whoami"), Whoami)


async def own_tokens(channel: Channel) -> tuple[OwnToken, ...]:
    return read(channel, await channel.request("GET", f"{API}/tokens"), _Tokens).items


async def new_token(channel: Channel) -> NewToken:
    return read(channel, await channel.request("POST", f"{API}/tokens"), NewToken)


async def revoke_token(channel: Channel, handle: str) -> None:
    await channel.request("DELETE", f"{API}/tokens/{handle}")
