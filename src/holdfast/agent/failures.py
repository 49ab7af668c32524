"""What can go wrong between the agent, its models and its tools."""

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
    """A provider does not know our key, or does not let it use the model."""

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
    """A provider does not know the model."""

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
    """A provider has been asked too often."""

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
    """A provider is overloaded or broken, for now."""

    provider: str
    model: str
    status: int
    word: str


class ModelUnreachable(
    Failure,
    code="MODEL_UNREACHABLE",
    kind=Kind.UNAVAILABLE,
    title="The provider cannot be reached",
    user_message="No connection to {provider} can be made ({reason}). Is the network there?",
    actions=_AGAIN,
):
    """No connection to a provider can be made."""

    provider: str
    model: str
    reason: str


class ModelStalled(
    Failure,
    code="MODEL_STALLED",
    kind=Kind.LATE,
    title="The model has fallen silent",
    user_message="{provider} took longer than {seconds:g} seconds ({stage}), "
    "and was not waited for.",
    actions=_AGAIN,
):
    """A provider did not connect, begin, go on or end in time."""

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
    """A stream ended without its end."""

    provider: str
    model: str
    reason: str


class AnswerGarbled(
    Failure,
    code="MODEL_ANSWER_GARBLED",
    kind=Kind.BROKEN,
    title="The answer makes no sense",
    user_message="What {provider} sent is no answer in its own format ({problem}). "
    "Nothing of it was kept.",
    recovery=Recovery.RETRY_BACKOFF,
    actions=(Action.REGENERATE, *_AGAIN),
):
    """What a provider sent is not in the format that it promises."""

    provider: str
    model: str
    problem: str


class AnswerTooLarge(
    Failure,
    code="MODEL_ANSWER_TOO_LARGE",
    kind=Kind.BROKEN,
    title="The answer has no end",
    user_message="The answer of {model} grew beyond {bytes_max:,} bytes. Nothing of it was kept.",
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """An answer is larger than any that we take."""

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
    """A provider's policy forbids to answer what it was sent."""

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
    """What a model was sent is more than fits into it."""

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
    """A provider wants to be paid first."""

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
    """A provider finds fault with the request itself."""

    provider: str
    model: str
    status: int
    word: str
    said: str
    param: str = ""  # which part of the request, where the provider names one


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
    """A model ended without an answer: it was cut at its output limit, or empty, repeatedly."""

    provider: str
    model: str
    reason: str


class ProviderMoved(
    Failure,
    code="MODEL_PROVIDER_MOVED",
    kind=Kind.MISCONFIGURED,
    title="The provider is elsewhere",
    user_message="The address of {provider} sends us elsewhere ({status}), "
    "and a key is not carried on. Set its address anew.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_MODEL),
):
    """A provider answers with a redirection, which is never followed."""

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
    """A scripted model is asked once more than its script foresees."""

    answers: int


# What can be wrong with what the person has settled for the agent.


class KeyMissing(
    Failure,
    code="MODEL_KEY_MISSING",
    kind=Kind.CREDENTIALS,
    title="No key for the provider",
    user_message="There is no key for {provider}. Enter it: holdfast login {provider}. Or set "
    "{variable}, or put it into {file}.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_MODEL),
):
    """A provider wants a key, and nobody has given us one."""

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
    """What was entered as a key is not one."""

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
    """The file with the keys is not ours alone."""

    file: str
    mode: str


class SettingsUnreadable(
    Failure,
    code="MODEL_SETTINGS_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The provider settings make no sense",
    user_message="{file}: {problem}.",
    actions=(Action.OPEN_SETTINGS,),
):
    """What the person wrote about providers or keys cannot be used."""

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
    """Nobody has said where a provider of that name is."""

    provider: str
    known: str


class ScriptInvalid(
    Failure,
    code="SCRIPT_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The script makes no sense",
    user_message="{name}: {problem}.",
):
    """The script of a scripted model cannot be read."""

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
    """A file that names MCP servers cannot be read as one."""

    file: str
    reason: str


# What can go wrong with a tool that a model uses.


class ToolRefused(
    Failure,
    code="TOOL_REFUSED",
    kind=Kind.INVALID,
    title="The tool cannot do that",
    user_message="{reason}",
):
    """A tool was asked for what it does not do, or what does not fit what is there."""

    reason: str


class EditStale(
    Failure,
    code="TOOL_EDIT_STALE",
    kind=Kind.CONFLICT,
    title="The lines are other ones now",
    user_message="Nothing was changed in {path}: {reason}. These lines are there now:\n{now}",
):
    """An edit was made for lines that have changed since."""

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
    """Something would leave the sandbox, and nobody let it."""

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
    """An MCP server does not start, does not answer, or has ended too often."""

    server: str
    reason: str


# What can end a turn that neither a model nor a tool has ended.


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


class ContextWindowExhausted(
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
