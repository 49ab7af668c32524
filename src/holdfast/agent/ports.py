"""Ports of the agent: models, tools, the files of a project, and the person."""

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
    """A provider of models."""

    def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        """Send a request, and yield deltas in batches; the last delta is `AnswerCompleted`.

        Transient errors are retried, and reported as `RetryScheduled`. Permanent errors raise their
        failure. Leaving the context cancels the request.
        """
        ...

    def window(self, choice: ModelChoice) -> int | None:
        """Return the size of the context window in tokens, or None if unknown."""
        ...

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        """Return the price in US dollars, or None if unknown."""
        ...


class ToolContext(Protocol):
    """What a tool can use during one call."""

    @property
    def call(self) -> str:
        """The id of the call."""
        ...

    def show(self, output: str) -> None:
        """Display a piece of output at once; it is not recorded."""
        ...

    async def ask(
        self,
        title: str,
        detail: str = "",
        choices: tuple[str, ...] = (),
        *,
        is_permission: bool = False,
    ) -> str:
        """Ask the person, and return the answer; the last choice, the refusal, if there is none."""
        ...


class Tool(Protocol):
    """A tool that a model can call."""

    @property
    def spec(self) -> ToolSpec:
        """The description that is sent to the model."""
        ...

    @property
    def only_reads(self) -> bool:
        """Whether the tool changes nothing, so that calls to it may run concurrently."""
        ...

    def title(self, arguments: dict[str, object]) -> str:
        """Return a one-line description of the call for the person."""
        ...

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Run the tool; a failure that it raises becomes its result. Cancellation cleans up.

        The arguments match the schema of `spec`. The tool bounds the size of its output itself.
        """
        ...


class FileTree(Protocol):
    """Read access to the files of a project; paths and symlinks cannot leave the project."""

    def look(self, path: RelativePath) -> FileInfo | None:
        """Return metadata of a path, or None if it does not exist; symlinks are not followed."""
        ...

    def list(self, path: RelativePath | None) -> tuple[tuple[bytes, FileKind], ...]:
        """List a directory, sorted by name; None is the project root."""
        ...

    def read(self, path: RelativePath, bytes_max: int) -> bytes:
        """Read up to `bytes_max` bytes of a file; symlinks inside the project are followed."""
        ...


class Workspace(Protocol):
    """The draft of a project that the agent works on."""

    @property
    def root(self) -> str:
        """The project's path as the agent's processes see it."""
        ...

    async def within(self, work: Callable[[FileTree], Result]) -> Result:
        """Run a function on the current files in a worker thread, and return its result."""
        ...

    async def write(self, changes: Sequence[FileChange], key: str) -> None:
        """Apply all changes or none; a repeated call with the same key is applied once.

        Raises BatchRefused with every reason if a precondition does not hold.
        """
        ...
