"""Another spelling of a path or method opens nothing that the plain one does not."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from regatta.server.accounts.visibility import Visibility
from regatta.server.team.gate import OPEN
from tests.server.team.authorisation.operations import OPERATIONS
from tests.server.team.authorisation.world import OWNER, As, World, a_world, kept
from tests.server.team.serving import PATIENCE

SECRET = "speaks"

SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda path: path,
    "a slash behind": lambda path: path + "/",
    "slashes behind": lambda path: path + "///",
    "the gateway before": lambda path: "/rest-server" + path,
    "the gateway twice": lambda path: "/rest-server/rest-server" + path,
    "the gateway, escaped": lambda path: "/rest%2Dserver" + path,
    "two slashes before": lambda path: "/" + path,
    "two slashes within": lambda path: path.replace("/jobs", "//jobs"),
    "dots before": lambda path: "/healthz/.." + path,
    "dots before, escaped": lambda path: "/healthz/%2e%2e" + path,
    "dots and slash, escaped": lambda path: "/healthz%2f..%2f" + path[1:],
    "dots behind what is signed": lambda path: "/api/v2/logs/../../.." + path,
    "dots behind what is signed, escaped": lambda path: "/api/v2/logs/%2e%2e/%2e%2e/%2e%2e" + path,
    "what is signed, and slashes": lambda path: "/api/v2/logs//" + path,
    "a dot": lambda path: "/." + path,
    "upper case": lambda path: path.upper(),
    "escaped": lambda path: "/" + "".join(f"%{ord(c):02x}" for c in path[1:]),
    "a semicolon": lambda path: path + ";/healthz",
    "a question": lambda path: path + "?/healthz",
    "a fragment": lambda path: path + "%23/healthz",
    "an end, escaped": lambda path: path + "%00",
    "a line's end, escaped": lambda path: path + "%0a",
    "a backslash": lambda path: path.replace("/", "\\"),
    "a whole address": lambda path: "http://127.0.0.1" + path,
}
METHODS = ("GET", "HEAD", "get", "Get", "POST", "OPTIONS", "QUERY", "DELETE", "PUT", "PATCH")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("world"), Visibility.OWN) as made:
        yield made


def ask(world: World, method: str, target: str, who: As) -> tuple[int, str]:
    """Exactly these bytes, which a library might have tidied."""
    place = urlsplit(world.server.url)
    token = world.tokens[who]
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"{method} {target} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n{shown}\r\n"
    with closing(socket.create_connection((place.hostname, place.port), PATIENCE)) as connection:
        connection.sendall(head.encode())
        answer = http.client.HTTPResponse(connection, method=method.upper())
        answer.begin()
        return answer.status, answer.read().decode()


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("who", [As.NONE, As.GARBAGE, As.EXPIRED, As.OTHER], ids=str)
def test_no_spelling_of_a_path_passes_the_gate(world: World, spelling: str, who: As) -> None:
    before = world.kept_job()
    name, spelt = kept(OWNER), SPELLINGS[spelling]
    paths = (f"{world.at(OWNER, name)}", f"{world.at(OWNER, name)}/logs")
    theirs = (f"/api/v2/jobs/{OWNER}~{name}", f"/api/v1/user/{OWNER}/jobs/{name}/config")
    for path in (*paths, *theirs):
        for method in METHODS:
            status, said = ask(world, method, spelt(path), who)
            assert status not in range(200, 400) or method == "OPTIONS", (method, spelt(path))
            assert status < 500, (method, spelt(path), said)
            assert SECRET not in said
            assert who.known or status in (400, 401, 404), (method, spelt(path), status)
    assert world.kept_job() == before


@pytest.mark.parametrize("spelling", ["a slash behind", "slashes behind", "the gateway before"])
def test_what_openpai_s_clients_send_means_the_plain_path(world: World, spelling: str) -> None:
    path = f"/api/v2/jobs/{OWNER}~{kept(OWNER)}"

    assert ask(world, "GET", SPELLINGS[spelling](path), As.OWNER)[0] == 200


def test_an_open_path_is_open_for_its_own_method_alone(world: World) -> None:
    for method, path in sorted(OPEN):
        for other in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {method}:
            if (other, path) not in OPEN:
                assert ask(world, other, path, As.NONE)[0] == 401, (other, path)


def test_what_is_open_is_declared(world: World) -> None:
    assert set(OPERATIONS) >= OPEN


def test_a_head_of_a_path_that_has_none_is_no_answer(world: World) -> None:
    status, said = ask(world, "HEAD", world.at(OWNER, kept(OWNER)), As.OWNER)

    assert (status, said) == (405, "")
