"""Every provider that is known is sent what its server demands, as strict servers judge it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from holdfast.agent.model import (
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    Thinking,
    Tokens,
    ToolCall,
    ToolMessage,
    TurnNote,
    TurnOutcome,
    TurnOver,
    UserMessage,
)
from holdfast.agent.providers.chat import (
    DEEPSEEK,
    GEMINI,
    GEMINI_2,
    MISTRAL,
    PLAIN,
    ChatDialect,
    chat_dialect,
)
from holdfast.agent.providers.http_provider import HttpModels
from holdfast.agent.providers.registry import (
    KNOWN,
    Format,
    ModelLimits,
    PriceList,
    Prices,
    Provider,
)
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from holdfast.agent.testing import heard
from holdfast.world import SystemClock, SystemRandomSource
from tests.agent.asked import AT_ONCE, KEYS, PRICES
from tests.agent.conversing import Stand, end, only
from tests.parts import strict_providers as strict
from tests.parts.provider_frames import data, sse
from tests.parts.provider_server import Ending as ServerEnding
from tests.parts.provider_server import ProviderServer, Reply, Silence, Status, Stream, reply
from tests.parts.provider_validators import validate
from tests.parts.strict_providers import Judge

pytestmark = pytest.mark.anyio

PARALLEL = (ScriptedCall("look", {"text": "a"}), ScriptedCall("look", {"text": "b"}))
FOREIGN = ModelMessage(
    "I look.",
    (Thinking("Hm.", "c2ln"),),
    (ToolCall("toolu_0123456789", "look", "{}"), ToolCall("toolu_9876543210", "look", "{}")),
    "elsewhere",
    "another-model",
)


@pytest.mark.parametrize(
    ("provider", "url", "model", "expected"),
    [
        ("openai", "https://api.openai.com/v1", "gpt-5", PLAIN),
        ("google", KNOWN["google"].url, "gemini-3-pro", GEMINI),
        ("google", KNOWN["google"].url, "gemini-2.5-flash", GEMINI_2),
        ("mistral", KNOWN["mistral"].url, "devstral-medium", MISTRAL),
        ("deepseek", KNOWN["deepseek"].url, "deepseek-chat", DEEPSEEK),
        ("mine", "https://api.mistral.ai/v1", "x", MISTRAL),
        ("mine", "http://127.0.0.1:8000/v1", "mistralai/Devstral-Small-2507", MISTRAL),
        ("mine", "http://127.0.0.1:8000/v1", "deepseek-ai/DeepSeek-V3.2", DEEPSEEK),
        ("mine", "https://gateway.example/v1", "google/gemini-3-flash", GEMINI),
        ("mine", "http://127.0.0.1:8000/v1", "qwen3-coder", PLAIN),
        ("openrouter", KNOWN["openrouter"].url, "mistralai/devstral", PLAIN),
        ("groq", KNOWN["groq"].url, "deepseek-r1-distill-llama-70b", PLAIN),
    ],
)
def test_a_dialect_is_chosen(provider: str, url: str, model: str, expected: ChatDialect) -> None:
    assert chat_dialect(provider, url, model, is_known=provider in KNOWN) == expected


def test_ids_are_the_same_every_time() -> None:
    ids = [MISTRAL.id_of(f"call_{at}") for at in range(100)]

    assert [MISTRAL.id_of(f"call_{at}") for at in range(100)] == ids
    assert len(set(ids)) == 100
    assert MISTRAL.id_of("abcDEF123") == "abcDEF123"
    assert PLAIN.id_of("call_1") == "call_1"


@dataclass(frozen=True)
class Case:
    """A provider that is known, with its own address elsewhere, and who judges for it."""

    provider: str
    model: str
    judge: Judge
    effort: str = ""

    @property
    def form(self) -> Format:
        return KNOWN[self.provider].format

    @property
    def choice(self) -> ModelChoice:
        return ModelChoice(self.provider, self.model, self.effort)


NO_LIMITS = ModelLimits()
CASES = {
    "gemini": Case("google", "gemini-3-pro", strict.gemini),
    "mistral": Case("mistral", "devstral-medium", strict.mistral),
    "deepseek": Case("deepseek", "deepseek-chat", strict.deepseek),
    "haiku": Case("anthropic", "claude-3-5-haiku-latest", strict.claude_3_5_haiku, "high"),
}


@asynccontextmanager
async def models_of(
    case: Case,
    replies: Iterable[Reply],
    *,
    limits: ModelLimits = NO_LIMITS,
    prices: Prices = PRICES,
    pages: Mapping[str, Reply] | None = None,
) -> AsyncGenerator[tuple[HttpModels, ProviderServer]]:
    async with ProviderServer(replies, judge=case.judge, pages=pages or {}) as server:
        provider = Provider(case.provider, case.form, server.url, limits=limits)
        models = HttpModels(
            {case.provider: provider},
            keys=KEYS,
            prices=prices,
            clock=SystemClock(),
            chance=SystemRandomSource(),
            policy=AT_ONCE,
        )
        async with models:
            yield models, server


def standing(models: HttpModels, case: Case) -> Stand:
    stand = Stand([], models=models)
    stand.config = replace(stand.config, choice=case.choice)
    return stand


def signed(calls: Sequence[ScriptedCall]) -> list[bytes]:
    """Parallel calls as Gemini streams them: whole, the first with a signature."""
    made: list[dict[str, Any]] = [
        {
            "index": at,
            "id": f"function-call-{at}00000000000000000",
            "type": "function",
            "function": {"name": call.tool, "arguments": call.written},
        }
        for at, call in enumerate(calls)
    ]
    made[0]["extra_content"] = {"google": {"thought_signature": strict.SIGNATURE}}
    choice = {"index": 0, "delta": {"tool_calls": made}, "finish_reason": "tool_calls"}
    return [data({"id": "1", "choices": [choice]}), b"data: [DONE]\n\n"]


@pytest.mark.promise("A9")
@pytest.mark.parametrize("name", CASES)
async def test_a_strict_server_takes_a_whole_conversation(name: str) -> None:
    """Parallel calls, a single one, and a second turn."""
    case = CASES[name]
    calls = ScriptedAnswer(calls=PARALLEL, think="" if name == "haiku" else "Hm.")
    first = Stream(signed(PARALLEL)) if name == "gemini" else reply(case.form, calls, "one")
    rest = [
        ScriptedAnswer(calls=(ScriptedCall("look"),)),
        ScriptedAnswer(say="Well."),
        ScriptedAnswer(say="And on."),
    ]
    replies = [first, *(reply(case.form, line, f"m{at}") for at, line in enumerate(rest))]
    async with models_of(case, replies) as (models, server):
        stand = standing(models, case)
        async with stand.talk() as talk:
            assert end(await stand.turn(talk, "Go.")) == TurnOver(TurnOutcome.COMPLETED)
            assert end(await stand.turn(talk, "Go on.")) == TurnOver(TurnOutcome.COMPLETED)
        assert server.refused == []
        if name == "gemini":
            assert strict.SIGNATURE.encode() in server.requests[-1].body
        for request in server.requests:
            validate(case.form, request.body)


@pytest.mark.promise("A9")
@pytest.mark.parametrize("name", CASES)
async def test_a_strict_server_takes_the_calls_of_another_model_and_words_after_them(
    name: str,
) -> None:
    case = CASES[name]
    said = (
        PromptMessage("1", UserMessage("Go.")),
        PromptMessage("2", FOREIGN),
        PromptMessage("3", ToolMessage(FOREIGN.calls[0].id, "a")),
        PromptMessage("4", ToolMessage(FOREIGN.calls[1].id, "b")),
        PromptMessage("5", UserMessage("And mind this.")),
    )
    async with models_of(case, [reply(case.form, ScriptedAnswer(say="Well."))]) as (models, server):
        found = await heard(models, case.choice, ModelRequest("S", said))
        assert server.refused == []
        validate(case.form, server.requests[-1].body)

    assert found.text == "Well."


@pytest.mark.promise("A9")
async def test_an_organisation_that_is_not_verified_gets_answers_without_summaries() -> None:
    case = Case("openai", "gpt-5", strict.openai_unverified, "high")
    answers = [reply(case.form, ScriptedAnswer(say=text)) for text in ("One.", "Two.")]
    async with models_of(case, answers) as (models, server):
        prompt = ModelRequest("S", (PromptMessage("1", UserMessage("Go.")),))
        texts = [(await heard(models, case.choice, prompt)).text for _ in range(2)]
        bodies = [request.json for request in server.requests]

    assert texts == ["One.", "Two."]
    assert len(server.refused) == 1  # it is remembered
    assert bodies[-1]["reasoning"] == {"effort": "high"}


BLOCKS: list[list[dict[str, str]]] = [
    [
        {"type": "thinking", "thinking": "First.", "signature": "s1"},
        {"type": "text", "text": "I look."},
        {"type": "thinking", "thinking": "Then.", "signature": "s2"},
        {"type": "tool_use", "id": "t1", "name": "look"},
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "tool_use", "id": "t2", "name": "look"},
    ]
]


def streamed(blocks: Sequence[dict[str, str]]) -> list[bytes]:
    """An answer of Anthropic's with these blocks."""
    events = [sse({"type": "message_start", "message": {"usage": {"input_tokens": 9}}})]
    for at, block in enumerate(blocks):
        head: dict[str, Any] = (
            {**block, "input": {}} if block["type"] == "tool_use" else dict(block)
        )
        start: dict[str, Any] = {"type": "content_block_start", "index": at, "content_block": head}
        events += [sse(start), sse({"type": "content_block_stop", "index": at})]
    ended = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}
    return [*events, sse(ended), sse({"type": "message_stop"})]


