"""Who may speak to the server: a loopback port is open to every program and web page here."""

from __future__ import annotations

import http.client
import json
import stat
from urllib.parse import urlsplit

import pytest

from tests.doors import Regatta


def ask(regatta: Regatta, path: str, headers: dict[str, str]) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection(urlsplit(regatta.address.url).netloc, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def with_token(regatta: Regatta) -> dict[str, str]:
    return {"Authorization": f"Bearer {regatta.files.token()}"}


def test_the_token_opens_the_door(regatta: Regatta) -> None:
    status, body = ask(regatta, "/regatta/v1/jobs", with_token(regatta))

    assert status == 200
    assert body["items"] == []


PATHS = (
    "/regatta/v1/jobs",
    "/regatta/v1/capacity",
    "/regatta/v1/watch",
    "/regatta/v1/openapi.json",
    "/docs",
    "/nowhere",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic TOKEN"},
        {"Authorization": "é"},
    ],
    ids=["no token", "a wrong token", "another scheme", "not even ASCII"],
)
def test_without_the_token_every_path_answers_401(
    regatta: Regatta, path: str, headers: dict[str, str]
) -> None:
    sent = {name: value.replace("TOKEN", regatta.files.token()) for name, value in headers.items()}

    status, body = ask(regatta, path, sent)

    assert status == 401
    assert body["code"] == "Unauthorized"
    assert "server.token" in str(body["message"])


def test_health_needs_no_token_and_names_the_process(regatta: Regatta) -> None:
    status, body = ask(regatta, "/healthz", {})

    address = regatta.files.read()
    assert address is not None
    assert (status, body["status"], body["pid"]) == (200, "ok", address.pid)


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:8000", "null"])
def test_web_pages_are_refused_even_with_the_token(regatta: Regatta, origin: str) -> None:
    status, body = ask(regatta, "/regatta/v1/jobs", {"Origin": origin, **with_token(regatta)})

    assert status == 403
    assert body["code"] == "ForeignOrigin"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_pointed_at_loopback_is_refused(regatta: Regatta, host: str) -> None:
    status, body = ask(regatta, "/regatta/v1/jobs", {"Host": host, **with_token(regatta)})

    assert status == 403
    assert body["code"] == "ForeignHost"


def test_localhost_is_as_good_as_its_number(regatta: Regatta) -> None:
    status, _ = ask(regatta, "/regatta/v1/jobs", {"Host": "localhost:1234", **with_token(regatta)})

    assert status == 200


def test_only_the_owner_may_read_the_token(regatta: Regatta) -> None:
    files = regatta.files

    assert stat.S_IMODE(files.token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700


def test_a_command_without_the_token_says_where_it_is(regatta: Regatta) -> None:
    address = regatta.files.read()
    assert address is not None

    said = regatta("--server", address.url, "get", REGATTA_TOKEN="wrong")

    assert said.code == 5
    assert "REGATTA_TOKEN" in said.err
