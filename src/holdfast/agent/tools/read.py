"""Tool that reads a text file, with an anchor for every line."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from holdfast.agent.arguments import fields, given, number, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import FileKind, ToolResult, ToolSpec
from holdfast.agent.permission_rules import single_line
from holdfast.agent.ports import FileTree, ToolContext, Workspace
from holdfast.agent.text import PAGE_MAX
from holdfast.agent.tools.documents import Document, is_binary, parsed, tagged
from holdfast.agent.tools.paths import named
from holdfast.nouns import RelativePath

FILE_BYTES_MAX: Final = 10 * 2**20
LINES_MAX: Final = 2000
DIFF_CHARS_MAX: Final = 50_000  # characters of a diff for the person
_NO_TEXT: Final = frozenset(
    (b"png", b"jpg", b"jpeg", b"gif", b"webp", b"bmp", b"ico", b"tif", b"tiff", b"pdf", b"heic")
)
_HINT: Final = "use search, or shell with sed -n 'FIRST,LASTp'"

_SPEC: Final = ToolSpec(
    name="read",
    description=(
        "Read a text file. Every line is shown as NUMBER:HASH|TEXT; NUMBER:HASH is the anchor that "
        f"edit takes. At most {LINES_MAX} lines and about {PAGE_MAX} characters at once; the last "
        "line says with which offset to go on."
    ),
    parameters=fields(
        ("path",),
        path=text("The file, relative to the project."),
        offset=number("The first line wanted, from 1.", least=1),
        limit=number("How many lines at most.", least=1, most=LINES_MAX),
    ),
)


class _Given(msgspec.Struct, frozen=True):
    path: str
    offset: Annotated[int, Meta(ge=1)] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES_MAX)] = LINES_MAX


class ReadTool:
    """Returns lines of a file with anchors."""

    spec = _SPEC
    only_reads = True

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def title(self, arguments: dict[str, object]) -> str:
        asked = given(arguments, _Given)
        return f"Read {single_line(asked.path)}" + (
            f" from line {asked.offset}" if asked.offset > 1 else ""
        )

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Return the requested lines."""
        del context  # unused: the port's signature
        asked = given(arguments, _Given)
        path = named(asked.path, self._workspace.root)

        def page(tree: FileTree) -> str:
            return _page(text_at(tree, path)[0], asked.offset, asked.limit)

        return ToolResult(await self._workspace.within(page))


def text_at(tree: FileTree, path: RelativePath) -> tuple[Document, bytes]:
    """Read a text file and its bytes; raises ToolRefused with a hint if it is not text."""
    found = tree.look(path)
    if found is None:
        raise ToolRefused(reason=f"there is no {path}")
    if found.sort is FileKind.DIRECTORY:
        raise ToolRefused(reason=f"{path} is a directory: search with a glob shows its files")
    if path.name.rpartition(b".")[2].lower() in _NO_TEXT:
        raise ToolRefused(reason=f"{path} is an image or the like, and only text can be read")
    if found.size > FILE_BYTES_MAX:
        reason = f"{path} has {found.size} bytes, more than {FILE_BYTES_MAX}: {_HINT}"
        raise ToolRefused(reason=reason)
    data = tree.read(path, FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ToolRefused(reason=f"{path} has more than {FILE_BYTES_MAX} bytes: {_HINT}")
    if is_binary(data):
        raise ToolRefused(reason=f"{path} is binary ({len(data)} bytes), and only text can be read")
    return parsed(data), data


def _page(document: Document, offset: int, limit: int) -> str:
    texts = document.texts
    if not texts:
        return "(the file is empty)"
    if offset > len(texts):
        raise ToolRefused(reason=f"there is no line {offset}: the file has {len(texts)}")
    lines: list[str] = []
    chars = 0
    for line in tagged(texts[offset - 1 : offset - 1 + limit], offset):
        chars += len(line) + 1
        if lines and chars > PAGE_MAX:
            break
        lines.append(line)
    beyond = offset + len(lines)
    if beyond <= len(texts):
        more = len(texts) - beyond + 1
        lines.append(f"({more} more lines of {len(texts)}; go on with offset={beyond})")
    return "\n".join(lines)
