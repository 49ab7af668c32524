"""Ask the hook, and answer the server whatever the hook does."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from msgspec import Raw

from holdfast.codex.approval_format import ASKED, Waits, read_approval, write_decision
from holdfast.codex.hook_loop import HookTasks
from holdfast.codex.model import Approval, ApprovalDecision, Hook, InputReply
from holdfast.failures import Failure
from holdfast.rpc import Handler, Service, foreign_error
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import ApprovalCompleted, ApprovalRequested, ApprovalTimedOut, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalHooks:
    """Answers the server's approval requests: no hook, a late or a broken one declines."""

    hook: Hook | None
    timeout: float
    waits: Waits
    is_open: Callable[[], bool]  # whether the connection is
    telemetry: Telemetry
    tasks: HookTasks = field(default_factory=HookTasks)

    def service(self) -> Service:
        """What we serve the app-server: its approvals, and nothing else."""
        handlers = {method: Handler(Raw, self._serving(method)) for method in ASKED}
        return Service(handlers, error_form=foreign_error)

    async def close(self) -> None:
        """Cancel the hooks that still run; one that does not end within a second is left behind."""
        if left := await self.tasks.close():
            fields = {"hooks": left}
            self.telemetry.note(Level.WARNING, "approval hooks did not end", fields=fields)

    def _serving(self, method: str) -> Callable[[Raw], Awaitable[object]]:
        async def serve(params: Raw) -> object:
            approval = read_approval(method, params, self.waits)
            if approval is None:
                return write_decision(None, ApprovalDecision.DECLINE)
            self.telemetry.emit(ApprovalRequested(method=method))
            began = anyio.current_time()
            told = "withdrawn"  # by the server, or by the end of the connection: nothing is decided
            try:
                decision = await self._decide(method, approval)
                told = decision.name.lower() if isinstance(decision, ApprovalDecision) else "reply"
            finally:
                duration = anyio.current_time() - began
                self.telemetry.emit(
                    ApprovalCompleted(method=method, decision=told, duration=duration)
                )
            return write_decision(approval, decision)

        return serve

    async def _decide(self, method: str, approval: Approval) -> ApprovalDecision | InputReply:
        hook = self.hook
        if hook is None:
            return ApprovalDecision.DECLINE

        async def consult() -> object:
            # A task begins a moment after it is made: the connection may have ended meanwhile.
            return await hook(approval) if self.is_open() else ApprovalDecision.DECLINE

        decision: object = None  # a hook is foreign code: it may return anything
        with anyio.move_on_after(self.timeout) as limit:
            try:
                decision = await self.tasks.run(consult)
            except Failure as failure:
                self._report(failure)
        if limit.cancelled_caught:
            self.telemetry.emit(ApprovalTimedOut(method=method, limit=self.timeout))
        return (
            decision
            if isinstance(decision, (ApprovalDecision, InputReply))
            else ApprovalDecision.DECLINE
        )

    def _report(self, failure: Failure) -> None:
        """Log what a hook raised, with its stack: the hook is code of the embedding program."""
        self.telemetry.record(failure)
        stack = "".join(traceback.format_exception(failure))
        self.telemetry.note(Level.ERROR, "the approval hook failed", fields={"stack": stack})
