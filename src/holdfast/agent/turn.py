"""One turn of the agent: run the effects of the loop, and leave a valid history.

`loop.py` decides, this module acts. `AgentTurn._drive` feeds an event into `step`, runs the effect
that it returns, and turns the outcome into the next event:

  PREPARE   repair the history, append queued steering, check the budget      _prepare
  REQUEST   stream one answer, append it when it is complete                  _request
  EXECUTE   run the tool calls of the answer                                  ToolCallExecutor
  COMPACT   replace old messages by a summary                                 _compact
  ASK       ask the person: retry, switch the model, cancel                   _pause
  SETTLE    end processes, repair open tool calls                             _settle

Invariants:

- A tool runs only after the records of its call and of its start are durable
  (`ConversationLog.kept`), so a crash never hides that it may have had effects.
- Every tool call gets exactly one result, also when it fails, times out or is cancelled.
- A model receives only what is durable: `_prepare` awaits it before each request.
- `stop` cancels only the running effect. SETTLE runs outside of that scope, so an aborted
  turn still leaves a valid history.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import anyio
import msgspec

from holdfast.agent import loop as guarding
from holdfast.agent.arguments import arguments_of, misfit
from holdfast.agent.failures import AnswerIncomplete, ContentRefused, ContextTooLong, GoingInCircles
from holdfast.agent.history.tree import ABORTED, repair_notice, repairs
from holdfast.agent.loop import Budget, LoopEffect, LoopEvent, LoopPhase, step
from holdfast.agent.model import (
    AnswerCompleted,
    MessageAppended,
    ModelChoice,
    ModelMessage,
    ModelRequest,
    ModelText,
    Origin,
    SteeringDequeued,
    SteeringQueued,
    StopReason,
    Tokens,
    ToolCall,
    ToolCallStarted,
    ToolMessage,
    ToolResult,
    ToolUse,
    ToolUseEnded,
    TurnDelta,
    TurnDeltaKind,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
    TurnUsage,
    TurnWaiting,
    UserMessage,
)
from holdfast.agent.model_request import Reply, Summarizer
from holdfast.agent.ports import Tool
from holdfast.agent.text import kept
from holdfast.agent.turn_context import AgentConfig, ConversationLog, TurnItem, chosen, new_id
from holdfast.failures import Failure, Kind, boundary, to_wire
from holdfast.world import PendingReplies, background_tasks

# Execution of tool calls.

_SHOWN_MAX = 64 * 1024  # characters of one piece of output
# Seconds. A hanging scan of the draft must not hold back the result of a tool.
_LOOK_LONGEST = 10.0

AskPerson = Callable[[TurnQuestion], Awaitable[str]]
"""Asks the person, and returns the answer; the turn assigns the question's id."""


@dataclass(slots=True, eq=False)
class RunningToolCall:
    """A tool call in execution; the `ToolContext` of its tool."""

    call_made: ToolCall
    tool: Tool
    arguments: dict[str, object]
    log: ConversationLog
    inquire: AskPerson
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    heard: float = field(default_factory=anyio.current_time)
    is_reported: bool = False

    @property
    def call(self) -> str:
        return self.call_made.id

    @property
    def is_waiting(self) -> bool:
        """Whether the person is being asked, which suspends the timeout."""
        return self.scope.deadline == math.inf

    def show(self, output: str) -> None:
        """Display a piece of output; resets the silence timer."""
        self.heard = anyio.current_time()
        self.log.show(TurnDelta(self.call, TurnDeltaKind.OUTPUT, output[-_SHOWN_MAX:]))

    async def ask(
        self,
        title: str,
        detail: str = "",
        choices: tuple[str, ...] = (),
        *,
        is_permission: bool = False,
    ) -> str:
        """Ask the person; the timeout of the tool is suspended meanwhile."""
        # A person may take hours to answer; only the tool's own time counts.
        left = self.scope.deadline - anyio.current_time()
        self.scope.deadline = math.inf
        try:
            asking = TurnQuestion("", title, detail, choices, self.call, is_permission)
            return await self.inquire(asking)
        finally:
            self.heard = anyio.current_time()
            self.scope.deadline = self.heard + left


