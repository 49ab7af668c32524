"""Use the tools that an answer calls for: supervised, limited, and never without a result."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby

import anyio

from holdfast.agent.core import guarding
from holdfast.agent.core.fitting import arguments_of, misfit
from holdfast.agent.core.receipts import kept
from holdfast.agent.failures import GoingInCircles
from holdfast.agent.kit import Kit
from holdfast.agent.log import Log
from holdfast.agent.model import (
    Asking,
    Call,
    Done,
    Noting,
    Showing,
    Sort,
    ToolBegun,
    ToolMessage,
    UsedUp,
    Using,
)
from holdfast.agent.ports import Tool
from holdfast.failures import Failure, boundary

_SHOWN_MAX = 64 * 1024  # characters of one piece of output
_LOOK_LONGEST = 10.0  # seconds for which a result waits for a look at the draft

Inquire = Callable[[Asking], Awaitable[str]]
"""Asks the person in the name of a turn; the question gets its name from the turn."""


@dataclass(slots=True, eq=False)
class Job:
    """One call while its tool is used; it is the tool's desk."""

    call_made: Call
    tool: Tool
    arguments: dict[str, object]
    log: Log
    inquire: Inquire
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    heard: float = field(default_factory=anyio.current_time)
    is_reported: bool = False

    @property
    def call(self) -> str:
        """The name of the call."""
        return self.call_made.id

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for the person, so that its time stands still."""
        return self.scope.deadline == math.inf

    def show(self, output: str) -> None:
        """Show the person a piece of output at once; it is not kept."""
        self.heard = anyio.current_time()
        self.log.show(Showing(self.call, Sort.OUTPUT, output[-_SHOWN_MAX:]))

    async def ask(
        self, title: str, detail: str = "", choices: tuple[str, ...] = (), *, is_leave: bool = False
    ) -> str:
        """Ask the person, and wait; the tool's time stands still meanwhile."""
        left = self.scope.deadline - anyio.current_time()
        self.scope.deadline = math.inf
        try:
            asking = Asking("", title, detail, choices, self.call, is_leave)
            return await self.inquire(asking)
        finally:
            self.heard = anyio.current_time()
            self.scope.deadline = self.heard + left


class Calls:
    """The calls of one turn; those that only read are used together, all others by themselves."""

    def __init__(self, kit: Kit, log: Log, inquire: Inquire) -> None:
        self._kit, self._log, self._inquire = kit, log, inquire
        self._guard = guarding.Guard()
        self._running: set[Job] = set()
        self._verdict: GoingInCircles | None = None
        self._cut_at: int | None = None
        self._revision: int | None = None  # of the draft, when a call was repeated

    async def use(self, calls: Sequence[Call], *, cut_at: int | None = None) -> None:
        """Use each, and enter what came of it.

        `cut_at` is the length in tokens of an answer that was cut: its last call may be, too.

        A turn that repeats itself without effect is stopped after the last call: a person is asked
        whether to continue, and GoingInCircles is raised if not.
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
        question = Asking("", failure.title, failure.user_message, choices)
        if await self._inquire(question) != guarding.CONTINUE:
            raise failure
        self._guard.reset()

    def _groups(self, calls: Sequence[Call]) -> Iterator[list[Call]]:
        for only_reads, group in groupby(calls, self._only_reads):
            if only_reads:
                yield list(group)
            else:
                yield from ([each] for each in group)

    def _only_reads(self, call: Call) -> bool:
        tool = self._kit.tools.get(call.tool)
        return tool is None or tool.only_reads

    async def _use(self, calls: Sequence[Call]) -> None:
        jobs: list[Job] = []
        for call in calls:
            job = self._job(call)
            if isinstance(job, Job):
                jobs.append(job)
                using = Using(call.id, call.tool, _title(job), job.arguments)
                self._log.put(ToolBegun(call.id), using)
            else:
                self._log.put(Using(call.id, call.tool, call.tool, {}))
                await self._finish(call, Done(f"Nothing was done: {job}.", is_error=True))
        if not jobs:
            return
        await self._log.kept()  # that it was called for and begun, before it may do anything
        if len(jobs) == 1:
            await self._run(jobs[0])
            return
        async with anyio.create_task_group() as tasks:
            for job in jobs:
                tasks.start_soon(self._run, job)

    def _job(self, call: Call) -> Job | str:
        """The call as it is carried out, or why it cannot be."""
        tool = self._kit.tools.get(call.tool)
        if tool is None:
            return f"there is no tool {call.tool!r}; there are {', '.join(self._kit.tools)}"
        arguments = arguments_of(call.arguments)
        if isinstance(arguments, str):
            if self._cut_at is not None:
                return f"the call was cut off at {self._cut_at} tokens. Make it smaller"
            return arguments
        return misfit(arguments, tool.spec.parameters) or Job(
            call, tool, arguments, self._log, self._inquire
        )

    async def _run(self, job: Job) -> None:
        longest = self._kit.tool_longest
        done: Done | None = None
        self._running.add(job)
        try:
            with job.scope:
                job.scope.deadline = anyio.current_time() + longest
                done = await _attempt(job)
        finally:
            self._running.remove(job)
        if done is None:
            words = f"Stopped: it had not ended after {longest:.0f} seconds."
            done = Done(f"{words} What it did until then may have had effects.", is_error=True)
        await self._finish(job.call_made, done)

    async def _finish(self, call: Call, done: Done) -> None:
        text = kept(done.text)
        is_change = bool(done.paths)
        if not is_change and self._guard.is_repeated(call, text):
            is_change = await self._has_changed()
        times = self._guard.note(call, text, is_change=is_change)
        message = ToolMessage(call.id, text + guarding.warning(call, times), done.is_error)
        self._log.put(*done.spent)
        self._log.enter(message, UsedUp(call.id, done))
        self._verdict = self._verdict or guarding.verdict(call, times)

    async def _has_changed(self) -> bool:
        """Whether the draft is another one than at the last look.

        The result waits for this, and is kept also if the turn is stopped meanwhile.
        """
        before, now = self._revision, None
        with anyio.move_on_after(_LOOK_LONGEST, shield=True), suppress(Failure):
            now = await self._kit.revision()
        if now is None:
            return False
        self._revision = now
        return before is not None and now != before

    @property
    def most_silent(self) -> tuple[str, float] | None:
        """The tool that has told nothing for longest, and since when, if any is used."""
        jobs = [job for job in self._running if not job.is_waiting]
        job = min(jobs, key=lambda job: job.heard, default=None)
        return None if job is None else (job.call_made.tool, job.heard)

    async def report_silence(self) -> None:
        """Say it once of each tool that tells nothing for long, until cancelled."""
        longest = self._kit.silence_longest
        while True:
            await anyio.sleep(longest / 4)
            now = anyio.current_time()
            for job in self._running:
                is_silent = now - job.heard >= longest and not job.is_waiting
                if is_silent and not job.is_reported:
                    job.is_reported = True
                    limit = f"it is stopped after {self._kit.tool_longest:.0f}"
                    words = f"{job.call_made.tool} has told nothing for {longest:.0f} seconds"
                    self._log.put(Noting(f"{words}; {limit}."))


async def _attempt(job: Job) -> Done:
    """Use the tool; whatever it raises is its result."""
    try:
        with boundary("agent.tool"):
            return await job.tool.use(job.arguments, job)
    except Failure as failure:
        return Done(failure.user_message, is_error=True)


def _title(job: Job) -> str:
    try:
        with boundary("agent.title"):
            return job.tool.title(job.arguments)
    except Failure:
        return job.call_made.tool
