"""Failures of the agent, its models and its tools."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery

_AGAIN = (Action.RETRY, Action.SWITCH_MODEL, Action.CANCEL)


class KeyRefused(
    Failure,
    code="MODEL_KEY_REFUSED",
    kind=Kind.CREDENTIALS,
    title="The provider refused the key",
    user_message="{provider} does not accept our key for {model} ({word}). "
    "Check the key in the settings.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_MODEL),
):
    """The provider rejects the key, or the key has no access to the model."""

    provider: str
    model: str
    status: int
    word: str


class ModelUnknown(
    Failure,
    code="MODEL_UNKNOWN",
    kind=Kind.MISSING,
    title="No such model",
    user_message="{provider} has no model {model}, or not for this key.",
    actions=(Action.SWITCH_MODEL, Action.OPEN_SETTINGS),
):
    """The provider does not have the model."""

    provider: str
    model: str
    status: int
    word: str


class RateLimited(
    Failure,
    code="MODEL_RATE_LIMITED",
    kind=Kind.LIMITED,
    title="Too many requests",
    user_message="{provider} wants us to ask {model} less often for a while.",
    actions=(Action.WAIT, *_AGAIN),
):
    """Too many requests."""

    provider: str
    model: str
    status: int
    word: str


class ModelOverloaded(
    Failure,
    code="MODEL_OVERLOADED",
    kind=Kind.UNAVAILABLE,
    title="The provider cannot answer now",
    user_message="{provider} has trouble of its own and cannot answer for {model} now ({word}).",
    actions=_AGAIN,
):
    """The provider is overloaded or has an internal error."""

    provider: str
    model: str
    status: int
    word: str


class ModelUnreachable(
    Failure,
    code="MODEL_UNREACHABLE",
    kind=Kind.UNAVAILABLE,
    title="The provider cannot be reached",
    user_message="No connection to {provider} can be made ({reason}). Check the network.",
    actions=_AGAIN,
):
    """No connection to the provider."""

    provider: str
    model: str
    reason: str


class ModelStalled(
    Failure,
    code="MODEL_STALLED",
    kind=Kind.LATE,
    title="The model stopped responding",
    user_message="{provider} took longer than {seconds:g} seconds ({stage}), "
    "and was not waited for.",
    actions=_AGAIN,
):
    """A timeout: connecting, first byte, between chunks, or in total."""

    provider: str
    model: str
    stage: str
    seconds: float


class AnswerCut(
    Failure,
    code="MODEL_ANSWER_CUT",
    kind=Kind.LOST,
    title="The answer broke off",
    user_message="The connection to {provider} ended before the answer was whole. "
    "Nothing of it was kept.",
    actions=(Action.REGENERATE, *_AGAIN),
):
    """The stream ended before the answer was complete."""

    provider: str
    model: str
    reason: str


class AnswerGarbled(
    Failure,
    code="MODEL_ANSWER_GARBLED",
    kind=Kind.BROKEN,
    title="The answer is not valid",
    user_message="The response of {provider} is not valid in its format ({problem}). "
    "Nothing of it was kept.",
    recovery=Recovery.RETRY_BACKOFF,
    actions=(Action.REGENERATE, *_AGAIN),
):
    """The response is not valid in the provider's format."""

    provider: str
    model: str
    problem: str