@pytest.mark.promise("A9")
async def test_thinking_between_text_and_calls_goes_back_in_its_place() -> None:
    case = Case("anthropic", "claude-opus-5", strict.claude(BLOCKS), "high")
    replies = [Stream(streamed(BLOCKS[0])), reply(case.form, ScriptedAnswer(say="Well."))]
    async with models_of(case, replies) as (models, server):
        stand = standing(models, case)
        told = await stand.whole()
        assert end(told) == TurnOver(TurnOutcome.COMPLETED)
        assert server.refused == []
        validate(case.form, server.requests[-1].body)
        sent = server.requests[-1].json["messages"][1]["content"]

    assert [{**block, "input": None} for block in sent] == [
        {**block, "input": None} for block in BLOCKS[0]
    ]


@pytest.mark.promise("A9")
async def test_signatures_that_do_not_hold_are_left_out_and_later_ones_are_kept() -> None:
    """Nothing is switched off for good: only what was refused is left out."""
    bad = True

    def judge(request: Any) -> Status | None:  # Any: a request
        if bad and strict.SIGNATURE.encode() in request.body:
            return Status(400, body=b'[{"error":{"code":400,"message":"Corrupted signature"}}]')
        return strict.gemini(request)

    case = Case("google", "gemini-3-pro", judge)
    old = ModelMessage(
        calls=(
            ToolCall(
                "c1", "look", "{}", f'{{"google":{{"thought_signature":"{strict.SIGNATURE}"}}}}'
            ),
        ),
        provider="google",
        model="gemini-3-pro",
    )
    said = (
        PromptMessage("1", UserMessage("Go.")),
        PromptMessage("2", old),
        PromptMessage("3", ToolMessage("c1", "a")),
    )
    answers = [
        reply(case.form, ScriptedAnswer(say="Well.")),
        reply(case.form, ScriptedAnswer(say="On.")),
    ]
    async with models_of(case, answers) as (models, server):
        assert (await heard(models, case.choice, ModelRequest("S", said))).text == "Well."
        bad = False
        new = msgspec.structs.replace(old, calls=(msgspec.structs.replace(old.calls[0], id="c2"),))
        more = (*said, PromptMessage("4", new), PromptMessage("5", ToolMessage("c2", "b")))
        assert (await heard(models, case.choice, ModelRequest("S", more))).text == "On."

    assert [len(server.refused), len(server.requests)] == [1, 3]
    body = server.requests[-1].body.decode()
    assert (body.count(strict.SIGNATURE), body.count(strict.PLACEHOLDER)) == (1, 1)


