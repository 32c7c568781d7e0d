from __future__ import annotations

from pathlib import Path

import pytest

from regatta.api.errors import BadSetting
from regatta.server.transport_rules import Transport, client_address, transport_of

CERT, KEY = Path("cert.pem"), Path("key.pem")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost"])
def test_this_machine_may_speak_plainly_to_itself(host: str) -> None:
    assert transport_of(host) == Transport(None, False)
    assert not transport_of(host).secure


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "train.example", "", "127.0.0"])
def test_beyond_it_passwords_do_not_travel_in_clear(host: str) -> None:
    with pytest.raises(BadSetting, match=r"--tls-cert FILE and --tls-key FILE, or --behind-proxy"):
        transport_of(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_tls_or_a_proxy_is_a_way_out(host: str) -> None:
    tls = transport_of(host, tls_cert=CERT, tls_key=KEY)
    assert tls == Transport((CERT, KEY), False)
    proxy = transport_of(host, behind_proxy=True)
    assert proxy == Transport(None, True)
    assert tls.secure
    assert proxy.secure


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [(CERT, None, "--tls-cert needs --tls-key"), (None, KEY, "--tls-key needs --tls-cert")],
)
def test_one_file_is_not_enough(cert: Path | None, key: Path | None, said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        transport_of("127.0.0.1", tls_cert=cert, tls_key=key)


PEER = "127.0.0.1"


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ([], PEER),
        (["192.0.2.1"], "192.0.2.1"),
        (["203.0.113.9, 192.0.2.1"], "192.0.2.1"),
        (["203.0.113.9", "192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1:4711"], "192.0.2.1"),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
        (["2001:DB8::1"], "2001:db8::1"),
        (["fe80::1%eth0"], "fe80::1"),
        (["192.0.2.1, unknown"], PEER),
        (["192.0.2.1,"], PEER),
        ([""], PEER),
    ],
)
def test_the_last_word_is_the_proxys_own(headers: list[str], address: str) -> None:
    assert client_address(PEER, headers, behind_proxy=True) == address


def test_nobody_is_believed_where_there_is_no_proxy() -> None:
    assert client_address(PEER, ["192.0.2.1"], behind_proxy=False) == PEER
