"""What is asked over HTTP, what may come of it, and what is needed of whoever carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from holdfast.agent.core.http_head import Head
from holdfast.agent.core.http_place import Place


class How(Enum):
    """In which way an answer was lost."""

    LATE = auto()
    UNCONNECTED = auto()  # nobody has picked up in time
    GONE = auto()
    UNTRUSTED = auto()  # whoever picked up is not who it should be


@dataclass(frozen=True, slots=True)
class Lost:
    """Why nothing comes, or nothing more; holds nothing of what was sent."""

    how: How
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """Where to, and with what; it is not shown, since a key is among it."""

    place: Place
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    method: str = "POST"


class WebAnswer(Protocol):
    """An answer that has begun."""

    @property
    def head(self) -> Head:
        """What it says before its body."""
        ...

    async def read(self, *, until: float) -> bytes | Lost:
        """The next bytes of the body as they come; none at its end."""
        ...

    def close(self) -> None:
        """Let go of it: a connection is kept if the answer is over, else ended at once."""
        ...


class Web(Protocol):
    """Carries requests to where they go."""

    async def ask(self, request: Request, *, connect: float, until: float) -> WebAnswer | Lost:
        """The answer once its head is here; `connect` is how many seconds that alone may take."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...
