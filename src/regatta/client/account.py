"""An account at a team's server: signing in and out, who one is, one's password and tokens."""

from __future__ import annotations

import msgspec

from regatta.api.errors import RegattaError
from regatta.client.channel import API, Channel, read
from regatta.daemon.about import NewToken, OwnToken, Whoami

LOGIN = "/api/v2/authn/basic/login"
OWN_ACCOUNT = "/api/v2/users/me"
ABOUT_SIGN_IN = "/api/v2/authn/info"


class SignedIn(msgspec.Struct, frozen=True):
    token: str
    user: str
    admin: bool


class _AboutSignIn(msgspec.Struct):
    authn_type: str


class _Tokens(msgspec.Struct):
    items: tuple[OwnToken, ...]


async def sign_in(channel: Channel, name: str, password: str, seconds: int) -> SignedIn:
    body = {"username": name, "password": password, "expiration": seconds}
    return read(channel, await channel.request("POST", LOGIN, body=body), SignedIn)


async def look_for_accounts(channel: Channel) -> None:
    """That one can sign in there; whoever asks needs not be known."""
    read(channel, await channel.request("GET", ABOUT_SIGN_IN), _AboutSignIn)


async def has_accounts(channel: Channel) -> bool:
    try:
        await look_for_accounts(channel)
    except RegattaError:
        return False
    return True


async def sign_out(channel: Channel) -> None:
    await channel.request("DELETE", f"{API}/session")


async def whoami(channel: Channel) -> Whoami:
    return read(channel, await channel.request("GET", f"{API}/whoami"), Whoami)


async def change_password(channel: Channel, name: str, old: str, new: str) -> None:
    """One's own. Ends the account's other sign-ins, and not the one that asks."""
    data = {"username": name, "oldPassword": old, "newPassword": new}
    await channel.request("PUT", OWN_ACCOUNT, body={"data": data, "patch": True})


async def own_tokens(channel: Channel) -> tuple[OwnToken, ...]:
    return read(channel, await channel.request("GET", f"{API}/tokens"), _Tokens).items


async def new_token(channel: Channel) -> NewToken:
    return read(channel, await channel.request("POST", f"{API}/tokens"), NewToken)


async def revoke_token(channel: Channel, handle: str) -> None:
    await channel.request("DELETE", f"{API}/tokens/{handle}")
