"""What it costs to ask a model, beside what the provider takes.

    python bench/agent_providers.py [--json]

A conversation of turns with one call and one result of 1,000 characters each grows by a turn per
request, over a loopback provider in a process of its own. Processor time is what the asking process
used; writing is measured for itself, before anything is sent.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import process_time

import anyio
from alternating import on_one_core

from holdfast.agent import EnvironmentKeys, Format, HttpModels, Keys, Provider, load_prices
from holdfast.agent.model import (
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.agent.providers.formats import writer
from holdfast.world import SystemClock, SystemRandomSource

LENGTHS, REQUESTS = (10, 2_000, 4_000), 40
CHOICE = ModelChoice("there", "some-model")
TOOLS = tuple(
    ToolSpec(f"tool_{at}", "What it does. " * 20, {"type": "object", "properties": {}})
    for at in range(12)
)
ANSWERS = {
    Format.RESPONSES: (
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "delta": "Ok."},
        {"type": "response.output_item.done", "item": {"type": "function_call", "call_id": "c",
         "name": "tool_1", "arguments": "{}"}},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 9}}},
    ),
    Format.CHAT: (
        {"choices": [{"index": 0, "delta": {"content": "Ok."}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c",
         "function": {"name": "tool_1", "arguments": "{}"}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    ),
    Format.MESSAGES: (
        {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Ok."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
}  # fmt: skip


def conversation(messages: int) -> tuple[PromptMessage, ...]:
    """So many messages, and what is asked after them."""
    said = [PromptMessage("u", UserMessage("Find the bug."))]
    for at in range(messages // 2):
        call = ToolCall(f"call_{at}", "tool_1", '{"path":"src/main.py"}')
        said.append(
            PromptMessage(f"m{at}", ModelMessage("I look.", (), (call,), "there", "some-model"))
        )
        said.append(PromptMessage(f"t{at}", ToolMessage(call.id, "x" * 1_000)))
    return tuple(said)


def serve(form: Format, told: Connection) -> None:
    """Answer every request with the same few events, on one connection after the other."""
    events = "".join(
        f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n" for each in ANSWERS[form]
    ).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    answer = head % len(events) + events
    with socket.create_server(("127.0.0.1", 0)) as server:
        told.send(server.getsockname()[1])
        while True:
            line, _ = server.accept()
            with line, line.makefile("rb", 2**20) as asked:
                while (size := _request(asked.readline)) is not None:
                    asked.read(size)
                    line.sendall(answer)


def _request(line: object) -> int | None:
    """Read the head of a request, and return how long its body is; None at the end."""
    size = None
    while (text := line()) not in (b"", b"\r\n"):  # type: ignore[operator]  # a method of a file
        name, _, value = text.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    return size


def measured(form: Format, messages: int) -> dict[str, object]:
    """Milliseconds of processor time for one request of a conversation of this length."""
    told, tell = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.get_context("fork").Process(
        target=serve, args=(form, tell), daemon=True
    )
    server.start()
    try:
        asked = anyio.run(_asked, form, messages, told.recv())
    finally:
        server.kill()
    return {
        "format": form.value,
        "messages": messages,
        "write, ms CPU": round(_written(form, messages), 2),
        "whole request, ms CPU": round(asked, 2),
        "target": "≤ 2 ms to write",
    }


def _grown(messages: int) -> list[ModelRequest]:
    said = conversation(messages + 2 * REQUESTS)
    return [
        ModelRequest("S" * 4_000, said[: messages + 2 * at + 1], TOOLS) for at in range(REQUESTS)
    ]


def _written(form: Format, messages: int) -> float:
    ours = writer(Provider("there", form, ""))
    taken: list[float] = []
    for prompt in _grown(messages):
        began = process_time()
        ours.body(CHOICE, prompt)
        taken.append((process_time() - began) * 1e3)
    return median(taken)


async def _asked(form: Format, messages: int, port: int) -> float:
    there = Provider("there", form, f"http://127.0.0.1:{port}/v1", "THERE_KEY")
    async with HttpModels(
        {"there": there},
        keys=Keys([EnvironmentKeys({"THERE_KEY": "k"})], file=Path("keys.toml")),
        prices=load_prices(),
        clock=SystemClock(),
        chance=SystemRandomSource(),
    ) as models:
        taken: list[float] = []
        for prompt in _grown(messages):
            began = process_time()
            async with models.answering(CHOICE, prompt) as batches:
                async for _ in batches:
                    pass
            taken.append((process_time() - began) * 1e3)
    return median(taken)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    is_json = parser.parse_args().json
    on_one_core()
    rows = [measured(form, messages) for form in Format for messages in LENGTHS]
    if is_json:
        print(json.dumps({"title": "Asking a model", "rows": rows}))
    else:
        for row in rows:
            print("  ".join(f"{value!s:>12}" for value in row.values()))


if __name__ == "__main__":
    main()
