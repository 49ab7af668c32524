"""One conversation with Codex."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio

from holdfast.codex.core.turns import Gathered
from holdfast.codex.following import Followed
from holdfast.codex.model import Answer, Event
from holdfast.codex.wire.generated import (
    TextUserInput,
    ThreadBackgroundTerminalsCleanParams,
    ThreadBackgroundTerminalsCleanResponse,
    TurnCompletedNotification,
    TurnInterruptParams,
    TurnInterruptResponse,
    TurnStartParams,
    TurnStartResponse,
    TurnSteerParams,
    TurnSteerResponse,
    UserInput,
)
from holdfast.codex.wire.message import Message
from holdfast.failures import Failure
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut

M = TypeVar("M", bound=Message)
Call = Callable[[str, Message, type[M]], Awaitable[M]]
Prompt = str | Sequence[UserInput]

INTERRUPT_LIMIT = 5.0


class Caller:
    """How a thread reaches its server."""