WINDOW = 6_000
NO_PRICES = Prices(PriceList("", {}))
LONG = "word " * 1_000


@pytest.mark.promise("A10")
@pytest.mark.parametrize("judge", [strict.vllm(WINDOW), strict.lm_studio(WINDOW)])
async def test_a_server_that_only_names_numbers_is_understood(judge: Judge) -> None:
    """The window is not known; the conversation is summarized, and goes on."""
    case = Case("ollama", "qwen3", judge)
    answers = [reply(case.form, ScriptedAnswer(say=LONG, tokens=Tokens())) for _ in range(30)]
    async with models_of(case, answers, prices=NO_PRICES) as (models, server):
        stand = standing(models, case)
        notes: list[str] = []
        async with stand.talk() as talk:
            for at in range(8):
                told = await stand.turn(talk, f"{at} {LONG}")
                assert end(told) == TurnOver(TurnOutcome.COMPLETED), server.refused
                notes += [each.text for each in only(told, TurnNote)]
        assert server.refused
        assert [note for note in notes if note.startswith("Context compressed")]


@pytest.mark.promise("A10")
async def test_a_window_that_is_set_is_respected_by_servers_that_cut_silently() -> None:
    cut: list[bool] = []
    case = Case("ollama", "qwen3", strict.ollama(WINDOW, cut))
    answers = [reply(case.form, ScriptedAnswer(say=LONG, tokens=Tokens())) for _ in range(30)]
    limits = ModelLimits(window=WINDOW)
    async with models_of(case, answers, limits=limits, prices=NO_PRICES) as (models, _):
        assert models.window(case.choice) == WINDOW
        stand = standing(models, case)
        async with stand.talk() as talk:
            for at in range(8):
                assert end(await stand.turn(talk, f"{at} {LONG}")) == TurnOver(
                    TurnOutcome.COMPLETED
                )

    assert len(cut) > 8 and not any(cut)