class ToolCallExecutor:
    """Runs the tool calls of a turn: consecutive read-only ones concurrently, others alone."""

    def __init__(self, config: AgentConfig, log: ConversationLog, inquire: AskPerson) -> None:
        self._config, self._log, self._inquire = config, log, inquire
        self._guard = guarding.RepetitionGuard()
        self._running: set[RunningToolCall] = set()
        self._verdict: GoingInCircles | None = None
        self._cut_at: int | None = None
        self._revision: int | None = None  # draft revision at the last repeated call

    async def use(self, calls: Sequence[ToolCall], *, cut_at: int | None = None) -> None:
        """Run all calls, and append their results.

        `cut_at` is the length in tokens of a truncated answer, whose last call may be incomplete.

        Raises GoingInCircles after the last call, if the calls repeat without effect and the person
        does not choose to continue.
        """
        self._verdict, self._cut_at = None, cut_at
        for group in self._groups(calls):
            await self._use(group)
        await self._continue_or_stop()

    async def _continue_or_stop(self) -> None:
        failure = self._verdict
        if failure is None:
            return
        choices = (guarding.CONTINUE, guarding.STOP)
        question = TurnQuestion("", failure.title, failure.user_message, choices)
        if await self._inquire(question) != guarding.CONTINUE:
            raise failure
        self._guard.reset()

    def _groups(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        for only_reads, group in groupby(calls, self._only_reads):
            if only_reads:
                yield list(group)
            else:
                yield from ([each] for each in group)

    def _only_reads(self, call: ToolCall) -> bool:
        tool = self._config.tools.get(call.tool)
        return tool is None or tool.only_reads

    async def _use(self, calls: Sequence[ToolCall]) -> None:
        jobs: list[RunningToolCall] = []
        for call in calls:
            job = self._job(call)
            if isinstance(job, RunningToolCall):
                jobs.append(job)
                using = ToolUse(call.id, call.tool, _title(job), job.arguments)
                self._log.put(ToolCallStarted(call.id), using)
            else:
                self._log.put(ToolUse(call.id, call.tool, call.tool, {}))
                await self._finish(call, ToolResult(f"Nothing was done: {job}.", is_error=True))
        if not jobs:
            return
        # Write-ahead: the call and its start must be durable before the tool may have effects.
        await self._log.kept()
        if len(jobs) == 1:
            await self._run(jobs[0])
            return
        async with anyio.create_task_group() as tasks:
            for job in jobs:
                tasks.start_soon(self._run, job)

    def _job(self, call: ToolCall) -> RunningToolCall | str:
        """Validate a call; return the reason if it cannot run."""
        tool = self._config.tools.get(call.tool)
        if tool is None:
            return f"there is no tool {call.tool!r}; there are {', '.join(self._config.tools)}"
        arguments = arguments_of(call.arguments)
        if isinstance(arguments, str):
            if self._cut_at is not None:
                return f"the call was cut off at {self._cut_at} tokens. Make it smaller"
            return arguments
        return misfit(arguments, tool.spec.parameters) or RunningToolCall(
            call, tool, arguments, self._log, self._inquire
        )

    async def _run(self, job: RunningToolCall) -> None:
        longest = self._config.tool_longest
        done: ToolResult | None = None
        self._running.add(job)
        try:
            with job.scope:
                job.scope.deadline = anyio.current_time() + longest
                done = await _attempt(job)
        finally:
            self._running.remove(job)
        if done is None:
            # The scope's deadline cancelled the tool.
            words = f"Stopped: it had not ended after {longest:.0f} seconds."
            done = ToolResult(
                f"{words} What it did until then may have had effects.", is_error=True
            )
        await self._finish(job.call_made, done)

    async def _finish(self, call: ToolCall, done: ToolResult) -> None:
        text = kept(done.text)
        is_change = bool(done.paths)
        if not is_change and self._guard.is_repeated(call, text):
            is_change = await self._has_changed()
        times = self._guard.note(call, text, is_change=is_change)
        message = ToolMessage(call.id, text + guarding.warning(call, times), done.is_error)
        self._log.put(*done.spent)
        self._log.enter(message, ToolUseEnded(call.id, done))
        self._verdict = self._verdict or guarding.verdict(call, times)

    async def _has_changed(self) -> bool:
        """Whether the draft's revision changed since the last check.

        Shielded: the result of the tool must be appended even if the turn is stopped meanwhile.
        """
        before, now = self._revision, None
        with anyio.move_on_after(_LOOK_LONGEST, shield=True), suppress(Failure):
            now = await self._config.revision()
        if now is None:
            return False
        self._revision = now
        return before is not None and now != before

    @property
    def most_silent(self) -> tuple[str, float] | None:
        """The running tool without output for longest, and the time of its last output."""
        jobs = [job for job in self._running if not job.is_waiting]
        job = min(jobs, key=lambda job: job.heard, default=None)
        return None if job is None else (job.call_made.tool, job.heard)

    async def report_silence(self) -> None:
        """Notify the person once of each tool that is silent for long, until cancelled."""
        longest = self._config.silence_longest
        while True:
            await anyio.sleep(longest / 4)
            now = anyio.current_time()
            for job in self._running:
                is_silent = now - job.heard >= longest and not job.is_waiting
                if is_silent and not job.is_reported:
                    job.is_reported = True
                    limit = f"it is stopped after {self._config.tool_longest:.0f}"
                    words = f"{job.call_made.tool} has told nothing for {longest:.0f} seconds"
                    self._log.put(TurnNote(f"{words}; {limit}."))


async def _attempt(job: RunningToolCall) -> ToolResult:
    """Run the tool; a failure that it raises becomes its result."""
    try:
        with boundary("agent.tool"):
            return await job.tool.use(job.arguments, job)
    except Failure as failure:
        return ToolResult(failure.user_message, is_error=True)


def _title(job: RunningToolCall) -> str:
    try:
        with boundary("agent.title"):
            return job.tool.title(job.arguments)
    except Failure:
        return job.call_made.tool


RETRY: Final = "Retry"
SWITCH: Final = "Switch model"
CANCEL: Final = "Cancel"

WAITING_TOLD: Final = 5.0  # seconds between two `TurnWaiting` events
CONTINUATIONS_MAX: Final = 3  # requests in a row to continue a truncated answer
EMPTY_MAX: Final = 1  # empty answers in a row that are requested again

_CONTINUE: Final = (
    "Your last answer was cut off at {tokens} tokens. Continue exactly where it stopped, without "
    "repeating anything."
)
_SAY_SOMETHING: Final = (
    "Your last answer was empty. Continue with the task, or say what came of it."
)


class AgentTurn:
    """One turn of a conversation, from its prompt to its end."""

    def __init__(self, config: AgentConfig, log: ConversationLog, choice: ModelChoice) -> None:
        self.phase = LoopPhase.IDLE
        self.choice = choice
        self._config, self._log = config, log
        self._questions, self._asked, self._waiting = PendingReplies(), 0, 0
        self._calls = ToolCallExecutor(config, log, self._inquire)
        self._summarizer = Summarizer(config, log)
        self._budget = Budget(anyio.current_time())
        self._specs = config.specs
        self._besides = len(config.system) + len(msgspec.json.encode(self._specs))
        self._prompt: str | None = None
        self._compacts = False
        self._reply: Reply | None = None  # while it streams
        self._called: tuple[ToolCall, ...] = ()
        self._cut_at: int | None = None  # length of the answer in tokens, if it was truncated
        self._cuts = self._empties = 0  # truncated and empty answers in a row
        self._is_continued = False  # the next text continues a truncated one
        self._is_answered = self._is_stopped = self._is_over = False
        self._failure: Failure | None = None
        self._scope = anyio.CancelScope()
        self._effects: dict[LoopEffect, Callable[[], Awaitable[LoopEvent]]] = {
            LoopEffect.PREPARE: self._prepare,
            LoopEffect.REQUEST: self._request,
            LoopEffect.EXECUTE: self._execute,
            LoopEffect.COMPACT: self._compact,
            LoopEffect.ASK: self._pause,
        }

    async def run(self, prompt: str, *, compacts: bool = False) -> None:
        """Run the turn, and emit `TurnOver`; only unexpected exceptions are raised."""
        self._prompt, self._compacts = prompt, compacts
        async with background_tasks() as tasks:
            tasks.start_soon(self._calls.report_silence)
            tasks.start_soon(self._tell_waiting)
            await self._drive()
        self._is_over = True
        self._log.put(self._over())

    def _over(self) -> TurnOver:
        if self._is_stopped:
            return TurnOver(TurnOutcome.ABORTED)
        match self._failure:
            case None:
                return TurnOver(TurnOutcome.COMPLETED)
            case AnswerIncomplete() as failure:
                return TurnOver(TurnOutcome.INCOMPLETE, to_wire(failure))
            case ContentRefused() as failure:
                return TurnOver(TurnOutcome.REFUSED, to_wire(failure))
            case failure:
                return TurnOver(TurnOutcome.FAILED, to_wire(failure))

    async def _tell_waiting(self) -> None:
        """Emit what the turn waits for, until cancelled.

        Clients use it to tell a silent model or tool, which has its own timeout, from a stuck turn,
        for which nothing is emitted.
        """
        while True:
            await anyio.sleep(WAITING_TOLD)
            now = anyio.current_time()
            reply = self._reply or self._summarizer.reply
            if reply is not None:
                what, since = f"{self.choice.provider}/{self.choice.model}", reply.heard
            elif (silent := self._calls.most_silent) is not None:
                what, since = silent
            else:
                continue
            if now - since >= WAITING_TOLD:
                self._log.queue.show(TurnWaiting(what, now - since))

    async def _drive(self) -> None:
        event = LoopEvent.PROMPTED
        while True:
            self.phase, effect = step(self.phase, event)
            assert effect is not None, "whatever drives the loop leads on"
            if effect is LoopEffect.END:
                return
            event = await (self._settle() if effect is LoopEffect.SETTLE else self._do(effect))

    def stop(self) -> None:
        """Abort the turn, and end everything it started."""
        self._is_stopped = True
        self._scope.cancel()

    async def steer(self, text: str) -> bool:
        """Queue text for the next request; False if the turn no longer accepts any."""
        if self._is_over or self._is_stopped:
            return False
        self._log.put(SteeringQueued(new_id(), text))
        return await self._log.queue.kept()

    def answer(self, question: str, answer: str) -> bool:
        """Answer a question; False if it is not open."""
        return self._questions.answer(question, answer)

    async def _do(self, effect: LoopEffect) -> LoopEvent:
        """Run an effect, unless the turn is stopped before or during it."""
        event = LoopEvent.ABORTED
        with anyio.CancelScope() as self._scope:
            if self._is_stopped:
                return LoopEvent.ABORTED
            try:
                event = await self._effects[effect]()
            except Failure as failure:
                self._failure = failure
                event = LoopEvent.FAILED
        return LoopEvent.ABORTED if self._is_stopped else event

    async def _prepare(self) -> LoopEvent:
        """Repair the history, append new input, and check whether a request is needed."""
        tree = self._log.tree
        if repaired := repairs(tree):
            self._log.put(*repaired, TurnNote(repair_notice(len(repaired))))
        for id, text in tuple(tree.queued.items()):
            self._log.put(SteeringDequeued(id), self._entered(UserMessage(text, Origin.STEERING)))
            self._is_answered = False
        if self._prompt is not None:
            if self._prompt.strip() or not self._compacts:
                self._log.enter(UserMessage(self._prompt))
            else:
                self._is_answered = True
            self._prompt = None
        if self._compacts:
            return LoopEvent.TOO_LONG
        if self._is_answered:
            return LoopEvent.DONE
        spent = self._budget.empty(self._config.budget, now=anyio.current_time())
        if spent is not None:
            raise spent
        if self._summarizer.is_needed(self.choice, besides=self._besides):
            return LoopEvent.TOO_LONG
        # The model must not see a message that a crash could still lose.
        await self._log.kept()
        return LoopEvent.READY

    async def _request(self) -> LoopEvent:
        """Stream one answer, and append it when it is complete."""
        self._config.agreed(self.choice.provider)
        self._budget.steps += 1
        said = tuple(self._log.tree.line.said)
        prompt = ModelRequest(self._config.system, said, self._specs)
        self._reply = Reply(self._log)
        try:
            answered = await self._reply.receive(self._config.models, self.choice, prompt)
        except ContextTooLong:
            self._reply = None
            return LoopEvent.TOO_LONG
        except Failure as failure:
            self._reply = None
            if not _may_pass(failure):
                raise
            self._failure = failure
            return LoopEvent.TROUBLED
        self._take(self._reply, answered)
        self._reply = None
        self._judge(answered)
        return LoopEvent.CALLED if self._called else LoopEvent.SAID

    def _judge(self, answered: AnswerCompleted) -> None:
        """Request the rest of a truncated or empty answer, within limits.

        Raises ContentRefused or AnswerIncomplete. A truncated tool call is not requested again
        here: the model learns about it from the result of the call.
        """
        message, tokens = answered.message, answered.tokens.output
        named = {"provider": self.choice.provider, "model": self.choice.model}
        if answered.stop is StopReason.REFUSED:
            raise ContentRefused(**named, status=200, word="refusal")
        is_cut = answered.stop is StopReason.LENGTH
        self._cuts = self._cuts + 1 if is_cut else 0
        is_empty = not is_cut and not message.calls and not message.text.strip()
        self._empties = self._empties + 1 if is_empty else 0
        if self._cuts > CONTINUATIONS_MAX:
            reason = f"was cut off at its output limit {self._cuts} times in a row"
            raise AnswerIncomplete(**named, reason=reason)
        if self._empties > EMPTY_MAX:
            raise AnswerIncomplete(**named, reason="was empty, also when asked again")
        if is_cut:
            note = f"The model's answer was cut off at {tokens} tokens; it is asked to continue."
            self._log.put(TurnNote(note))
        if message.calls or not (is_cut or is_empty):
            return
        asked = _CONTINUE.format(tokens=tokens) if is_cut else _SAY_SOMETHING
        self._log.enter(UserMessage(asked, Origin.NOTICE))
        self._is_answered = False

    def _take(self, reply: Reply, answered: AnswerCompleted) -> None:
        message, tokens = answered.message, answered.tokens
        self._summarizer.relax()
        spent = self._config.paid(self.choice, tokens)
        self._budget.pay(tokens, spent.cost_usd)
        entered: list[TurnItem] = [MessageAppended(reply.id, self._log.tree.head, message), spent]
        thought = "\n".join(each.text for each in message.thinking if each.text)
        if thought:
            entered.append(ModelText(reply.thinking_id, thought, is_thinking=True))
        if message.text:
            entered.append(ModelText(reply.id, message.text, continues=self._is_continued))
        self._log.put(*entered)
        self._log.put(self._costing(tokens))
        self._called = message.calls
        self._cut_at = tokens.output if answered.stop is StopReason.LENGTH else None
        self._is_answered = not message.calls
        is_cut = answered.stop is StopReason.LENGTH and not message.calls
        self._is_continued = is_cut and (self._is_continued or bool(message.text))

    async def _execute(self) -> LoopEvent:
        """Run the tool calls of the last answer."""
        await self._calls.use(self._called, cut_at=self._cut_at)
        return LoopEvent.EXECUTED

    async def _compact(self) -> LoopEvent:
        """Summarize old messages; the next PREPARE checks whether that was enough."""
        self._config.agreed(self.choice.provider)
        try:
            spent = await self._summarizer.compact(self.choice, besides=self._besides)
        except Failure as failure:
            if not _may_pass(failure) and not isinstance(failure, AnswerIncomplete):
                raise
            self._failure = failure
            return LoopEvent.TROUBLED
        self._compacts = False
        self._budget.pay(spent.tokens, spent.cost_usd)
        return LoopEvent.RESUMED

    async def _pause(self) -> LoopEvent:
        """Ask the person what to do about a provider error; no answer cancels."""
        failure = self._failed()
        asking = TurnQuestion("", failure.title, failure.user_message, (RETRY, SWITCH, CANCEL))
        answer = await self._ask(asking)
        if answer == SWITCH:
            known = f"{self.choice.provider}/{self.choice.model}"
            word = await self._ask(TurnQuestion("", "Which model?", f"provider/model; now {known}"))
            if not word.strip():
                raise failure
            self.choice = chosen(word.strip(), self.choice)
        elif answer != RETRY:
            raise failure
        self._failure = None
        return LoopEvent.RESUMED

    async def _settle(self) -> LoopEvent:
        """End the turn: stop processes, append a partial answer, repair open calls."""
        await self._config.clear()
        # The person saw the partial answer, so the conversation must contain it.
        if self._is_stopped and self._reply is not None and self._reply.text.strip():
            text = f"{self._reply.text}\n\n{ABORTED}"
            self._log.enter(ModelMessage(text), ModelText(self._reply.id, text), id=self._reply.id)
        if repaired := repairs(self._log.tree, is_aborted=self._is_stopped):
            self._log.put(*repaired, TurnNote(repair_notice(len(repaired))))
        return LoopEvent.SETTLED

    async def _inquire(self, asking: TurnQuestion) -> str:
        """Ask on behalf of a tool; the phase is WAITING while any tool asks."""
        self._waiting += 1
        self.phase, _ = step(self.phase, LoopEvent.ASKED)
        try:
            return await self._ask(asking)
        finally:
            self._waiting -= 1
            if not self._waiting and self.phase is LoopPhase.WAITING:
                self.phase, _ = step(self.phase, LoopEvent.ANSWERED)

    async def _ask(self, asking: TurnQuestion) -> str:
        self._asked += 1
        question = f"{asking.item or 'turn'}/{new_id()}/{self._asked}"
        with self._questions.open(question) as answer:
            self._log.put(msgspec.structs.replace(asking, question=question))
            return await answer.wait()

    def _entered(self, message: UserMessage) -> MessageAppended:
        return MessageAppended(new_id(), self._log.tree.head, message)

    def _costing(self, tokens: Tokens) -> TurnUsage:
        tree = self._log.tree
        return TurnUsage(
            self.choice,
            Tokens(tree.input, tree.cached, tree.output),
            tokens.input + tokens.output,
            self._config.models.window(self.choice),
            tree.cost_usd,
        )

    def _failed(self) -> Failure:
        assert self._failure is not None, "something failed"
        return self._failure


def _may_pass(failure: Failure) -> bool:
    """Whether the request may succeed later, so that asking the person makes sense."""
    return failure.retryable or failure.kind.passes or failure.kind is Kind.LATE
