"""For hypothesis: any conversation that a valid tree can hold, said in any way."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.agent.model import (
    AnyMessage,
    ModelMessage,
    Origin,
    PromptMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

TEXTS = st.one_of(st.sampled_from(["", " ", "\n", "Hello", "é\ud800\u0000"]), st.text(max_size=20))
PROOFS = st.sampled_from(
    [
        "",
        '{"id":"rs_1","encrypted_content":"gAAAA"}',
        '{"phase":"commentary"}',
        "reasoning_content",
        "c2lnbmF0dXJl",
        "redacted:ZGF0YQ",
    ]
)
ARGUMENTS = st.sampled_from(["{}", '{"path":"a"}', "", "{", "[]", "nonsense\ud800"])
TOOLS = st.sampled_from(["read", "run", "no such tool!", ""])


@st.composite
def _exchanges(draw: st.DrawFn, provider: str) -> list[AnyMessage]:
    """A message of the model, and what comes of its calls, with others talking in between."""
    forms = draw(st.lists(st.sampled_from(["call_{}", "functions.read:{}", "{}" * 30]), max_size=3))
    first = draw(st.integers(0, 10**12))
    calls = tuple(
        ToolCall(form.replace("{}", str(first + at)), draw(TOOLS), draw(ARGUMENTS))
        for at, form in enumerate(forms)
    )
    maker = draw(st.sampled_from([provider, "another"]))
    thinking = draw(st.lists(st.builds(Thinking, TEXTS, PROOFS), max_size=2))
    said = ModelMessage(draw(TEXTS), tuple(thinking), calls, maker, "model")
    results = [ToolMessage(call.id, draw(TEXTS), draw(st.booleans())) for call in calls]
    others = draw(st.lists(st.builds(UserMessage, TEXTS, st.sampled_from(Origin)), max_size=2))
    return [said, *draw(st.permutations([*results, *others]))]


def conversations(provider: str) -> st.SearchStrategy[tuple[PromptMessage, ...]]:
    """Conversations of which every call has a result before the model speaks again.

    No call has the name of another.
    """
    beginnings = st.lists(st.builds(UserMessage, TEXTS), max_size=2)
    parts = st.tuples(beginnings, st.lists(_exchanges(provider), max_size=5))
    flat = parts.map(lambda both: [*both[0], *(each for some in both[1] for each in some)])
    named = flat.map(
        lambda messages: tuple(PromptMessage(f"m{at}", each) for at, each in enumerate(messages))
    )
    return named.filter(_are_calls_apart)


def _are_calls_apart(said: tuple[PromptMessage, ...]) -> bool:
    spoken = [each.message for each in said if isinstance(each.message, ModelMessage)]
    names = [call.id for message in spoken for call in message.calls]
    return len(names) == len(set(names))
