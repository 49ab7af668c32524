"""The other side of the rpc benchmark: answers at once, and floods on request."""

from __future__ import annotations

import json
import os
import sys

DELTA = (
    '{"method":"item/agentMessage/delta","params":{"threadId":"01a1b2c3-0000-7000-8000-00000000000a",'
    '"turnId":"01a1b2c3-0000-7000-8000-00000000000b","itemId":"msg_0000000003",'
    '"delta":"streamed %s"},"emittedAtMs":1763200000000}\n'
)
SIZE = 227  # bytes a line, without its end


def line() -> bytes:
    """One notification of exactly the size that the target names."""
    padding = SIZE + 1 - len(DELTA % "")
    return (DELTA % ("x" * padding)).encode()


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    block = line() * 200
    for request in sys.stdin.buffer:
        message = json.loads(request)
        if "id" not in message:
            continue
        method, result = message["method"], {}
        if method == "initialize":
            result = {"userAgent": "bench/0.166.0", "codexHome": "/", "platformOs": "linux"}
            result["platformFamily"] = "unix"
        write(json.dumps({"id": message["id"], "result": result}).encode() + b"\n")
        if method == "flood":
            for _ in range(message["params"]["count"] // 200):
                write(block)
            write(b'{"method":"flood/end"}\n')


if __name__ == "__main__":
    main()
