"""What can end a turn that neither a model nor a tool has ended."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind


class AgentCrashed(
    Failure,
    code="AGENT_CRASHED",
    kind=Kind.LOST,
    title="The agent crashed",
    user_message="The agent crashed and lost its current turn. Your conversation history is "
    "saved. Press Enter to continue.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """The task of the agent ended in the middle of a turn."""

    reason: str


class AgentUnstable(
    Failure,
    code="AGENT_UNSTABLE",
    kind=Kind.UNAVAILABLE,
    title="The agent keeps crashing",
    user_message="The agent crashed {crashes} times within a minute ({reason}) and is not started "
    "again for {wait} seconds. Your conversation history is saved.",
    actions=(Action.RETRY, Action.VIEW_REPORT, Action.SWITCH_RUNNER),
):
    """The agent crashed so often that it is left alone for a while."""

    crashes: int
    reason: str
    wait: int


class StepsSpent(
    Failure,
    code="BUDGET_STEPS_SPENT",
    kind=Kind.SPENT,
    title="The turn took too many steps",
    user_message="The turn was stopped after {most} requests to the model. What was done is kept; "
    "ask again to go on.",
    actions=(Action.RESUME, Action.REVIEW_DRAFT),
):
    """A turn asked the model as often as it may."""

    most: int


class TokensSpent(
    Failure,
    code="BUDGET_TOKENS_SPENT",
    kind=Kind.SPENT,
    title="The turn took too many tokens",
    user_message="The turn was stopped after {spent} of {most} tokens. What was done is kept; "
    "ask again to go on.",
    actions=(Action.RESUME, Action.REVIEW_DRAFT),
):
    """A turn took as many tokens as it may."""

    spent: int
    most: int


class CostSpent(
    Failure,
    code="BUDGET_COST_SPENT",
    kind=Kind.SPENT,
    title="The turn cost too much",
    user_message="The turn was stopped after {spent} of {most} dollars. What was done is kept; "
    "ask again to go on.",
    actions=(Action.RESUME, Action.REVIEW_DRAFT),
):
    """A turn cost as much as it may."""

    spent: float
    most: float


class TimeSpent(
    Failure,
    code="BUDGET_TIME_SPENT",
    kind=Kind.SPENT,
    title="The turn took too long",
    user_message="The turn was stopped after {most} seconds. What was done is kept; "
    "ask again to go on.",
    actions=(Action.RESUME, Action.REVIEW_DRAFT),
):
    """A turn took as much time as it may."""

    most: float


class GoingInCircles(
    Failure,
    code="AGENT_GOING_IN_CIRCLES",
    kind=Kind.SPENT,
    title="The agent repeats itself",
    user_message="The agent used {tool} {times} times in the same way, with the same result, "
    "also after it was told. What was done is kept; say what it is to do differently.",
    actions=(Action.RESUME, Action.SWITCH_MODEL),
):
    """The model makes the same call again and again, and nothing comes of it."""

    tool: str
    times: int


class ContextExhausted(
    Failure,
    code="CONTEXT_EXHAUSTED",
    kind=Kind.SPENT,
    title="The conversation is too long",
    user_message="The conversation does not fit into {model} any more, not even summarized. "
    "Include fewer files, ask for a narrower change, or restart from the summary.",
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """Summaries do not make the conversation short enough for the model."""

    model: str
    tokens: int
    window: int | None


class HeadUnknown(
    Failure,
    code="AGENT_HEAD_UNKNOWN",
    kind=Kind.MISSING,
    title="No such entry to continue",
    user_message="The conversation has no entry {head} that a turn could go on from.",
):
    """Somebody wants to go on from an entry that the conversation does not have."""

    head: str
