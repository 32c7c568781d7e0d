"""A body as it was sent, for routes that read it themselves."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request

from regatta.server.openpai_errors import invalid_parameters


async def whole_body(request: Request) -> bytes:
    """Raises OpenPaiError (400) where its sender hung up: no mistake of ours, and nobody hears."""
    try:
        return await request.body()
    except ClientDisconnect:
        raise invalid_parameters("the body did not come whole") from None
