"""A conversation is written run by run, and what it had in common with the last one stays."""

from __future__ import annotations

from holdfast.agent.model import (
    ModelMessage,
    PromptMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.providers.text import (
    KEPT_MAX,
    MessageGroup,
    MessageTranscript,
    TranscriptCache,
    speaks,
)

ASKED = PromptMessage("1", UserMessage("q"))
CALLED = PromptMessage("2", ModelMessage("a", calls=(ToolCall("c", "t", "{}"),)))
STEERED = PromptMessage("3", UserMessage("s"))
RETURNED = PromptMessage("4", ToolMessage("c", "r"))
SILENT = PromptMessage("5", ModelMessage(thinking=(Thinking("hm", "proof"),)))
DONE = PromptMessage("6", ModelMessage("d"))


class Pen:
    """Writes a letter for each message, and remembers which."""

    opening, closing, between, parting = b"<", b">", b"+", b""

    def __init__(self) -> None:
        self.written = ""

    def spoken(self, message: ModelMessage) -> bytes:
        return self._wrote(message.text)

    def told(self, message: UserMessage) -> bytes:
        return self._wrote(message.text)

    def returned(self, message: ToolMessage) -> bytes:
        return self._wrote(message.text)

    def _wrote(self, text: str) -> bytes:
        self.written += text
        return text.encode()


def test_results_come_first_and_runs_are_one() -> None:
    transcript = MessageTranscript(Pen())
    transcript.follow((ASKED, CALLED, STEERED, RETURNED, SILENT, STEERED, DONE))

    assert bytes(transcript.wire) == b",<q>,a,<r,s,s>,d"
    assert transcript.runs[2] == MessageGroup(first=2, end=6, start=6, close=12, is_told=True)
    assert transcript.wire[12:] == b"s>,d"


def test_only_what_is_new_is_written() -> None:
    pen = Pen()
    transcript = MessageTranscript(pen)
    transcript.follow((ASKED,))
    transcript.follow((ASKED, CALLED, RETURNED))
    transcript.follow((ASKED, CALLED, RETURNED, DONE))

    assert (pen.written, bytes(transcript.wire)) == ("qard", b",<q>,a,<r>,d")


def test_a_run_that_goes_on_is_opened_again() -> None:
    transcript = MessageTranscript(Pen())
    transcript.follow((ASKED, CALLED, RETURNED))
    transcript.follow((ASKED, CALLED, RETURNED, STEERED))

    assert bytes(transcript.wire) == b",<q>,a,<r,s>"


def test_another_branch_keeps_what_is_common() -> None:
    pen = Pen()
    transcript = MessageTranscript(pen)
    transcript.follow((ASKED, CALLED, RETURNED, DONE))
    transcript.follow((ASKED, DONE))

    assert (pen.written, bytes(transcript.wire)) == ("qardd", b",<q>,d")


def test_who_speaks_twice_is_told_so() -> None:
    transcript = MessageTranscript(Pen())
    transcript.follow((DONE, SILENT, DONE))
    transcript.follow((DONE, SILENT, DONE, DONE, ASKED))

    assert bytes(transcript.wire) == b",d+,d+,d,<q>"


def test_nothing_but_thoughts_is_nothing() -> None:
    transcript = MessageTranscript(Pen())
    transcript.follow((SILENT,))

    assert (bytes(transcript.wire), speaks(SILENT), speaks(DONE)) == (b"", False, True)


def test_conversations_are_kept_apart_and_not_for_ever() -> None:
    pen = Pen()
    transcripts = TranscriptCache(pen)
    for name in map(str, range(KEPT_MAX + 1)):
        transcripts.of((PromptMessage(name, UserMessage(name)),))
    pen.written = ""
    for name in map(str, range(KEPT_MAX, -1, -1)):
        transcripts.of((PromptMessage(name, UserMessage(name)),))

    assert pen.written == "0"
    assert transcripts.of(()).wire == b""
