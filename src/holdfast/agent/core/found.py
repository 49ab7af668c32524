"""Read what ripgrep, or our own engine in its words, has found, and show it in bounds."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field

import msgspec

from holdfast.agent.core.globs import matcher
from holdfast.agent.core.hashlines import tagged
from holdfast.agent.core.receipts import PAGE_MAX
from holdfast.nouns import RelativePath


class _Data(msgspec.Struct, frozen=True):
    """Text, or the bytes of what is none."""

    text: str | None = None
    encoded: str = msgspec.field(name="bytes", default="")

    @property
    def raw(self) -> bytes:
        if self.text is not None:
            return self.text.encode("utf-8", "surrogatepass")
        return b64decode(self.encoded)


class _Body(msgspec.Struct, frozen=True):
    path: _Data | None = None
    lines: _Data = _Data(text="")
    line_number: int | None = None
    binary_offset: int | None = None


class _Message(msgspec.Struct, frozen=True):
    type: str
    data: _Body


_read = msgspec.json.Decoder(_Message).decode


@dataclass
class Findings:
    """What has been found so far; `is_full` once no more is wanted."""

    limit: int
    glob: str | None = None
    matches: int = 0
    files: int = 0
    is_full: bool = False
    _shown: list[str] = field(default_factory=list[str])
    _pending: list[tuple[int, str, bool]] = field(default_factory=list[tuple[int, str, bool]])
    _chars: int = 0

    def take_line(self, line: bytes) -> None:
        """Take one message of a search in contents; one that cannot be read is passed over."""
        try:
            message = _read(line)
        except msgspec.MsgspecError:
            return
        match message.type:
            case "begin":
                self._pending = []
            case "match" | "context" if message.data.line_number is not None:
                text = message.data.lines.raw.decode("utf-8", "surrogateescape")
                text = text.removesuffix("\n").removesuffix("\r")
                self._pending.append((message.data.line_number, text, message.type == "match"))
            case "end" if message.data.path is not None:
                if message.data.binary_offset is None and self._pending:
                    self._take_file(path_in(message.data.path.raw), self._pending)
                self._pending = []
            case _:
                pass

    def take_path(self, raw: bytes) -> None:
        """Take one file of a search for names."""
        path = path_in(raw)
        if path is None or self.is_full or not self._is_wanted(path):
            return
        if self.files >= self.limit:
            self.is_full = True
            return
        self.files += 1
        self._show(str(path))

    def text(self) -> str:
        """All of it, for a model."""
        if not self._shown:
            return "nothing was found"
        more = "\n(there is more: narrow it down, or raise the limit)" if self.is_full else ""
        return "\n".join(self._shown) + more

    def _take_file(self, path: RelativePath | None, lines: list[tuple[int, str, bool]]) -> None:
        if path is None or self.is_full or not self._is_wanted(path):
            return
        if self.matches >= self.limit:
            self.is_full = True
            return
        self.files += 1
        if self._shown:
            self._show("")
        self._show(str(path))
        before = 0
        for number, text, is_match in lines:
            if is_match and self.matches >= self.limit:
                self.is_full = True
            if self.is_full:
                return
            self.matches += is_match
            if before and number != before + 1:
                self._show("  …")
            before = number
            self._show(f"{'>' if is_match else ' '} {tagged([text], number)[0]}")

    def _show(self, line: str) -> None:
        self._chars += len(line) + 1
        if self._chars > PAGE_MAX:
            self.is_full = True
        else:
            self._shown.append(line)

    def _is_wanted(self, path: RelativePath) -> bool:
        if self.glob is None:
            return True
        spelled = path.raw.decode("utf-8", "surrogateescape")
        return matcher(self.glob).fullmatch(spelled) is not None


def path_in(raw: bytes) -> RelativePath | None:
    """The file that a search names, relative to the project; None if it is none."""
    raw = raw.removeprefix(b"./")
    return RelativePath.of(raw) if raw else None
