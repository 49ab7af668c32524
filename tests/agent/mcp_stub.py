"""An MCP server that does what it is told, also what none should do.

python -m tests.agent.mcp_stub LOG
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

Json = dict[str, Any]  # Any: JSON, as the protocol defines it

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
READS = {"annotations": {"readOnlyHint": True}}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": SCHEMA, **READS},
    {"name": "read", "description": "As one of ours.", "inputSchema": SCHEMA, **READS},
    {"name": "change", "inputSchema": SCHEMA},
    *({"name": name, "inputSchema": SCHEMA, **READS} for name in ("die", "hang", "flood", "fork")),
]


def text(words: str, *, is_error: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}], "isError": is_error}


def called(name: str, arguments: dict[str, str]) -> dict[str, object]:
    match name:
        case "die":
            os._exit(7)
        case "hang":
            time.sleep(600)
        case "flood":
            return text("x" * 2_000_000)
        case "fork":
            child = subprocess.Popen(["sleep", "300"], start_new_session=True)
            return text(str(child.pid))
        case "change":
            return text("it is broken", is_error=True)
        case _:
            pass
    return text(f"{arguments.get('text', '')} {os.environ.get('GIVEN', '')}".strip())


def answered(message: Json) -> Json:
    params: Json = message.get("params") or {}
    match message["method"]:
        case "initialize":
            version = params["protocolVersion"]
            me = {"name": "stub", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": me}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return called(params["name"], params.get("arguments") or {})
        case _:
            return {}


def main(log: str) -> None:
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": answered(message)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
