"""What the agent needs from the world: a model to ask, files, processes, and a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from holdfast.agent.model import AnyPiece, Choice, Done, Prompt, ToolSpec


class Models(Protocol):
    """Whoever answers for models."""

    def answering(
        self, choice: Choice, prompt: Prompt
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyPiece]]]:
        """Ask a model, and yield what comes in batches, up to and with `Answered`.

        What is worth trying again is tried again, and told. What is not raises its failure, and
        nothing has been kept. Who leaves the block has ended the request.
        """
        ...

    def window(self, choice: Choice) -> int | None:
        """How many tokens fit into the model at once, as far as anybody knows."""
        ...

    def price(self, choice: Choice, input: int, cached: int, output: int) -> float | None:
        """What so many tokens cost, in dollars, as far as anybody knows."""
        ...


class Desk(Protocol):
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

    def title(self, arguments: dict[str, object]) -> str:
        """What a call does, in a line for the person."""
        ...

    async def use(self, arguments: dict[str, object], desk: Desk) -> Done:
        """Do it; a failure that it raises is told to the model. Cancelled, nothing is left.

        The arguments fit the schema. What is shown and returned is bounded by the tool itself.
        """
        ...
