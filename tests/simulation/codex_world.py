"""What all sides of a simulation of Codex share, and the rules that they are held to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import anyio

from holdfast.codex import (
    Approval,
    ApprovalDecision,
    AppServer,
    CommandApproval,
    ConnectionState,
    FileChangeApproval,
)
from holdfast.codex.failures import TurnInProgress
from holdfast.rpc import Overflow
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, ErrorResponse, RequestTimedOut
from tests.simulation.codex_server import Store, Turn
from tests.simulation.harness import Trial

LOST = (ConnectionLost, ConnectionClosed)
LATE = 100.0  # seconds: far more than a hook is given


@dataclass
class World:
    """Knows what everyone did, and objects to what must not be."""

    trial: Trial
    store: Store = field(default_factory=Store)
    codex: AppServer | None = None
    connections: int = 0
    ended: float = math.inf  # when the connection did
    objections: list[object] = field(default_factory=list[object])
    _begun: dict[str, int] = field(default_factory=dict[str, int])  # turn → connection
    _decided: dict[str, str] = field(default_factory=dict[str, str])  # item → decision

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands."""
        return self.codex is not None and self.codex.state is ConnectionState.CONNECTED

    def asked_to_start(self, turn: Turn, prompt: str) -> None:
        """Object to a prompt that is mixed into a running turn."""
        self.trial.note("prompt", prompt, turn.id)
        if turn.prompts:
            self.objections.append(f"{prompt} was mixed into {turn.prompts}")
        self._begun.setdefault(turn.id, self.connections)

    def answered(self, item: str, answer: dict[str, Any]) -> None:  # Any: this is a wire
        """Object to an answer that is not what the hook said to this very question."""
        self.trial.note("decision", item, answer)
        result = answer.get("result")
        if result != ({"decision": self._decided.get(item)} if item else None):
            self.objections.append(("a wrong answer", item, answer))

    async def decide(self, approval: Approval) -> ApprovalDecision:
        """Decide an approval: at once, slowly, too late, or not at all."""
        self._check(approval)
        self._decided[approval.item] = "decline"
        chance = self.trial.chance
        wait = chance.choice([0.0, 0.0, 0.0, 1.0, 29.0, LATE])
        await anyio.sleep(wait)
        if wait == LATE:
            self.objections.append("a late hook was waited for")
        decision = chance.choice([*ApprovalDecision, None, "ValueError", "TurnInProgress"])
        if decision == "ValueError":
            raise ValueError("the hook is broken")
        if decision == "TurnInProgress":
            raise TurnInProgress(thread="", turn="")
        if isinstance(decision, ApprovalDecision):
            self._decided[approval.item] = decision.value
        return decision  # type: ignore[return-value]  # a hook may break its promise

    def _check(self, approval: Approval) -> None:
        """Object to a question that is not whole, or that nobody waits for any more."""
        if not self.is_connected:
            self.objections.append(("nobody is left to hear the answer", approval))
        match approval:
            case CommandApproval(item=item, command=command) if command == f"touch {item}":
                return
            case FileChangeApproval(turn=turn, item=item, changes=changes):
                # What it would change is known to those who saw it begin, until its turn ends.
                is_over = self.store.turn(turn).status != "inProgress"
                is_known = self._begun[turn] == self.connections and not is_over
                paths = [change.path for change in changes]
                if paths == [f"/{item}"] or not (paths or is_known):
                    return
            case _:
                pass
        self.objections.append(("an odd question", approval))

    async def note_end(self, codex: AppServer) -> None:
        """Take note of when the connection ends."""
        try:
            async for _ in codex.notifications(overflow=Overflow.DROP_OLDEST):
                pass
        except LOST as end:
            self.trial.note("connection", end.code)
        self.ended = anyio.current_time()

    async def echo(self, codex: AppServer) -> None:
        """Ask again and again until the connection ends: each answer is to its own question."""
        chance, token = self.trial.chance, 0
        while codex.state is ConnectionState.CONNECTED:
            token += 1
            try:
                timeout = chance.choice([0.05, 1.0, 10.0])
                answer = await codex.request("echo", {"token": token}, timeout=timeout)
            except (RequestTimedOut, ErrorResponse, *LOST) as end:
                self.trial.note("echo", token, end.code)
            else:
                assert answer == {"token": token}
            health = await codex.health()
            assert health.healthy == (health.reason == "")
            await anyio.sleep(chance.choice([0.1, 5.0, 60.0]))
