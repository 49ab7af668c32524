"""Write prompts in the format of OpenAI's Responses; nothing is stored there."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.agent.core.transcript import Transcripts
from holdfast.agent.core.wire_text import (
    Omitted,
    arguments,
    call_id,
    options_bytes,
    quoted,
    tool_name,
    words,
)
from holdfast.agent.model import (
    Call,
    Choice,
    ModelMessage,
    Prompt,
    Thinking,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

PATH = "/responses"
_WITHOUT_REASONING = ("gpt-3.5", "gpt-4", "chatgpt", "gpt-5-chat")


class Proof(msgspec.Struct, omit_defaults=True):
    """What the provider wants back: of a thought, or of how a message was meant."""

    id: str = ""
    encrypted_content: str = ""
    phase: str = ""


class ResponsesPen:
    """Writes messages as input items."""

    opening = closing = between = parting = b""

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def spoken(self, message: ModelMessage) -> bytes:
        """Items in the order in which they came; of others than this provider, no reasoning.

        The provider insists that reasoning stands directly before what followed it.
        """
        if message.provider != self._provider:
            message = replace(message, thinking=(), order=())
        items: list[bytes] = []
        phase = ""
        for block in message.sendable():
            if isinstance(block, Call):
                items.append(_function_call(block))
            elif isinstance(block, str):
                if block.strip():
                    items.append(_message("assistant", words(block), phase))
                phase = ""
            else:
                proof = _proof(block.proof)
                phase = proof.phase or phase
                if proof.encrypted_content:
                    items.append(_reasoning(block, proof))
        return b",".join(items)

    def told(self, message: UserMessage) -> bytes:
        """A message of the user."""
        text = b'[{"type":"input_text","text":' + words(message.text) + b"}]"
        return _message("user", text)

    def returned(self, message: ToolMessage) -> bytes:
        """The output of a call."""
        name, output = quoted(call_id(message.call)), words(message.text)
        return b"".join(
            (b'{"type":"function_call_output","call_id":', name, b',"output":', output, b"}")
        )


class ResponsesWriter:
    """Writes prompts as bodies of requests, and of each conversation only what is new."""

    def __init__(self, provider: str) -> None:
        self._transcripts = Transcripts(ResponsesPen(provider))
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"[]")

    def body(self, choice: Choice, prompt: Prompt, without: Omitted = frozenset()) -> bytes:
        """The whole body of a request, without options that the provider has refused."""
        options: dict[str, object] = {"model": choice.model, "stream": True, "store": False}
        if not choice.model.startswith(_WITHOUT_REASONING):
            options["include"] = ["reasoning.encrypted_content"]
            effort = {"effort": choice.effort} if choice.effort else {}
            options["reasoning"] = {**effort, "summary": "auto"}
        if prompt.output_max is not None:
            options["max_output_tokens"] = prompt.output_max
        if prompt.said:
            options["prompt_cache_key"] = call_id(prompt.said[0].id)
        with memoryview(self._transcripts.of(prompt.said).wire) as wire:
            return b"".join(
                (
                    options_bytes(options, without)[:-1],
                    b',"instructions":' + quoted(prompt.system),
                    b',"tools":' + self._written(prompt.tools),
                    b',"input":[',
                    wire[1:],
                    b"]}",
                )
            )

    def _written(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools[0]:
            written = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in tools
            ]
            self._tools = tools, msgspec.json.encode(written)
        return self._tools[1]


def sealed(proof: Proof) -> str:
    """As it is kept with a thought, for who writes it back."""
    return msgspec.json.encode(proof).decode()


def _message(role: str, content: bytes, phase: str = "") -> bytes:
    meant = b',"phase":' + quoted(phase) if phase else b""
    head = b'{"type":"message","role":"' + role.encode() + b'","content":'
    return b"".join((head, content, meant, b"}"))


def _reasoning(thinking: Thinking, proof: Proof) -> bytes:
    text = (
        b'{"type":"summary_text","text":' + quoted(thinking.text) + b"}" if thinking.text else b""
    )
    return b"".join(
        (
            b'{"type":"reasoning","id":' + quoted(proof.id),
            b',"summary":[' + text,
            b'],"encrypted_content":' + quoted(proof.encrypted_content) + b"}",
        )
    )


def _function_call(call: Call) -> bytes:
    given = arguments(call.arguments).decode()
    return b"".join(
        (
            b'{"type":"function_call","call_id":' + quoted(call_id(call.id)),
            b',"name":' + quoted(tool_name(call.tool)),
            b',"arguments":' + quoted(given) + b"}",
        )
    )


def _proof(text: str) -> Proof:
    try:
        return msgspec.json.decode(text, type=Proof)
    except msgspec.MsgspecError:
        return Proof()
