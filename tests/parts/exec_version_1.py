"""A client and a server of version 1 as they first spoke: recorded, and never to be changed.

Both know nothing that came later. What they were told is compared member by member with what was
recorded; a member that they do not know is passed over, as they did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio

from holdfast.failures import Failure
from holdfast.rpc import Transport

Json = dict[str, Any]  # Any: JSON, as it was recorded

SESSION = "f2ded8f7-0a96-4f41-aa6c-753a05fba88b"
ARGV = ("sh", "-c", "echo one; read x; echo got $x; exit 7")
# What was recorded: ">" is what the client said, "<" the server; "-" stands for a new connection.
RECORDED = """
> {"id":1,"method":"initialize","params":{"clientName":"holdfast/0.1.0"}}
< {"id":1,"result":{"sessionId":"f2ded8f7-0a96-4f41-aa6c-753a05fba88b","environmentInfo":{"shell":{"name":"bash","path":"/bin/bash"},"platformOs":"linux","capabilities":{"closeStdin":true,"resize":true,"list":true,"kill":true,"firstRetainedSeq":true,"operator":true}}}}
> {"method":"initialized","params":{}}
> {"id":2,"method":"process/start","params":{"processId":"p","argv":["sh","-c","echo one; read x; echo got $x; exit 7"],"cwd":"file:///","env":{"PATH":"/usr/bin:/bin"},"tty":false,"pipeStdin":true}}
< {"id":2,"result":{"processId":"p","sandboxType":"none"}}
< {"method":"process/output","params":{"processId":"p","seq":1,"stream":"stdout","chunk":"b25lCg=="}}
-
> {"id":1,"method":"initialize","params":{"clientName":"holdfast/0.1.0","resumeSessionId":"f2ded8f7-0a96-4f41-aa6c-753a05fba88b"}}
< {"id":1,"result":{"sessionId":"f2ded8f7-0a96-4f41-aa6c-753a05fba88b","environmentInfo":{"shell":{"name":"bash","path":"/bin/bash"},"platformOs":"linux","capabilities":{"closeStdin":true,"resize":true,"list":true,"kill":true,"firstRetainedSeq":true,"operator":true}}}}
> {"method":"initialized","params":{}}
> {"id":2,"method":"process/read","params":{"processId":"p","afterSeq":1,"maxBytes":1048576,"waitMs":0}}
< {"id":2,"result":{"chunks":[],"nextSeq":2,"exited":false,"exitCode":null,"closed":false,"failure":null,"sandboxDenied":false,"firstRetainedSeq":1}}
> {"id":3,"method":"process/write","params":{"processId":"p","chunk":"d29yZAo=","writeId":"f2ded8f7-0a96-4f41-aa6c-753a05fba88b-p-1"}}
< {"id":3,"result":{"status":"accepted"}}
< {"method":"process/output","params":{"processId":"p","seq":2,"stream":"stdout","chunk":"Z290IHdvcmQK"}}
< {"method":"process/exited","params":{"processId":"p","seq":3,"exitCode":7,"sandboxDenied":false}}
< {"method":"process/closed","params":{"processId":"p","seq":4}}
"""  # noqa: E501  # as it was recorded

# What a server of version 1 left in its state directory after the same process, and more input.
KEY = "ef902c84d1004ddcbda027b0f7468a6b"
STATE = {
    f"sessions/{SESSION}": f'{{"id":"{SESSION}","place":"plain","version":1}}'.encode(),
    f"processes/{KEY}/meta.json": (
        f'{{"key":"{KEY}","session":"{SESSION}","process":"p","argv":["sh","-c","exit 7"],'
        '"tty":false,"started_at_ms":1794746351212,"version":1}'
    ).encode(),
    f"processes/{KEY}/stdout": b"one\ngot word\n",
    f"processes/{KEY}/stderr": b"err\n",
    f"processes/{KEY}/index": bytes.fromhex(
        "48465831010000000000000004000000000000000700000000000000"
        "71e698d7"
        "000000000000000000000000000000000400000000000000010000"
        "00eed67f3a"
        "040000000000000000000000000000000900000000000000010000"
        "005324d9a0"
        "0d0000000000000000000000000000000400000000000000010100"
        "0062a71b32"
        "0d0000000000000004000000000000000000000007000000020000"
        "00d7484b62"
        "0d0000000000000004000000000000000000000000000000030000"
        "00b6db87d1"
    ),
    f"processes/{KEY}/writes": bytes.fromhex(
        "0000000000000000a6eb6d75ebcde4cc9eb39002fd9696fa02000000d7881a5b"
    ),
}
STATE_EVENTS = [(1, "one\n"), (2, "got word\n"), (3, "err\n")]
STATE_EXIT, STATE_NEXT_SEQ = 7, 6


def connections() -> list[list[tuple[str, Json]]]:
    """What was said on each connection, and by whom."""
    parts = RECORDED.split("\n-\n")
    return [
        [(line[0], json.loads(line[2:])) for line in part.strip().splitlines()] for part in parts
    ]


def fits(told: Any, recorded: Any) -> bool:  # Any: any JSON
    """Whether all that was recorded is in what is told, whatever else is."""
    if isinstance(recorded, dict):
        return isinstance(told, dict) and all(
            name in told and fits(told[name], value) for name, value in recorded.items()
        )
    return bool(told == recorded)


class Client1:
    """Says what the client of version 1 said, connection by connection, and hears what it heard."""

    def __init__(self) -> None:
        self._session = SESSION
        self._conversations = iter(connections())

    async def talk(self, transport: Transport) -> list[Json]:
        """Speak on one connection to its end; return what it would not have understood."""
        odd: list[Json] = []
        heard: Iterator[Json] = iter(())
        for who, message in next(self._conversations):
            if who == ">":
                said = json.dumps(message).replace(SESSION, self._session)
                await transport.send([said.encode()])
                continue
            told = next(heard, None)
            while told is None:
                heard = iter([json.loads(line) for line in await transport.receive()])
                told = next(heard, None)
            if message.get("result", {}).get("sessionId"):  # its own, and about its machine
                self._session = told["result"]["sessionId"]
                wanted = message["result"]["environmentInfo"]["capabilities"]
                told, message = told["result"]["environmentInfo"]["capabilities"], wanted
            if not fits(told, message):
                odd.append(told)
        return odd


class Server1:
    """Answers what the server of version 1 answered, connection by connection.

    Like that one it passes over members that it does not know; it hangs up at news that it does
    not know, as Codex does.
    """

    def __init__(self, versions: Json | None = None) -> None:
        self.heard: list[Json] = []
        self._versions = versions
        self._conversations = iter(connections())

    async def serve(self, transport: Transport) -> None:
        """Serve one connection; cut it at the end of what was said there, but for the last."""
        conversation = next(self._conversations)
        answers: dict[str, list[Json]] = {}
        asked = ""
        for who, message in conversation:
            if who == ">":
                asked = message["method"]
                answers[asked] = []
            else:
                answers[asked].append(message)
        try:
            while answers:
                for line in await transport.receive():
                    await self._answer(transport, json.loads(line), answers)
            await anyio.sleep(0.2)
        except Failure:
            return
        finally:
            with anyio.CancelScope(shield=True):
                await transport.aclose()

    async def _answer(self, transport: Transport, asked: Json, answers: dict[str, Any]) -> None:
        self.heard.append(asked)
        replies = answers.pop(asked["method"])
        for reply in replies:
            if "id" in reply:
                reply["id"] = asked["id"]
                if self._versions is not None and asked["method"] == "initialize":
                    reply["result"]["versions"] = self._versions
            await transport.send([json.dumps(reply).encode()])
