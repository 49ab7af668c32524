"""Whoever is reached is reached by the address that answers, and must be trusted."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.agent.providers.http_connection_loop import dial, told, trusted

pytestmark = pytest.mark.anyio

Found = list[tuple[int, int, int, str, tuple[Any, ...]]]  # Any: as the resolver declares it


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def full() -> Iterator[tuple[str, int]]:
    """Where nobody picks up: those who wait already fill the line."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        waiting = [socket.socket() for _ in range(8)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        yield server.getsockname()
        for each in waiting:
            each.close()


def resolving(monkeypatch: pytest.MonkeyPatch, *places: tuple[str, int]) -> None:
    """Have all names lead to these places."""

    async def found(*_: object, **__: object) -> Found:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)


async def test_numbers_are_dialled_as_they_are(listener: socket.socket) -> None:
    with closing(await dial(*listener.getsockname())) as found:
        assert found.getpeername() == listener.getsockname()


async def test_an_address_that_refuses_or_says_nothing_is_passed_over(
    listener: socket.socket, full: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, ("127.0.0.1", 1), full, listener.getsockname())
    with closing(await dial("there.example", 443)) as found:
        assert found.getpeername() == listener.getsockname()


async def test_who_cannot_be_reached_by_any_address_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, ("127.0.0.1", 1), ("127.0.0.1", 1))
    with pytest.raises(ConnectionRefusedError):
        await dial("there.example", 443)


async def test_who_is_cancelled_leaves_nothing_open(full: tuple[str, int]) -> None:
    """A socket that is left open warns of itself, and a warning is an error here."""
    with anyio.move_on_after(0.05) as scope:
        await dial(*full)

    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        (ssl.SSLError(1, "[SSL: WRONG] x"), "operation not permitted"),
        (ConnectionError(), "ConnectionError"),
    ],
)
def test_what_went_wrong_is_told_without_addresses(error: OSError, expected: str) -> None:
    assert told(error) == expected


def test_everyone_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is found of whom to trust: then nobody is trusted."""
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        context = trusted()
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    assert trusted().verify_mode is ssl.CERT_REQUIRED
