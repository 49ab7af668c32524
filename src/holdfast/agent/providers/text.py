"""Encoding of conversations for providers, incrementally.

The encoded bytes of a conversation are cached; only new messages are encoded. Between two answers
of the model, all messages form one group: first results of its calls, then other input. Providers
require that order, and some require a single message for all of it.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import msgspec

from holdfast.agent.model import ModelMessage, PromptMessage, ToolMessage, UserMessage
from holdfast.agent.text import well_formed

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LONGEST = 64
_encode = msgspec.json.Encoder().encode

NOTHING = "(nothing)"  # providers refuse empty messages


Omitted = frozenset[str]
"""Names of options that a provider has refused, dotted if nested."""


def options_bytes(options: Mapping[str, object], without: Omitted = frozenset()) -> bytes:
    """Encode options as a JSON object, without refused ones."""
    kept = {name: value for name, value in options.items() if name not in without}
    for path in without:
        name, _, inner = path.partition(".")
        value = kept.get(name)
        if inner and _is_mapping(value):
            kept[name] = {key: each for key, each in value.items() if key != inner}
            if not kept[name]:
                del kept[name]
    return _encode(kept)


def quoted(text: str) -> bytes:
    """Encode text as JSON; lone surrogates are replaced."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return _encode(well_formed(text))


def words(text: str) -> bytes:
    """Encode text as JSON, with a substitute for empty text."""
    return quoted(text if text and not text.isspace() else NOTHING)


def call_id(name: str) -> str:
    """Return a call id in characters and length that every provider accepts."""
    if _ID.fullmatch(name):
        return name
    return "call_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def tool_name(name: str) -> str:
    """Return a tool name that providers accept, even if the model invented it."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_LONGEST] or "unnamed"


def arguments(text: str) -> bytes:
    """Return arguments as a JSON object; anything else is wrapped in one."""
    if is_object(text):
        return text.encode()
    return b'{"malformed_arguments":' + quoted(text) + b"}"


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def is_object(text: str) -> bool:
    """Whether the text is one complete JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


KEPT_MAX = 8  # conversations: of the main agent and of sub-agents


class MessageEncoder(Protocol):
    """Encoder of one format; encoded messages are never empty."""

    opening: bytes
    """Before a group."""
    closing: bytes
    """After a group."""
    between: bytes
    """Between two answers without a group in between."""
    parting: bytes
    """Inside a group, between results and other input; may be empty."""

    def spoken(self, message: ModelMessage) -> bytes: ...

    def told(self, message: UserMessage) -> bytes: ...

    def returned(self, message: ToolMessage) -> bytes: ...


@dataclass(frozen=True, slots=True)
class MessageGroup:
    """Messages `first` to `end` (exclusive), encoded from `start` on, and followed by `close`."""

    first: int
    end: int
    start: int
    close: int
    is_told: bool


class MessageTranscript:
    """A conversation in the bytes of one format; each group is preceded by a comma."""

    def __init__(self, pen: MessageEncoder) -> None:
        self._pen = pen
        self._said: tuple[PromptMessage, ...] = ()
        self.runs: list[MessageGroup] = []
        self.wire = bytearray()

    def follow(self, said: tuple[PromptMessage, ...]) -> None:
        """Switch to this conversation; the common prefix is not encoded again."""
        self._rewind(said, _common(self._said, said))
        at = self.runs[-1].end if self.runs else 0
        while at < len(said):
            at = self._write(said, at)
        self._said = said

    def _rewind(self, said: tuple[PromptMessage, ...], common: int) -> None:
        while self.runs and self._is_outdated(self.runs[-1], said, common):
            del self.wire[self.runs.pop().start :]

    def _is_outdated(self, run: MessageGroup, said: tuple[PromptMessage, ...], common: int) -> bool:
        goes_on = run.end == common < len(said) and run.is_told and not speaks(said[common])
        return run.end > common or goes_on

    def _write(self, said: tuple[PromptMessage, ...], first: int) -> int:
        start = len(self.wire)
        message = said[first].message
        if speaks(said[first]):
            assert isinstance(message, ModelMessage)
            before = next((run for run in reversed(self.runs) if run.close > run.start), None)
            if before is not None and not before.is_told:
                self.wire += self._pen.between
            self.wire += b"," + self._pen.spoken(message)
            self.runs.append(MessageGroup(first, first + 1, start, len(self.wire), is_told=False))
            return first + 1
        end = next((at for at in range(first, len(said)) if speaks(said[at])), len(said))
        self._write_run(said[first:end])
        close = len(self.wire) - len(self._pen.closing) - 1
        self.runs.append(MessageGroup(first, end, start, close, is_told=True))
        return end

    def _write_run(self, said: tuple[PromptMessage, ...]) -> None:
        messages = [each.message for each in said]
        returned = [self._pen.returned(each) for each in messages if isinstance(each, ToolMessage)]
        told = [self._pen.told(each) for each in messages if isinstance(each, UserMessage)]
        parting = [self._pen.parting] if self._pen.parting and returned and told else []
        if blocks := b",".join(returned + parting + told):
            self.wire += b"".join((b",", self._pen.opening, blocks, self._pen.closing))


class TranscriptCache:
    """Most recently used conversations, by the id of their first entry."""

    def __init__(self, pen: MessageEncoder) -> None:
        self._make: Callable[[], MessageTranscript] = lambda: MessageTranscript(pen)
        self._kept: OrderedDict[str, MessageTranscript] = OrderedDict()

    def of(self, said: tuple[PromptMessage, ...]) -> MessageTranscript:
        """Return the encoded conversation."""
        first = said[0].id if said else ""
        transcript = self._kept.pop(first, None) or self._make()
        self._kept[first] = transcript
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        transcript.follow(said)
        return transcript


def speaks(said: PromptMessage) -> bool:
    """Whether this is an answer with more than thinking."""
    message = said.message
    return isinstance(message, ModelMessage) and bool(message.calls or message.text.strip())


def _common(old: tuple[PromptMessage, ...], new: tuple[PromptMessage, ...]) -> int:
    """Return the length of the common prefix."""
    # Nearly always the identical objects, so that the comparison is cheap.
    if new[: len(old)] == old:
        return len(old)
    pairs = zip(old, new, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(new))
