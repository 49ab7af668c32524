"""The nouns of the command line: JSON, and what every command hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.failures import Failure

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a command ended: its status, what is still to be written, and what failed, if that did.

    A failure is told to the person; a program has it in the answer. It decides the status where
    that is left at 0.
    """

    status: int = 0
    answer: str = ""
    failure: Failure | None = None
    hint: str = ""  # what a person should know last
