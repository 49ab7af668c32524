"""What can go wrong between a request to a model and its answer."""

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
