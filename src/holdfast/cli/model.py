"""Data types of the command line: JSON values, and the outcome of a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.failures import Failure

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Exit status, remaining output and failure of a command.

    With --json the failure is part of `answer` already, and is not printed again. If `status` is 0
    the kind of the failure determines it.
    """

    status: int = 0
    answer: str = ""
    failure: Failure | None = None
    hint: str = ""  # last line on standard error, for a person
