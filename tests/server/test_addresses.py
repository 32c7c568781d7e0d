"""Where a server listens, and as what it may be spoken to."""

from __future__ import annotations

import http.client
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from regatta.daemon.server_files import ServerFiles
from regatta.server.run import _listen, url_of
from tests.doors import Regatta


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HOSTS = [
    "127.0.0.1",
    "0.0.0.0",
    *(pytest.param(host, marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here"))
      for host in ("::1", "::")),
]  # fmt: skip


@contextmanager
def serving(regatta: Regatta, host: str) -> Iterator[str]:
    """The URL that `regatta serve` says."""
    server = regatta.start("serve", "--host", host)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().removeprefix("serving ").strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()


def status_of(url: str, host: str, token: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        headers = {"Host": host, "Authorization": f"Bearer {token}"}
        connection.request("GET", "/regatta/v1/jobs", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("host", HOSTS)
def test_commands_of_this_machine_find_the_server_wherever_it_listens(
    fresh: Regatta, host: str
) -> None:
    with serving(fresh, host) as url:
        assert fresh("get").code == 0
        assert fresh("--server", url, "get").code == 0
        assert fresh("server", "status").code == 0


def test_a_server_on_every_address_takes_addresses_and_its_own_name_but_no_other_name(
    fresh: Regatta,
) -> None:
    with serving(fresh, "0.0.0.0") as url:
        token = fresh.files.token()
        taken = {
            host: status_of(url, host, token)
            for host in ("192.0.2.7:80", "[2001:db8::7]:80", socket.gethostname(), "evil.example",
                         "192.0.2.7.evil.example", "[evil]")
        }  # fmt: skip

    assert list(taken.values()) == [200, 200, 200, 403, 403, 403], taken


def test_a_server_on_one_address_takes_no_other_address(fresh: Regatta) -> None:
    with serving(fresh, "127.0.0.1") as url:
        assert status_of(url, "192.0.2.7", fresh.files.token()) == 403


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
        ("192.0.2.7", "http://192.0.2.7:80"),
    ],
)
def test_the_url_is_one_that_this_machine_can_use(host: str, url: str) -> None:
    assert url_of(host, 80) == url


def test_connections_send_what_they_have_at_once(tmp_path: Path) -> None:
    """Else the body of every second answer waits for the client's word on its head."""
    with (
        _listen(ServerFiles(tmp_path), "127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
