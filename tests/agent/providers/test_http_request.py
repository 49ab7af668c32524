"""Where requests go, and through whom."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import SettingsUnreadable
from holdfast.agent.providers.http_request import Place, Proxies, Proxy

API = Place("api.there.example", 443)


@pytest.mark.parametrize(
    ("url", "place", "name", "authority"),
    [
        (
            "https://there.example/v1/x",
            Place("there.example", 443, target="/v1/x"),
            "there.example",
            "there.example:443",
        ),
        (
            "https://There.Example:8443",
            Place("there.example", 8443),
            "there.example:8443",
            "there.example:8443",
        ),
        (
            "http://127.0.0.1/v1",
            Place("127.0.0.1", 80, is_secret=False, target="/v1"),
            "127.0.0.1",
            "127.0.0.1:80",
        ),
        (
            "http://[::1]:11434/v1",
            Place("::1", 11434, is_secret=False, target="/v1"),
            "[::1]:11434",
            "[::1]:11434",
        ),
        ("https://[::1]/", Place("::1", 443), "[::1]", "[::1]:443"),
        (
            "https://b\xfccher.example/\xfc b",
            Place("xn--bcher-kva.example", 443, target="/%C3%BC%20b"),
            "xn--bcher-kva.example",
            "xn--bcher-kva.example:443",
        ),
    ],
)
def test_a_place_is_read(url: str, place: Place, name: str, authority: str) -> None:
    found = Place.read(url)

    assert (found, found.name, found.authority) == (place, name, authority)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTP_PROXY": "http://p:1"}, None),  # what is not encrypted stays on this machine
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": "http://p:1"}, Proxy("p", 1)),
        ({"HTTPS_PROXY": "http://p"}, Proxy("p", 80)),
        ({"HTTPS_PROXY": "p:3128"}, Proxy("p", 3128)),
        ({"HTTPS_PROXY": "http://[::1]:3128/"}, Proxy("::1", 3128)),
        ({"HTTPS_PROXY": "http://big:1", "https_proxy": "http://small:1"}, Proxy("small", 1)),
        ({"ALL_PROXY": "http://all:1"}, Proxy("all", 1)),
        ({"HTTPS_PROXY": "http://p:1", "ALL_PROXY": "http://all:1"}, Proxy("p", 1)),
        ({"HTTPS_PROXY": "http://me:a%40b@p:1"}, Proxy("p", 1, "me:a@b")),
        ({"HTTPS_PROXY": "http://me@p:1"}, Proxy("p", 1, "me:")),
    ],
)
def test_who_stands_before_a_place(environment: dict[str, str], expected: Proxy | None) -> None:
    assert Proxies.read(environment).before(API) == expected


@pytest.mark.parametrize(
    ("without", "host", "is_direct"),
    [
        ("", "api.there.example", False),
        ("*", "api.there.example", True),
        ("there.example", "api.there.example", True),
        (".there.example", "api.there.example", True),
        ("*.there.example", "api.there.example", True),
        ("there.example", "there.example", True),
        ("There.Example", "API.there.example", True),
        ("re.example", "api.there.example", False),
        ("other.example, api.there.example", "api.there.example", True),
        ("api.there.example:443", "api.there.example", True),
        ("api.there.example:80", "api.there.example", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "api.there.example", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:443", "10.1.2.3", True),
        ("fd00::/8", "fd00::1", True),
        ("[fd00::1]:443", "fd00::1", True),
        ("fd00::1", "fd00::2", False),
        (",,", "api.there.example", False),
        (".", "api.there.example", False),
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("", "localhost", True),
    ],
)
def test_some_are_reached_without_one(without: str, host: str, is_direct: bool) -> None:
    proxies = Proxies.read({"HTTPS_PROXY": "http://p:1", "NO_PROXY": without})

    assert (proxies.before(Place(host, 443)) is None) == is_direct


@pytest.mark.parametrize(
    "url", ["socks5://p:1", "https://p:1", "http://", "http://p:x", "http://[p"]
)
def test_a_proxy_that_cannot_be_used_is_complained_of_without_its_password(url: str) -> None:
    proxies = Proxies.read({"all_proxy": url.replace("://", "://me:secret@")})
    with pytest.raises(SettingsUnreadable) as raised:
        proxies.before(API)

    assert raised.value.file == "all_proxy"
    assert "secret" not in str(raised.value) + repr(proxies) + repr(raised.value.__context__)


def test_nothing_is_shown_to_a_proxy() -> None:
    proxies = Proxies.read({"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://p:1"})

    assert proxies.before(Place("api.there.example", 80, is_secret=False)) is None


def test_how_we_are_known_to_a_proxy_is_not_shown() -> None:
    proxy = Proxy("p", 1, "me:secret")

    assert proxy.headers == {"proxy-authorization": "Basic bWU6c2VjcmV0"}
    assert "secret" not in repr(proxy)
