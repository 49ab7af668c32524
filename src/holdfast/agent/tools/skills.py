"""Skills of the project and of the person, and the tool that loads one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from holdfast.agent.arguments import fields, given, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import FileKind, ToolResult, ToolSpec
from holdfast.agent.permission_rules import labelled, single_line
from holdfast.agent.ports import FileTree, ToolContext, Workspace
from holdfast.agent.tools.paths import named
from holdfast.agent.workspace import RootTree
from holdfast.failures import Failure
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.world import Root

# SKILL.md files.

NAME_CHARS_MAX: Final = 64
PURPOSE_CHARS_MAX: Final = 1024
FILE: Final = "SKILL.md"
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FENCE: Final = "---"


class Skill(NamedTuple):
    """A named instruction text with a description."""

    name: str
    purpose: str
    body: str


def skill_in(text: str, directory: str) -> Skill | str:
    """Parse a SKILL.md; return the reason if it is not valid."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE or _FENCE not in (line.rstrip() for line in lines[1:]):
        return "it has no head between two lines of ---"
    last = next(n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == _FENCE)
    head = _head(lines[1:last])
    name, purpose = head.get("name", ""), head.get("description", "")
    if name != directory:
        return f"its name is {name!r}, and its directory is {directory!r}"
    if len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
        return f"its name is not of at most {NAME_CHARS_MAX} letters a-z, digits and hyphens"
    if not purpose:
        return "it has no description"
    if len(purpose) > PURPOSE_CHARS_MAX:
        return f"its description is longer than {PURPOSE_CHARS_MAX} characters"
    return Skill(name, purpose, "\n".join(lines[last + 1 :]).strip("\n"))


def _head(lines: list[str]) -> dict[str, str]:
    """Parse the top-level values of the front matter, without a YAML library."""
    found: dict[str, str] = {}
    key = ""
    for line in lines:
        if line[:1] in (" ", "\t") or not line.strip():
            if key:
                found[key] = f"{found[key]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        key = key.strip() if colon else ""
        if key:
            found[key] = _plain(value.strip())
    return found


def _plain(value: str) -> str:
    if value[:1] in (">", "|") and len(value) <= 2:
        return ""  # a block scalar: its text is on the following lines
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


Result = TypeVar("Result")

PROJECT_PLACES: Final = (".agents/skills", ".github/skills", ".claude/skills")
_BYTES_MAX: Final = 64 * 1024
_SKILLS_MAX: Final = 100
_FILES_MAX: Final = 50

_SPEC: Final = ToolSpec(
    name="skill",
    description="Load the instructions of a skill, or another file that belongs to it.",
    parameters=fields(
        ("name",),
        name=text("The skill, as the menu names it."),
        file=text("A file of the skill that its instructions speak of."),
    ),
)


@dataclass(frozen=True, slots=True)
class SkillDirectory:
    """Location of a skill: in the project, or in a directory of the person."""

    skill: Skill
    place: RelativePath
    directory: Path | None = None  # None: in the project

    @property
    def owner(self) -> str:
        """The author: the person or the project."""
        return "project" if self.directory is None else "person"


@dataclass(frozen=True, slots=True)
class SkillSet:
    """Skills by name, and complaints about invalid ones."""

    skills: dict[str, SkillDirectory]
    complaints: tuple[str, ...] = ()

    @property
    def menu(self) -> list[tuple[str, str]]:
        """Names and descriptions for the system prompt."""
        return [(name, source.skill.purpose) for name, source in sorted(self.skills.items())]


async def find_skills(workspace: Workspace, directories: Sequence[Path]) -> SkillSet:
    """Find all skills; those of the person take precedence over those of the project."""

    def looked(tree: FileTree) -> list[SkillDirectory | str]:
        own = [each for directory in directories for each in _of_person(directory)]
        return [*own, *(each for place in PROJECT_PLACES for each in _in(tree, place, None))]

    found: dict[str, SkillDirectory] = {}
    complaints: list[str] = []
    for each in await workspace.within(looked):
        if isinstance(each, str):
            complaints.append(each)
        elif each.skill.name in found:
            complaints.append(f"{each.place}: there is another skill of that name")
        elif len(found) < _SKILLS_MAX:
            found[each.skill.name] = each
    return SkillSet(found, tuple(complaints))


