"""What the agent needs from the world: a model to ask, files, processes, and a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from holdfast.agent.model import (
    AnyAnswerDelta,
    FileChange,
    FileInfo,
    FileKind,
    ModelChoice,
    ModelRequest,
    Tokens,
    ToolResult,
    ToolSpec,
)
from holdfast.nouns import RelativePath

Result = TypeVar("Result")


class Models(Protocol):
    """Whoever answers for models."""

    def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        """Ask a model, and yield what comes in batches, up to and with `Answered`.

        What is worth trying again is tried again, and told. What is not raises its failure, and
        nothing has been kept. Who leaves the block has ended the request.
        """
        ...

    def window(self, choice: ModelChoice) -> int | None:
        """How many tokens fit into the model at once, as far as anybody knows."""
        ...

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        """What so many tokens cost, in dollars, as far as anybody knows."""
        ...


class ToolContext(Protocol):
    """What a tool is given while it works for one call."""

    @property
    def call(self) -> str:
        """The name of the call."""
        ...

    def show(self, output: str) -> None:
        """Show the person a piece of output at once; it is not kept."""
        ...

    async def ask(
        self, title: str, detail: str = "", choices: tuple[str, ...] = (), *, is_leave: bool = False
    ) -> str:
        """Ask the person, and wait; the last choice is the refusal, and the answer of nobody."""
        ...


class Tool(Protocol):
    """Something that a model can have done."""

    @property
    def spec(self) -> ToolSpec:
        """How a model is told of it."""
        ...

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing, such that others may be used at the same time."""
        ...

    def title(self, arguments: dict[str, object]) -> str:
        """What a call does, in a line for the person."""
        ...

    async def use(self, arguments: dict[str, object], desk: ToolContext) -> ToolResult:
        """Do it; a failure that it raises is told to the model. Cancelled, nothing is left.

        The arguments fit the schema. What is shown and returned is bounded by the tool itself.
        """
        ...


class FileTree(Protocol):
    """The files of a project as they are now; no path and no link leads out of it."""

    def look(self, path: RelativePath) -> FileInfo | None:
        """What stands at a path, of a link the link itself; None if nothing does."""
        ...

    def list(self, path: RelativePath | None) -> tuple[tuple[bytes, FileKind], ...]:
        """The names in a directory and what they are, sorted; None is the project itself."""
        ...

    def read(self, path: RelativePath, bytes_max: int) -> bytes:
        """The first bytes of a file; a link to one inside the project is followed."""
        ...


class Workspace(Protocol):
    """A project that the agent works on, in such a way that nothing is lost."""

    @property
    def root(self) -> str:
        """Where the project is for the processes of the agent."""
        ...

    async def within(self, work: Callable[[FileTree], Result]) -> Result:
        """What comes of looking at the files as they are now, whoever has changed them."""
        ...

    async def write(self, changes: Sequence[FileChange], key: str) -> None:
        """Make all of the changes or none; the same said again with the same key is done once.

        Raises BatchRefused if they do not fit what is there, with every reason.
        """
        ...
