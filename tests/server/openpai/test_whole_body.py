"""A sender that hangs up in the middle of a body is no mistake of the server's."""

from __future__ import annotations

import logging
import socket
from urllib.parse import urlsplit

import pytest

from tests.server.team.serving import TeamServer

CUT_OFF = "{what} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: 100\r\n\r\nhalf"
READ = (
    "POST /api/v2/authn/basic/login",
    "POST /api/v1/token",
    "POST /api/v2/users",
    "POST /api/v2/jobs",
    "PUT /api/v2/jobs/boss~one/executionType",
    "PUT /api/v2/jobs/boss~one/tag",
    "POST /regatta/v1/jobs",
    "POST /regatta/v1/session",
)


def test_it_is_noted_as_the_senders(server: TeamServer, caplog: pytest.LogCaptureFixture) -> None:
    more = f"Authorization: Bearer {server.admin_token()}\r\n"
    place = urlsplit(server.url)
    assert place.hostname is not None
    for number, what in enumerate(READ, 1):
        with (
            caplog.at_level(logging.ERROR),
            socket.create_connection((place.hostname, place.port or 0)) as end,
        ):
            end.sendall(CUT_OFF.format(what=what, more=more).encode())
            end.shutdown(socket.SHUT_WR)
            entry = server.audited(number)[0]
        assert entry.what == what
        assert 400 <= entry.status < 500, entry
    assert caplog.records == []