class _Given(msgspec.Struct, frozen=True):
    name: str
    file: str = FILE


class SkillTool:
    """Returns the text of a skill, marked as untrusted."""

    spec = _SPEC
    only_reads = True

    def __init__(self, workspace: Workspace, found: SkillSet) -> None:
        self._workspace, self._found = workspace, found

    def title(self, arguments: dict[str, object]) -> str:
        return f"Load skill {single_line(given(arguments, _Given).name)}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Return the text of a skill and the names of its other files."""
        del context  # unused: the port's signature
        asked = given(arguments, _Given)
        source = self._found.skills.get(asked.name)
        if source is None:
            known = ", ".join(sorted(self._found.skills)) or "none"
            raise ToolRefused(reason=f"there is no skill {asked.name!r}; there are: {known}")
        about = {"name": asked.name, "from": source.owner}
        if asked.file != FILE:
            path = source.place / named(asked.file, "/")
            data = await self._looked(source, path)
            return ToolResult(labelled("skill-file", {**about, "file": asked.file}, data))
        others = "".join(f"\n- {each}" for each in await self._files(source))
        rest = f"\nIts other files, for the file argument:{others}" if others else ""
        return ToolResult(labelled("skill", about, source.skill.body) + rest)

    async def _looked(self, source: SkillDirectory, path: RelativePath) -> str:
        data = await self._within(source, lambda tree: tree.read(path, _BYTES_MAX))
        return data.decode("utf-8", "replace")

    async def _files(self, source: SkillDirectory) -> list[str]:
        return await self._within(source, lambda tree: list(_files(tree, source.place)))

    async def _within(self, source: SkillDirectory, work: Callable[[FileTree], Result]) -> Result:
        directory = source.directory
        if directory is None:
            return await self._workspace.within(work)

        def apart(_: FileTree) -> Result:
            with Root.at(directory) as root:
                return work(RootTree(root))

        return await self._workspace.within(apart)


def _of_person(directory: Path) -> Iterator[SkillDirectory | str]:
    with suppress(Failure), Root.at(directory) as root:
        yield from _in(RootTree(root), None, directory)


def _in(
    tree: FileTree, place: str | None, directory: Path | None
) -> Iterator[SkillDirectory | str]:
    """Yield the skills in a directory, or complaints."""
    above = None if place is None else RelativePath.of(place)
    try:
        entries = tree.list(above)
    except Failure:
        return
    for name, sort in entries:
        if sort is FileKind.DIRECTORY:
            with suppress(PathInvalid):
                own = RelativePath((*(above.parts if above else ()), name))
                yield from _at(tree, own, directory)


def _at(
    tree: FileTree, place: RelativePath, directory: Path | None
) -> Iterable[SkillDirectory | str]:
    file = place / FILE
    found = tree.look(file)
    if found is None:
        return ()
    if found.sort is not FileKind.FILE or found.size > _BYTES_MAX:
        return (f"{file}: it is no file of at most {_BYTES_MAX} bytes",)
    name = place.name.decode("utf-8", "replace")
    read = skill_in(tree.read(file, _BYTES_MAX).decode("utf-8", "replace"), name)
    return (
        (f"{file}: {read}",) if isinstance(read, str) else (SkillDirectory(read, place, directory),)
    )


def _files(tree: FileTree, place: RelativePath) -> Iterator[str]:
    """Yield the other files of a skill, bounded in number."""
    waiting, told = [place], 0
    while waiting and told < _FILES_MAX:
        directory = waiting.pop(0)
        for name, sort in tree.list(directory):
            path = directory / name
            if sort is FileKind.DIRECTORY and len(path.parts) - len(place.parts) < 3:
                waiting.append(path)
            elif sort is FileKind.FILE and path != place / FILE and told < _FILES_MAX:
                told += 1
                yield str(RelativePath(path.parts[len(place.parts) :]))
