"""Have a model answer once, and show what it says while it says it."""

from __future__ import annotations

from contextlib import aclosing

import anyio
from msgspec.structs import replace

from holdfast.agent.log import Log, new_id
from holdfast.agent.model import (
    Answered,
    AnyPiece,
    CallPiece,
    Choice,
    Discarded,
    ModelMessage,
    Noting,
    Prompt,
    Showing,
    Sort,
    TextPiece,
    ThinkingPiece,
    Waiting,
)
from holdfast.agent.ports import Models


class Reply:
    """One answer, as far as it has come."""

    def __init__(self, log: Log, *, is_shown: bool = True) -> None:
        self.id = new_id()
        self._log, self._is_shown = log, is_shown
        self._texts: list[str] = []
        self.heard = anyio.current_time()  # from the model, or when it was asked

    @property
    def thinking_id(self) -> str:
        """By which name what the model thinks is told, in pieces and as a whole."""
        return f"{self.id}/thinking"

    @property
    def text(self) -> str:
        """What the model has said so far."""
        return "".join(self._texts)

    async def receive(self, models: Models, choice: Choice, prompt: Prompt) -> Answered:
        """Ask, and return the whole answer; what it fails with, it fails with."""
        async with models.answering(choice, prompt) as pieces, aclosing(pieces):
            async for batch in pieces:
                for piece in batch:
                    if isinstance(piece, Answered):
                        return replace(piece, message=_renamed(piece.message, self._log, self.id))
                    self._take(piece)
        raise AssertionError("an answer is whole, or fails")

    def _take(self, piece: AnyPiece) -> None:
        self.heard = anyio.current_time()
        match piece:
            case TextPiece(text):
                self._texts.append(text)
                self._show(Showing(self.id, Sort.TEXT, text))
            case ThinkingPiece(text):
                self._show(Showing(self.thinking_id, Sort.THINKING, text))
            case Waiting(seconds, failure, attempt):
                words = f"Trying again in {seconds:.0f} s (attempt {attempt})."
                self._log.put(Noting(f"{_said_of(failure)} {words}".lstrip(), failure))
            case Discarded(failure):
                self._texts.clear()
                words = "What the model had said of this answer is void; it begins anew."
                self._log.put(Noting(words, failure))
                self.id = new_id()
            case CallPiece() | Answered():
                pass

    def _show(self, piece: Showing) -> None:
        if self._is_shown:
            self._log.show(piece)


def _renamed(message: ModelMessage, log: Log, id: str) -> ModelMessage:
    """The same answer, with a name for each call that no other call of the conversation has."""
    used: set[str] = set()
    calls = list(message.calls)
    for number, call in enumerate(calls):
        if not call.id or call.id in log.tree.calls or call.id in used:
            calls[number] = replace(call, id=f"call_{id}_{number}")
        used.add(calls[number].id)
    return replace(message, calls=tuple(calls)) if tuple(calls) != message.calls else message


def _said_of(failure: dict[str, object]) -> str:
    return str(failure.get("userMessage", ""))
