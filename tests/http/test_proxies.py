"""Which proxy the environment means, and which addresses it exempts."""

from __future__ import annotations

import pytest

from regatta.http.failures import Misconfigured
from regatta.http.proxies import checked, proxy_for

LAB = "https://api.lab.example:6443"


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        (LAB, {}, ""),
        (LAB, {"HTTPS_PROXY": "http://a:1"}, "http://a:1"),
        (LAB, {"https_proxy": "http://a:1"}, "http://a:1"),
        (LAB, {"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:1"}, "http://a:1"),
        (LAB, {"HTTPS_PROXY": "", "https_proxy": "http://b:1"}, "http://b:1"),
        (LAB, {"HTTPS_PROXY": "a:1"}, "http://a:1"),
        (LAB, {"HTTPS_PROXY": "socks5h://a"}, "socks5h://a"),
        (LAB, {"HTTP_PROXY": "http://a:1"}, ""),
        ("http://api.lab.example", {"HTTP_PROXY": "http://a:1"}, "http://a:1"),
    ],
)
def test_the_environment_names_a_proxy_for_each_scheme(
    server: str, environment: dict[str, str], proxy: str
) -> None:
    assert proxy_for(server, environment) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://198.18.0.1:443", "", True),
        ("https://198.18.0.1:443", "198.18.0.0/15", False),
        ("https://198.18.0.1:443", "198.18.0.1", False),
        ("https://198.18.0.1:443", "203.0.113.0/24", True),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("https://api.lab.example:6443", "lab.example", False),
        ("https://api.lab.example:6443", ".lab.example", False),
        ("https://lab.example:6443", ".lab.example", True),
        ("https://api.lab.example:6443", "lab.example:443", True),
        ("https://api.lab.example:6443", "lab.example:6443", False),
        ("https://api.lab.example:6443", "other.example,*", False),
        ("https://api.lab.example:6443", "*.lab.example", False),
        ("https://API.lab.example:6443", "LAB.example", False),
        ("https://otherlab.example:6443", "lab.example", True),
        ("https://[fd00::1]:6443", "", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "[fd00::1]:443", True),
        ("https://[::1]:6443", "", False),
    ],
)
def test_no_proxy_is_read_as_kubectl_reads_it(server: str, no_proxy: str, proxied: bool) -> None:
    environment = {"https_proxy": "proxy.example:3128", "NO_PROXY": no_proxy}
    assert proxy_for(server, environment) == ("http://proxy.example:3128" if proxied else "")


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("ftp://a:1", r"\$X is 'ftp://a:1'; it should be a URL that begins with http://, https://"),
        ("http://", "it should be a URL"),
        ("http://a:many", "it should be a URL"),
        ("http://[fd00::1", "it should be a URL"),
        ("socks5://ada:secret@a:1", "a SOCKS5 proxy with a user name is not supported"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_explained(proxy: str, said: str) -> None:
    with pytest.raises(Misconfigured, match=said) as raised:
        checked(proxy, "$X")
    assert "secret" not in str(raised.value)
