"""Asked the same, our exec-server and Codex's own answer the same."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.exec.server.talking import Json, command
from tests.journeys.stage import linux_only
from tests.parts.codex_binary import codex_binary

pytestmark = [pytest.mark.anyio, linux_only]

ENV = {"PATH": "/usr/bin:/bin"}
SOURCES = str(Path("src").absolute())


@asynccontextmanager
async def speaking(argv: Sequence[str], home: Path) -> AsyncIterator[Any]:
    """Ask a server on its standard input, one question at a time."""
    env = {**ENV, "CODEX_HOME": str(home), "HOME": str(home), "TMPDIR": "/var/tmp"}
    env |= {"PYTHONPATH": SOURCES}
    process = await anyio.open_process(list(argv), env=env, stderr=None)
    assert process.stdin is not None and process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)
    numbers = iter(range(1, 1000))

    async def ask(method: str, params: Json | None) -> Json:
        number = next(numbers)
        message = {"id": number, "method": method, "params": params}
        await process.stdin.send(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
        with anyio.fail_after(60):
            while True:
                answer: Json = json.loads(await lines.receive_until(b"\n", 2**26))
                if answer.get("id") == number:
                    return answer

    async with process:
        await ask("initialize", {"clientName": "parity"})
        await process.stdin.send(b'{"method":"initialized"}\n')
        yield ask
        await process.stdin.aclose()


def conversation(place: Path) -> list[tuple[str, Json | None]]:
    """Questions whose answers depend on nothing but the server's manners."""
    at = f"file://{place}"
    start = {"processId": "a", "argv": ["true"], "cwd": at, "env": ENV, "tty": False}
    names = ["plain", "sp ace", "per%25cent", "q%3Fuery", "%5Bx%5D", "a+b&c=d;e,f", "t~i'l*e(1)!$"]
    names += [
        "%C3%A9",
        "%22quote%22",
        "back%5Cslash",
        "curly%7B%7D",
        "pipe|",
        "%3Ctag%3E",
        "co:lon@",
    ]
    return [
        *(("fs/writeFile", {"path": f"{at}/{name}", "dataBase64": "aGk="}) for name in names),
        *(("fs/canonicalize", {"path": f"{at}/{name}"}) for name in names),
        ("environment/status", None),
        ("environment/status", {"x": 1}),
        ("no/such", {}),
        ("initialize", {"clientName": "again"}),
        ("process/start", {**start, "argv": []}),
        ("process/start", {**start, "argv": ["/no/such"]}),
        ("process/start", {**start, "cwd": "/tmp"}),
        ("process/start", {**start, "cwd": "http://x/"}),
        ("process/start", {**start, "cwd": "file:///no/such"}),
        ("process/start", {"processId": "a"}),
        ("process/start", start),
        ("process/start", start),
        ("process/read", {"processId": "none"}),
        ("process/read", {"processId": "a", "afterSeq": 1, "waitMs": 5000}),  # until it is closed
        ("process/write", {"processId": "none", "chunk": "", "writeId": "1"}),
        ("process/write", {"processId": "a", "chunk": "", "writeId": ""}),
        ("process/write", {"processId": "a", "chunk": "*", "writeId": "1"}),
        ("process/write", {"processId": "a", "chunk": "eA==", "writeId": "1"}),
        ("process/signal", {"processId": "none", "signal": "interrupt"}),
        ("process/terminate", {"processId": "none"}),
        ("process/terminate", {"processId": "a"}),
        ("fs/readFile", {"path": f"{at}/plain"}),
        ("fs/readFile", {"path": f"{at}/none"}),
        ("fs/readFile", {"path": at}),
        ("fs/readFile", {"path": str(place)}),
        ("fs/readFile", {"path": "file://host/x"}),
        ("fs/getMetadata", {"path": f"{at}/none"}),
        ("fs/getMetadata", {"path": f"{at}/plain/x"}),
        ("fs/createDirectory", {"path": f"{at}/d/e"}),
        ("fs/createDirectory", {"path": f"{at}/d", "recursive": False}),
        ("fs/copy", {"sourcePath": f"{at}/d", "destinationPath": f"{at}/f", "recursive": False}),
        ("fs/remove", {"path": f"{at}/none", "force": False}),
        ("fs/remove", {"path": f"{at}/d", "recursive": False}),
        ("fs/remove", {"path": f"{at}/d"}),
        ("fs/open", {"handleId": "h", "path": f"{at}/plain"}),
        ("fs/open", {"handleId": "h", "path": f"{at}/plain"}),
        ("fs/readBlock", {"handleId": "h", "offset": 1, "len": 9}),
        ("fs/readBlock", {"handleId": "none", "offset": 1, "len": 9}),
        ("fs/close", {"handleId": "h"}),
        ("http/request", {"method": "GET", "url": "x", "headers": [], "requestId": "1"}),
        ("http/request", {"method": "G T", "url": "http://x", "headers": [], "requestId": "1"}),
    ]


async def said(argv: Sequence[str], home: Path, place: Path) -> list[object]:
    """What a server answers: results whole but for what is ours alone, errors by their code."""
    answers: list[object] = []
    async with speaking(argv, home) as ask:
        for method, params in conversation(place):
            answer = await ask(method, params)
            if "error" in answer:
                answers.append((method, answer["error"]["code"]))
            else:
                for ours in ("firstRetainedSeq", "hasMore"):
                    answer["result"].pop(ours, None)
                answers.append((method, answer["result"]))
    return answers


async def test_both_servers_answer_the_same(tmp_path: Path) -> None:
    place, home = tmp_path / "place", tmp_path / "home"
    place.mkdir()
    home.mkdir()
    theirs = await said([str(codex_binary()), "exec-server", "--listen", "stdio"], home, place)
    ours = await said(command("--listen", "stdio"), home, place)

    assert ours == theirs