class AnswerTooLarge(
    Failure,
    code="MODEL_ANSWER_TOO_LARGE",
    kind=Kind.BROKEN,
    title="The answer is too large",
    user_message="The answer of {model} grew beyond {bytes_max:,} bytes. Nothing of it was kept.",
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """The answer exceeds the size limit."""

    provider: str
    model: str
    bytes_max: int


class ContentRefused(
    Failure,
    code="MODEL_CONTENT_REFUSED",
    kind=Kind.DENIED,
    title="The provider will not answer this",
    user_message="{provider} refuses to answer because of what was said ({word}). "
    "Say it differently, or go back to before it.",
    recovery=Recovery.FIX_INPUT,
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """The provider's content policy rejected the conversation."""

    provider: str
    model: str
    status: int
    word: str


class ContextTooLong(
    Failure,
    code="CONTEXT_TOO_LONG",
    kind=Kind.INVALID,
    title="The conversation is too long",
    user_message="The conversation no longer fits into {model}.",
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """The request exceeds the model's context window."""

    provider: str
    model: str
    status: int
    word: str


class QuotaExhausted(
    Failure,
    code="MODEL_QUOTA_EXHAUSTED",
    kind=Kind.SPENT,
    title="The account is used up",
    user_message="The account with {provider} has no money or quota left ({word}). "
    "Fill it up there, or use another provider.",
    actions=(Action.SWITCH_MODEL, Action.OPEN_SETTINGS, Action.CANCEL),
):
    """The account has no credit or quota left."""

    provider: str
    model: str
    status: int
    word: str


class RequestRefused(
    Failure,
    code="MODEL_REQUEST_REFUSED",
    kind=Kind.INVALID,
    title="The provider refused the request",
    user_message="{provider} does not take what was sent to {model} ({status}, {word}): {said}",
    actions=(Action.SWITCH_MODEL, Action.VIEW_REPORT, Action.CANCEL),
):
    """The provider rejects the request itself."""

    provider: str
    model: str
    status: int
    word: str
    said: str
    param: str = ""  # the rejected parameter, if the provider names it


class AnswerIncomplete(
    Failure,
    code="MODEL_ANSWER_INCOMPLETE",
    kind=Kind.BROKEN,
    title="The model's answer is incomplete",
    user_message="The last answer of {provider}/{model} {reason}. What was done is kept; "
    "ask again to continue, or choose another model.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESUME, Action.SWITCH_MODEL, Action.REVIEW_DRAFT),
):
    """The answer was truncated at the output limit or empty, repeatedly."""

    provider: str
    model: str
    reason: str


class ProviderMoved(
    Failure,
    code="MODEL_PROVIDER_MOVED",
    kind=Kind.MISCONFIGURED,
    title="The provider is elsewhere",
    user_message="The address of {provider} sends us elsewhere ({status}), "
    "and a key is not carried on. Set its new address.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_MODEL),
):
    """The provider responds with a redirect, which is never followed."""

    provider: str
    model: str
    status: int


class ScriptEnded(
    Failure,
    code="SCRIPT_ENDED",
    kind=Kind.MISSING,
    title="The script is over",
    user_message="The script of the scripted model has only {answers} answers.",
):
    """The scripted model received more requests than its script has answers."""

    answers: int


# Configuration.


class KeyMissing(
    Failure,
    code="MODEL_KEY_MISSING",
    kind=Kind.CREDENTIALS,
    title="No key for the provider",
    user_message="There is no key for {provider}. Enter it: holdfast login {provider}. Or set "
    "{variable}, or put it into {file}.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_MODEL),
):
    """The provider needs a key, and no source has one."""

    provider: str
    variable: str
    file: str


class KeyUnusable(
    Failure,
    code="MODEL_KEY_UNUSABLE",
    kind=Kind.INVALID,
    title="The key cannot be used",
    user_message="No key of {provider} was kept: {reason}.",
    phase="login",
):
    """The text entered is not a valid key."""

    provider: str
    reason: str


class KeyFileOpen(
    Failure,
    code="MODEL_KEY_FILE_OPEN",
    kind=Kind.MISCONFIGURED,
    title="Others can read the keys",
    user_message="{file} may be read by others than you, so no key is taken from it. "
    "Run: chmod 600 {file}",
    actions=(Action.OPEN_SETTINGS,),
):
    """The key file is readable by other users."""

    file: str
    mode: str


class SettingsUnreadable(
    Failure,
    code="MODEL_SETTINGS_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The provider settings are not valid",
    user_message="{file}: {problem}.",
    actions=(Action.OPEN_SETTINGS,),
):
    """The file with providers or keys is not valid."""

    file: str
    problem: str


class ProviderUnknown(
    Failure,
    code="MODEL_PROVIDER_UNKNOWN",
    kind=Kind.MISSING,
    title="No such provider",
    user_message="There is no provider {provider}; there are {known}.",
    actions=(Action.SWITCH_MODEL, Action.OPEN_SETTINGS),
):
    """No provider of that name is configured."""

    provider: str
    known: str


class ScriptInvalid(
    Failure,
    code="SCRIPT_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The script is not valid",
    user_message="{name}: {problem}.",
):
    """The script of the scripted model is not valid."""

    name: str
    problem: str


class McpSettingsUnfit(
    Failure,
    code="MCP_SETTINGS_UNFIT",
    kind=Kind.MISCONFIGURED,
    title="The MCP settings are wrong",
    user_message="{file} cannot be used: {reason}. No MCP server of it is started.",
    actions=(Action.OPEN_SETTINGS,),
):
    """The MCP configuration file is not valid."""

    file: str
    reason: str


# Tools.


class ToolRefused(
    Failure,
    code="TOOL_REFUSED",
    kind=Kind.INVALID,
    title="The tool cannot do that",
    user_message="{reason}",
):
    """The tool does not support the request, or it does not fit the current files."""

    reason: str


class EditStale(
    Failure,
    code="TOOL_EDIT_STALE",
    kind=Kind.CONFLICT,
    title="The lines have changed",
    user_message="Nothing was changed in {path}: {reason}. These lines are there now:\n{now}",
):
    """The lines to edit have changed since they were read."""

    path: str
    reason: str
    now: str


class PermissionRefused(
    Failure,
    code="TOOL_LEAVE_REFUSED",
    kind=Kind.DENIED,
    title="It was not allowed",
    user_message="It was not allowed to {wish} ({reason}). Do without it, or say why it is needed.",
):
    """An action beyond the sandbox was not permitted."""

    wish: str
    reason: str


class McpUnavailable(
    Failure,
    code="MCP_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="An MCP server cannot be used",
    user_message="The MCP server {server} cannot be used now: {reason}.",
    actions=(Action.RETRY, Action.OPEN_SETTINGS),
):
    """The MCP server does not start, does not respond, or has exited too often."""

    server: str
    reason: str


# Turns.


class AgentCrashed(
    Failure,
    code="AGENT_CRASHED",
    kind=Kind.LOST,
    title="The agent crashed",
    user_message="The agent crashed and lost its current turn. Your conversation history is "
    "saved. Press Enter to continue.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """The agent's task ended during a turn."""

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
    """The agent crashed repeatedly, and is not restarted for a while."""

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
    """The limit of requests per turn is reached."""

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
    """The limit of tokens per turn is reached."""

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
    """The limit of cost per turn is reached."""

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
    """The limit of time per turn is reached."""

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
    """The model repeats the same call without effect."""

    tool: str
    times: int


class ContextWindowExhausted(
    Failure,
    code="CONTEXT_EXHAUSTED",
    kind=Kind.SPENT,
    title="The conversation is too long",
    user_message="The conversation does not fit into {model} any more, not even summarized. "
    "Include fewer files, ask for a narrower change, or restart from the summary.",
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """The conversation exceeds the context window even when summarized."""

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
    """The conversation has no entry of that id."""

    head: str
