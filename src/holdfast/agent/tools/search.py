"""Tool that searches file contents or names, by ripgrep or by our own engine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import anyio
import msgspec
from msgspec import Meta

import holdfast
from holdfast.agent.arguments import claim, fields, given, number, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import FileKind, ToolResult, ToolSpec
from holdfast.agent.permission_rules import single_line
from holdfast.agent.ports import ToolContext, Workspace
from holdfast.agent.sandbox import SandboxConfig, SandboxLevel
from holdfast.agent.tools.paths import place_of
from holdfast.agent.tools.search_results import SearchResults
from holdfast.exec.model import Exited, Output

SEARCH_LONGEST: Final = 30.0
_TOP: Final = "."
_HOME: Final = str(Path(holdfast.__file__).parent.parent)  # import path for our own engine
_LINE_BYTES_MAX: Final = 2**20
_FILE_MAX: Final = "10M"
_COMPLAINT_CHARS: Final = 1000

_SPEC: Final = ToolSpec(
    name="search",
    description=(
        "Search the files of the project, except for those that .gitignore names. With `pattern`, "
        "a regular expression, their lines: each is shown as NUMBER:HASH|TEXT, with > before those "
        "that match. Without it, the names of the files that `glob` matches."
    ),
    parameters=fields(
        (),
        pattern=text("What a line must contain."),
        path=text("The directory or file to search in; else the whole project."),
        glob=text("Only these files, such as *.py or src/**/*.{js,ts}."),
        context=number("How many lines around a match to show; 2 if it is not given.", most=20),
        limit=number("How many matches or names at most; 50 if not given.", least=1, most=500),
        literal=claim("Whether pattern is plain text."),
        ignore_case=claim("Whether capitals do not matter."),
        everything=claim("Whether to search what .gitignore names, too."),
    ),
)


class _Given(msgspec.Struct, frozen=True):
    pattern: str | None = None
    path: str = ""
    glob: str | None = None
    context: Annotated[int, Meta(ge=0, le=20)] = 2
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    literal: bool = False
    ignore_case: bool = False
    everything: bool = False


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """ripgrep at a path, or our own engine if None."""

    ripgrep: str | None

    @classmethod
    def on(cls, sandbox: SandboxConfig) -> SearchEngine:
        """Choose the engine; a program inside the project is not trusted."""
        found = shutil.which("rg", path=sandbox.environment.get("PATH", os.defpath))
        if found is None or not os.path.isabs(found):
            return cls(None)
        real, root = os.path.realpath(found), os.path.realpath(sandbox.root)
        is_foreign = any(os.path.commonpath([each, root]) == root for each in (found, real))
        return cls(None if is_foreign else real)

    def argv(self, asked: _Given, where: str) -> tuple[str, ...]:
        """Return the command; no part of it is interpreted by a shell."""
        if self.ripgrep is None:
            order = {
                "path": where if where == _TOP else where.removeprefix("./"),
                "ignores": not asked.everything,
                "pattern": asked.pattern,
                "is_literal": asked.literal,
                "ignores_case": asked.ignore_case,
                "around": asked.context,
            }
            return (
                sys.executable,
                "-P",
                "-m",
                "holdfast.agent.tools.search_fallback",
                json.dumps(order),
            )
        options = ["--no-config", "--hidden", "--no-require-git", "--sort=path", "--glob=!.git"]
        options += ["--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "--no-messages"]
        options += ["--no-ignore-parent"] if where == _TOP else []
        if asked.everything:
            options.append("--no-ignore")
        if asked.pattern is None:
            return (self.ripgrep, "--files", "--null", *options, "--", where)
        options += ["--json", "--crlf", "--encoding=none", f"--max-filesize={_FILE_MAX}"]
        options += [f"--context={asked.context}"]
        options += ["--fixed-strings"] if asked.literal else []
        options += ["--ignore-case"] if asked.ignore_case else []
        return (self.ripgrep, *options, f"--regexp={asked.pattern}", "--", where)


class SearchTool:
    """Finds lines and files."""

    spec = _SPEC
    only_reads = True

    def __init__(self, workspace: Workspace, sandbox: SandboxConfig, engine: SearchEngine) -> None:
        self._workspace, self._ground, self._engine = workspace, sandbox, engine

    def title(self, arguments: dict[str, object]) -> str:
        asked = given(arguments, _Given)
        if asked.pattern is None:
            return f"Find files {single_line(asked.glob or '*')}"
        return f"Search for {single_line(asked.pattern)}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Search, and return bounded results."""
        del context  # unused: the port's signature
        asked = given(arguments, _Given)
        if asked.pattern is None and asked.glob is None:
            raise ToolRefused(reason="give a pattern for lines, or a glob for names of files")
        if asked.pattern is not None and ("\n" in asked.pattern or "\0" in asked.pattern):
            raise ToolRefused(reason="a pattern is for one line")
        where = await self._where(asked.path)
        findings = SearchResults(asked.limit, asked.glob)
        with anyio.move_on_after(SEARCH_LONGEST) as patience:
            await self._run(asked, where, findings)
        late = "\n(it took too long: narrow it down)" if patience.cancelled_caught else ""
        return ToolResult(findings.text() + late)

    async def _where(self, word: str) -> str:
        """Return a path as an argument: never an option, and never a symlink out of the project."""
        place = place_of(word, self._workspace.root)
        if place is None:
            return _TOP
        found = await self._workspace.within(lambda tree: tree.look(place))
        if found is None:
            raise ToolRefused(reason=f"there is no {place}")
        if found.sort is FileKind.LINK:
            raise ToolRefused(reason=f"{place} is a link: search where it leads to")
        return f"./{os.fsdecode(place.raw)}"

    async def _run(self, asked: _Given, where: str, findings: SearchResults) -> None:
        argv = self._engine.argv(asked, where)
        command = self._ground.command(argv, SandboxLevel.OPEN, mark=self._ground.new_mark())
        env = {**command.env, "PYTHONPATH": _HOME, "PYTHONDONTWRITEBYTECODE": "1"}
        process = await self._ground.processes.start(replace(command, env=env))
        rest, complaint, status = b"", b"", 0
        end = b"\0" if asked.pattern is None else b"\n"
        take = findings.take_path if asked.pattern is None else findings.take_line
        try:
            while not findings.is_full and (events := await process.receive()):
                for event in events:
                    if isinstance(event, Exited):
                        status = event.status
                    elif isinstance(event, Output) and event.stream == "stderr":
                        complaint = (complaint + event.data)[:_COMPLAINT_CHARS]
                    elif isinstance(event, Output):
                        *lines, rest = (rest + event.data).split(end)
                        rest = rest if len(rest) <= _LINE_BYTES_MAX else b""
                        for line in lines:
                            take(line)
        finally:
            with anyio.CancelScope(shield=True):
                await process.terminate()
        if status == 2 and complaint:
            raise ToolRefused(reason=complaint.decode("utf-8", "replace").strip())
