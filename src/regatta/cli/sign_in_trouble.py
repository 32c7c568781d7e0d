"""Why a server did not let somebody in, as far as this side can tell: what is kept of sign-ins says
more than a refusal may."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime


def not_let_in(refusal: str, server: str | None) -> tuple[str, str]:
    """What is wrong, and what to do; `server` is the address of one that the person named."""
    if "server.token" in refusal:  # one person's: it has no accounts
        return refusal, "Set REGATTA_TOKEN to the server's token." if server else ""
    url = server or _team_here()
    if not url:  # it is gone, after it refused
        return refusal, "`regatta login` with the server's address signs in."
    if os.environ.get("REGATTA_TOKEN", "").strip():
        return (
            f"the token in REGATTA_TOKEN is not good at {url}: it was revoked, has expired, or is "
            "another server's",
            f"Unset it and `regatta login {url}`, or make another with `regatta tokens create`.",
        )
    from regatta.client.credentials import stored_credential

    stored = stored_credential(url)
    if stored is None:
        return not_signed_in(url)
    again = f"`regatta login {url}` signs in again."
    if 0 < stored.expires <= time.time():
        ended = datetime.fromtimestamp(stored.expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"your sign-in at {url} has expired, since {ended}", again
    return (
        f"your sign-in at {url} is no longer good: it was revoked, or the password has changed",
        again,
    )


def not_signed_in(url: str) -> tuple[str, str]:
    from regatta.client.credentials import signed_in_at

    hint = f"Sign in: `regatta login {url}`."
    if others := list(signed_in_at()):
        which = "which counts as another server" if len(others) == 1 else "which are other servers"
        hint += f" You are signed in at {', '.join(others)}, {which}."
    return f"you are not signed in at {url}", hint


def _team_here() -> str:
    from regatta.daemon.find import local_files

    address = local_files().read()
    return address.url if address else ""
