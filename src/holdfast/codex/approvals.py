"""Ask the hook, and answer the server whatever the hook does."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import anyio
from msgspec import Raw

from holdfast.codex.core.approval import ASKED, Changes, read_approval, write_decision
from holdfast.codex.model import Approval, Decision, Hook, Reply
from holdfast.failures import Failure, boundary
from holdfast.rpc import Handler, Service, foreign_error
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import ApprovalCompleted, ApprovalRequested, ApprovalTimedOut, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """Turns the server's questions into decisions; no hook, a late or a broken one declines."""

    hook: Hook | None
    patience: float
    changes: Changes
    telemetry: Telemetry

    def service(self) -> Service:
        """What we serve the app-server: its approvals, and nothing else."""
        handlers = {method: Handler(Raw, self._serving(method)) for method in ASKED}
        return Service(handlers, error_form=foreign_error)

    def _serving(self, method: str) -> Callable[[Raw], Awaitable[object]]:
        async def serve(params: Raw) -> object:
            approval = read_approval(method, params, self.changes)
            self.telemetry.emit(ApprovalRequested(method=method))
            began = anyio.current_time()
            decision = await self._decide(method, approval)
            self.telemetry.emit(
                ApprovalCompleted(
                    method=method,
                    decision=decision.name.lower() if isinstance(decision, Decision) else "reply",
                    duration=anyio.current_time() - began,
                )
            )
            return write_decision(approval, decision)

        return serve

    async def _decide(self, method: str, approval: Approval) -> Decision | Reply:
        if self.hook is None:
            return Decision.DECLINE
        decision: object = None  # a hook is foreign code: it may return anything
        with anyio.move_on_after(self.patience) as patience:
            try:
                with boundary("codex.approval"):
                    decision = cast("object", await self.hook(approval))  # whatever it promised
            except Failure as failure:
                self._blame(failure)
        if patience.cancelled_caught:
            self.telemetry.emit(ApprovalTimedOut(method=method, limit=self.patience))
        return decision if isinstance(decision, (Decision, Reply)) else Decision.DECLINE

    def _blame(self, failure: Failure) -> None:
        """Log what a hook raised, with its stack: it is code that somebody can mend."""
        self.telemetry.record(failure)
        stack = "".join(traceback.format_exception(failure))
        self.telemetry.note(Level.ERROR, "the approval hook failed", fields={"stack": stack})
