"""Connecting with the real Codex and asking it anything: what is refused, and how that is said."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import anyio
import pytest

from holdfast.codex import ConnectionState, ServerHealth
from holdfast.codex.failures import CodexStartupFailed
from holdfast.rpc.failures import (
    ConnectionClosed,
    ErrorResponse,
    HandshakeRepeated,
    MessageTooLarge,
    Unencodable,
)
from tests.journeys.stage import linux_only, playing, staged
from tests.parts.codex_binary import codex_binary
from tests.parts.model_acts import Say

pytestmark = pytest.mark.anyio

MB = 1_000_000


@pytest.mark.promise("F1", "F17")
async def test_a_missing_home_is_told_in_the_words_of_the_server(tmp_path: Path) -> None:
    async with staged(tmp_path, []) as stage:
        stage.env["CODEX_HOME"] = str(tmp_path / "nowhere")
        with pytest.raises(CodexStartupFailed) as failed:
            async with stage.connect():
                pass

    assert (failed.value.status, failed.value.retryable) == (1, False)
    assert str(tmp_path / "nowhere") in failed.value.stderr
    assert "CODEX_HOME" in failed.value.stderr


@pytest.mark.promise("F1")
@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["app-server", "--no-such-flag"], 2, "--no-such-flag"),
        (["app-server", "-c", "model_provider=nowhere"], 1, "nowhere"),
    ],
)
async def test_a_command_line_that_makes_no_sense_is_told(
    arguments: list[str], status: int, word: str, tmp_path: Path
) -> None:
    async with staged(tmp_path, []) as stage:
        with pytest.raises(CodexStartupFailed) as failed:
            async with stage.connect(command=[codex_binary(), *arguments]):
                pass

    assert failed.value.status == status
    assert word in failed.value.stderr


@pytest.mark.promise("F1", "F8")
async def test_a_broken_config_is_refused_with_its_place(tmp_path: Path) -> None:
    async with staged(tmp_path, []) as stage:
        config = tmp_path / "codex-home" / "config.toml"
        config.write_text("model = [broken")
        with pytest.raises(CodexStartupFailed) as failed:
            async with stage.connect(command=[codex_binary(), "app-server", "--strict-config"]):
                pass
        async with stage.connect() as server:  # without being strict, the server starts
            with pytest.raises(ErrorResponse) as refused:
                await server.start_thread(cwd=tmp_path)
            assert (await server.health()).healthy

    assert refused.value.method == "thread/start"
    for said in (failed.value.stderr, refused.value.error_message):
        assert f"{config}:1:16" in said


@pytest.mark.promise("F6")
async def test_a_second_handshake_never_reaches_the_server(tmp_path: Path) -> None:
    async with playing(tmp_path, []) as (_, server, _):
        with pytest.raises(HandshakeRepeated):
            await server.request("initialize", {"clientInfo": {"name": "x", "version": "0"}})
        assert (await server.health()).healthy


@pytest.mark.promise("F8")
@pytest.mark.parametrize(
    ("method", "params", "code", "word"),
    [
        ("no/such/method", {}, -32600, "no/such/method"),
        ("thread/resume", {"threadId": 5}, -32600, "expected a string"),
        ("turn/start", {"threadId": "x", "input": []}, -32600, "x"),
        ("fs/readFile", {"path": "/nowhere/at/all"}, -32603, ""),
    ],
)
async def test_what_the_server_refuses_reaches_the_caller_whole(
    method: str, params: object, code: int, word: str, tmp_path: Path
) -> None:
    async with playing(tmp_path, []) as (_, server, _):
        with pytest.raises(ErrorResponse) as refused:
            await server.request(method, params)
        assert (await server.health()).healthy

    assert (refused.value.method, refused.value.error_code) == (method, code)
    assert word in refused.value.error_message
    assert isinstance(refused.value.request, int)


async def test_input_that_is_too_long_is_refused_with_the_numbers(tmp_path: Path) -> None:
    async with playing(tmp_path, [[Say("Fine.")]]) as (_, _, thread):
        with pytest.raises(ErrorResponse) as refused:
            await thread.ask("x" * 1_048_577)
        assert (await thread.ask("x")).text == "Fine."

    assert refused.value.error_code == -32602
    assert isinstance(refused.value.error_data, dict)
    assert refused.value.error_data["actual_chars"] == 1_048_577


@pytest.mark.parametrize("text", ["\ud800", float("nan"), object()], ids=type)
async def test_what_the_server_would_never_answer_is_never_sent(
    text: object, tmp_path: Path
) -> None:
    async with playing(tmp_path, []) as (_, server, _):
        with pytest.raises(Unencodable):
            await server.request("thread/name/set", {"threadId": text})
        assert (await server.health()).healthy


@pytest.mark.promise("F25")
async def test_health_is_what_the_server_shows(tmp_path: Path) -> None:
    async with playing(tmp_path, []) as (_, server, _):
        assert await server.health() == ServerHealth(True)
    gone = await server.health()

    assert (gone.healthy, type(gone.failure)) == (False, ConnectionClosed)
    assert gone.reason


@pytest.mark.promise("F22")
async def test_a_full_house_of_requests_is_answered(tmp_path: Path) -> None:
    async with playing(tmp_path, []) as (_, server, _):
        answers: list[object] = []

        async def ask() -> None:
            answers.append(await server.request("thread/list", {"limit": 1}))

        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(ask)

    assert len(answers) == 100


@linux_only
@pytest.mark.promise("F18")
async def test_a_message_over_the_limit_ends_the_connection_in_bounded_memory(
    tmp_path: Path,
) -> None:
    big = huge_file(tmp_path)
    async with playing(tmp_path, []) as (stage, server, _):
        before = peak_bytes(reset=True)
        with pytest.raises(MessageTooLarge) as failed:
            await server.request("fs/readFile", {"path": str(big)})
        grown = peak_bytes() - before
        assert server.state is ConnectionState.CRASHED
    assert failed.value.bytes_max == 100 * 2**20
    assert stage.living() == {}
    assert grown < 150 * MB


@pytest.mark.promise("F18")
async def test_a_giant_message_is_delivered_whole_where_the_limit_allows(tmp_path: Path) -> None:
    big = huge_file(tmp_path)
    async with playing(tmp_path, [], message_bytes_max=130 * MB) as (_, server, _):
        answer = await server.request("fs/readFile", {"path": str(big)})
        assert (await server.health()).healthy

    assert isinstance(answer, dict)
    data = base64.b64decode(answer["dataBase64"])
    assert hashlib.sha256(data).digest() == hashlib.sha256(big.read_bytes()).digest()


def huge_file(place: Path) -> Path:
    """90 MB, which make a line of 120 MB."""
    file = place / "huge"
    block = bytes(range(250)) * 4000
    with file.open("wb") as out:
        for _ in range(90):
            out.write(block)
    return file


def peak_bytes(*, reset: bool = False) -> int:
    """The most memory that this process had since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(peak) * 1024