def loaded(*models: tuple[str, object]) -> dict[str, Reply]:
    """What Ollama says of the models that it has loaded."""
    found = [{"name": name, "model": name, "context_length": size} for name, size in models]
    return {"/api/ps": Status(200, body=json.dumps({"models": found}).encode())}


@pytest.mark.promise("A10")
async def test_what_ollama_has_loaded_is_its_window() -> None:
    """It cuts silently, and nobody has said how much it has loaded."""
    cut: list[bool] = []
    case = Case("ollama", "qwen3", strict.ollama(WINDOW, cut))
    answers = [reply(case.form, ScriptedAnswer(say=LONG, tokens=Tokens())) for _ in range(30)]
    pages = loaded(("other:7b", 131_072), ("qwen3:latest", WINDOW))
    async with models_of(case, answers, prices=NO_PRICES, pages=pages) as (models, _):
        stand = standing(models, case)
        async with stand.talk() as talk:
            for at in range(8):
                assert end(await stand.turn(talk, f"{at} {LONG}")) == TurnOver(
                    TurnOutcome.COMPLETED
                )
        assert models.window(case.choice) == WINDOW

    assert len(cut) > 8 and not any(cut)


@pytest.mark.promise("A10")
async def test_a_prompt_that_does_not_fit_into_what_ollama_has_loaded_is_refused_by_name() -> None:
    case = Case("ollama", "qwen3", strict.ollama(WINDOW, []))
    answers = [reply(case.form, ScriptedAnswer(say="Well.", tokens=Tokens())) for _ in range(30)]
    pages = loaded(("qwen3:latest", 4_096))
    async with models_of(case, answers, prices=NO_PRICES, pages=pages) as (models, _):
        stand = standing(models, case)
        stand.config = replace(stand.config, system="word " * 5_000)
        async with stand.talk() as talk:
            await stand.turn(talk, "Go.")  # nothing is loaded before it is asked
            failure = end(await stand.turn(talk, "Go on.")).failure

    assert failure is not None
    assert failure["code"] == "CONTEXT_EXHAUSTED"


@pytest.mark.promise("A9")
@pytest.mark.parametrize(
    "page",
    [
        Status(404),
        Status(500),
        Status(200, body=b"<html>"),
        Status(200, body=b'{"models":[{"name":"qwen3:latest","context_length":"many"}]}'),
        Status(200, body=b'{"models":[{"name":"qwen3:latest"}]}'),
        Stream([b"x" * 1_000] * 300),
        Stream([b"{"], ServerEnding.EARLY),
        Silence(),
    ],
)
async def test_an_ollama_that_does_not_say_what_it_has_loaded_answers_all_the_same(
    page: Reply,
) -> None:
    case = Case("ollama", "qwen3", strict.ollama(WINDOW, []))
    answers = [reply(case.form, ScriptedAnswer(say=text)) for text in ("One.", "Two.")]
    async with models_of(case, answers, prices=NO_PRICES, pages={"/api/ps": page}) as (models, _):
        prompt = ModelRequest("S", (PromptMessage("1", UserMessage("Go.")),))
        texts = [(await heard(models, case.choice, prompt)).text for _ in range(2)]

        assert texts == ["One.", "Two."]
        assert models.window(case.choice) is None


@pytest.mark.promise("A10")
async def test_a_window_that_is_set_counts_whatever_is_loaded() -> None:
    case = Case("ollama", "qwen3", strict.ollama(WINDOW, []))
    answers = [reply(case.form, ScriptedAnswer(say="One."))]
    limits, pages = ModelLimits(window=9_000), loaded(("qwen3:latest", 4_096))
    async with models_of(case, answers, limits=limits, pages=pages) as (models, _):
        await heard(
            models, case.choice, ModelRequest("S", (PromptMessage("1", UserMessage("Go.")),))
        )

        assert models.window(case.choice) == 9_000
