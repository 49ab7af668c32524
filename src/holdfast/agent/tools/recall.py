"""Tool that returns the omitted part of a long result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.agent.model import ToolResult, ToolSpec
from holdfast.agent.ports import ToolContext
from holdfast.agent.text import CHARS_MAX, RECALL

_PAGE: Final = CHARS_MAX // 2

_SPEC: Final = ToolSpec(
    RECALL,
    "Read a part of an earlier result that was left out because it was long.",
    {
        "type": "object",
        "properties": {
            "call": {"type": "string", "description": "the call, as the note in the result says"},
            "offset": {"type": "integer", "description": "from which character on"},
        },
        "required": ["call"],
        "additionalProperties": False,
    },
)


class RecallTool:
    """Returns results in pages; `result` looks up the full result of a call."""

    spec = _SPEC
    only_reads = True

    def __init__(self, result: Callable[[str], str | None]) -> None:
        self._result = result

    def title(self, arguments: dict[str, object]) -> str:
        return f"Read on in the result of {arguments.get('call')}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Return a page, and the offset of the next one."""
        del context
        call, offset = str(arguments["call"]), int(str(arguments.get("offset", 0)))
        text = self._result(call)
        if text is None:
            return ToolResult(f"There is no result of a call {call!r}.", is_error=True)
        first = min(max(offset, 0), len(text))
        page = text[first : first + _PAGE]
        after = first + len(page)
        more = f"; the next page is at offset {after}" if after < len(text) else ""
        return ToolResult(f"[characters {first} to {after} of {len(text)}{more}]\n{page}")
