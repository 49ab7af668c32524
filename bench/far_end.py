"""The other side of the benchmarks: answers at once, and floods on request.

A turn is a flood too: its prompt says of how many deltas.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

Json = dict[str, Any]  # Any: this is a wire
THREAD, TURN = "01a1b2c3-0000-7000-8000-00000000000a", "01a1b2c3-0000-7000-8000-00000000000b"
DELTA = (
    f'{{"method":"item/agentMessage/delta","params":{{"threadId":"{THREAD}","turnId":"{TURN}",'
    '"itemId":"msg_0000000003","delta":"streamed %s"},"emittedAtMs":1763200000000}\n'
)
SIZE = 227  # bytes a line, without its end
BLOCK = 200  # lines that are written at once


def line() -> bytes:
    """One notification of exactly the size that the target names."""
    padding = SIZE + 1 - len(DELTA % "")
    return (DELTA % ("x" * padding)).encode()


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def send(message: Json) -> None:
    write(json.dumps(message).encode() + b"\n")


def flood(count: int) -> None:
    block = line() * BLOCK
    for _ in range(count // BLOCK):
        write(block)


def turn(status: str) -> Json:
    return {"id": TURN, "items": [], "status": status, "error": None}


RESULTS: dict[str, Json] = {
    "initialize": {
        "userAgent": "bench/0.166.0",
        "codexHome": "/",
        "platformFamily": "unix",
        "platformOs": "linux",
    },
    "thread/start": {
        "approvalPolicy": "never",
        "approvalsReviewer": "user",
        "cwd": "/",
        "model": "none",
        "modelProvider": "none",
        "sandbox": {"type": "dangerFullAccess"},
        "thread": {
            "cliVersion": "0.166.0",
            "createdAt": 0,
            "cwd": "/",
            "ephemeral": False,
            "id": THREAD,
            "modelProvider": "none",
            "preview": "",
            "projectId": None,
            "sessionId": THREAD,
            "source": "appServer",
            "status": {"type": "idle"},
            "turns": [],
            "updatedAt": 0,
        },
    },
    "turn/start": {"turn": turn("inProgress")},
}


def main() -> None:
    for request in sys.stdin.buffer:
        message = json.loads(request)
        if "id" not in message:
            continue
        method = message["method"]
        send({"id": message["id"], "result": RESULTS.get(method, {})})
        if method == "flood":
            flood(message["params"]["count"])
            send({"method": "flood/end"})
        elif method == "turn/start":
            about = {"threadId": THREAD}
            send({"method": "turn/started", "params": {**about, "turn": turn("inProgress")}})
            flood(int(message["params"]["input"][0]["text"]))
            send({"method": "turn/completed", "params": {**about, "turn": turn("completed")}})


if __name__ == "__main__":
    main()
