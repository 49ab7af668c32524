"""What a scripted model may do in reply to one request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

Event = dict[str, Any]  # Any: JSON, as the API defines it


@dataclass(frozen=True, slots=True)
class Say:
    """A message of the assistant, in so many deltas; unfinished, it never gets its end."""

    text: str
    deltas: int = 1
    pause: float = 0.0  # seconds before each delta
    finished: bool = True


@dataclass(frozen=True, slots=True)
class Think:
    """A summary of reasoning."""

    summary: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function tool; several in one reply run in parallel.

    A tool of an MCP server is called by its name and that of its `namespace`.
    """

    tool: str
    arguments: Mapping[str, object]
    call_id: str = "call_1"
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """A call of the free-form tool `apply_patch`."""

    text: str
    call_id: str = "call_patch"


@dataclass(frozen=True, slots=True)
class Pause:
    """So many seconds of silence."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Silence until the test opens the gate."""

    opened: anyio.Event


@dataclass(frozen=True, slots=True)
class Headers:
    """Status 200 and the headers of a stream, sent now."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Bytes as they are, in the middle of the stream."""

    data: bytes = b"event: nonsense\ndata: {not json\n\n: a comment\nfoo bar\n\n"


@dataclass(frozen=True, slots=True)
class Complete:
    """The good end of a response, with what it cost."""

    tokens_in: int = 100
    tokens_out: int = 10


@dataclass(frozen=True, slots=True)
class Fail:
    """The end `response.failed`."""

    code: str = "server_error"
    message: str = "the model stumbled"


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The end `response.incomplete`."""

    reason: str = "max_output_tokens"


@dataclass(frozen=True, slots=True)
class Refuse:
    """An answer with an error status instead of a stream."""

    status: int
    code: str = ""
    message: str = "refused"
    retry_after: int | None = None  # whole seconds: fractions are no HTTP, and are ignored


@dataclass(frozen=True, slots=True)
class Reset:
    """The end of the connection by a TCP reset."""


@dataclass(frozen=True, slots=True)
class Eof:
    """The end of the connection in good order, but of the response without its end."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Silence until the other side gives up, or the server is shut down."""


Act = (
    Say | Think | Call | Patch | Pause | Gate | Headers | Garbage
    | Complete | Fail | Incomplete | Refuse | Reset | Eof | Hang
)  # fmt: skip
Reply = Sequence[Act]
ENDINGS = (Complete, Fail, Incomplete, Refuse, Reset, Eof, Hang)


def run(command: str, *, call_id: str = "call_1", **options: object) -> Call:
    """A call of `exec_command`; options are further arguments of the tool."""
    return Call("exec_command", {"cmd": command, **options}, call_id)


def add_file(path: str, text: str, *, call_id: str = "call_patch") -> Patch:
    """A patch that adds one file."""
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    return Patch(f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n", call_id)


def events(act: Act, number: int) -> list[Event]:
    """Write an act as events of the API."""
    done = {"type": "response.output_item.done", "output_index": 0}
    match act:
        case Think(summary):
            item: Event = {"type": "reasoning", "id": f"rs_{number:06}", "summary": []}
            part = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
            whole = {**item, "summary": [{"type": "summary_text", "text": summary}]}
            return [
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.reasoning_summary_part.added", **part},
                {"type": "response.reasoning_summary_text.delta", **part, "delta": summary},
                {**done, "item": whole},
            ]
        case Call(tool, arguments, call_id, namespace):
            call = {"name": tool, "arguments": json.dumps(arguments), "call_id": call_id}
            call |= {} if namespace is None else {"namespace": namespace}
            return [{**done, "item": {"type": "function_call", "id": f"fc_{number:06}", **call}}]
        case Patch(text, call_id):
            call = {"name": "apply_patch", "input": text, "call_id": call_id}
            return [{**done, "item": {"type": "custom_tool_call", "id": f"ct_{number:06}", **call}}]
        case Complete(tokens_in, tokens_out):
            usage = {
                "input_tokens": tokens_in,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": tokens_out,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens_in + tokens_out,
            }
            return [{"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}]
        case Fail(code, message):
            error = {"code": code, "message": message}
            return [{"type": "response.failed", "response": {"id": "resp_1", "error": error}}]
        case Incomplete(reason):
            response = {"id": "resp_1", "incomplete_details": {"reason": reason}}
            return [{"type": "response.incomplete", "response": response}]
        case _:
            raise AssertionError(f"{act} is no event")
