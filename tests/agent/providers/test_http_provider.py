"""Models over HTTP: whatever a provider does, an answer is whole or it is none."""

from __future__ import annotations

import logging
import pickle
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from holdfast.agent.failures import (
    AnswerGarbled,
    ContextTooLong,
    KeyMissing,
    ModelUnreachable,
    ProviderMoved,
    ProviderUnknown,
    RateLimited,
    RequestRefused,
)
from holdfast.agent.model import (
    AnswerCompleted,
    AnyAnswerDelta,
    ModelChoice,
    ModelRequest,
    PromptMessage,
    RetryScheduled,
    Tokens,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.providers.keys import Keys
from holdfast.agent.providers.registry import Format
from holdfast.agent.testing import CHOICE, PROMPT, SHORTEST, WHOLE, ReceivedAnswer, heard
from holdfast.failures import Failure, to_wire
from tests.agent.asked import KEY, NEVER, WINDOW, models_at, served
from tests.parts.provider_frames import error, frames
from tests.parts.provider_server import Ending, Reply, Status, Stream

pytestmark = pytest.mark.anyio

each_form = pytest.mark.parametrize("form", list(Format))
GARBAGE = b"event: nonsense\ndata: {not json\n\n"
TROUBLES: dict[str, Callable[[Format, list[bytes]], Reply]] = {
    "reset": lambda form, begun: Stream(begun, Ending.RESET),
    "early end": lambda form, begun: Stream(begun, Ending.EARLY),
    "end in good order": lambda form, begun: Stream(begun),
    "garbage": lambda form, begun: Stream([*begun, GARBAGE]),
    "429": lambda form, begun: Stream([*begun, error(form, "rate_limit_error")]),
    "500": lambda form, begun: Stream([*begun, error(form, "server_error")]),
}
CODES = {
    "reset": {"MODEL_ANSWER_CUT", "MODEL_UNREACHABLE"},
    "early end": {"MODEL_ANSWER_CUT"},
    "end in good order": {"MODEL_ANSWER_CUT"},
    "garbage": {"MODEL_ANSWER_GARBLED"},
    "429": {"MODEL_RATE_LIMITED"},
    "500": {"MODEL_OVERLOADED"},
}


def boundaries(form: Format) -> range:
    """How many events may have come before the answer is whole."""
    events = frames(form, WHOLE)
    unneeded = 2 if form is Format.CHAT else 0  # what it took, and the mark of the end
    return range(len(events) - unneeded)


def without_ids(found: ReceivedAnswer) -> tuple[str, str, list[tuple[str, str]], object]:
    return found.text, found.thinking, found.calls, found.last.message


@pytest.mark.promise("A9")
@each_form
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_at_every_boundary_leaves_the_same_answer(form: Format, trouble: str) -> None:
    """After any number of events, whatever happens: the answer is made anew, and visibly so."""
    events = frames(form, WHOLE)
    async with served(form, [Stream(events)]) as (models, _):
        expected = without_ids(await heard(models))
    replies = [
        reply
        for count in boundaries(form)
        for reply in (TROUBLES[trouble](form, events[:count]), Stream(events))
    ]
    async with served(form, replies) as (models, server):
        for count in boundaries(form):
            found = await heard(models)
            assert without_ids(found) == expected, count
            waits = [each for each in found.pieces if isinstance(each, RetryScheduled)]
            assert [wait.failure["code"] in CODES[trouble] for wait in waits] == [True], count
        assert len(server.requests) == len(replies)
        assert len({request.body for request in server.requests}) == 1


@pytest.mark.promise("A9")
@each_form
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_that_stays_is_raised_and_nothing_is_kept(form: Format, trouble: str) -> None:
    events = frames(form, WHOLE)
    middle = TROUBLES[trouble](form, events[: len(events) // 2])
    told: list[AnyAnswerDelta] = []
    async with served(form, [middle] * 4) as (models, server):
        with pytest.raises(Failure) as raised:
            async with models.answering(CHOICE, PROMPT) as batches:
                async for batch in batches:
                    told += batch
        assert len(server.requests) == 4

    assert raised.value.code in CODES[trouble]
    assert not any(isinstance(piece, AnswerCompleted) for piece in told)


@each_form
async def test_a_connection_is_used_again(form: Format) -> None:
    async with served(form, [Stream(frames(form, SHORTEST))] * 5) as (models, server):
        for _ in range(5):
            await heard(models)

        assert server.connections == 1


@pytest.mark.promise("A11")
@each_form
@pytest.mark.parametrize("count", [0, 1, 3])
async def test_who_leaves_closes_the_connection_at_once(form: Format, count: int) -> None:
    async with served(form, [Stream(frames(form, WHOLE)[:count], Ending.HANG)]) as (models, server):

        async def listen() -> None:
            async with models.answering(CHOICE, PROMPT) as batches:
                async for _ in batches:
                    pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await server.until_requested(1)
            tasks.cancel_scope.cancel()
        await server.until_left()


@each_form
async def test_what_is_sent_is_sent_to_the_right_place(form: Format) -> None:
    async with served(form, [Stream(frames(form, SHORTEST))]) as (models, server):
        await heard(models)

    [request] = server.requests
    assert (
        request.path
        == {
            Format.RESPONSES: "/v1/responses",
            Format.CHAT: "/v1/chat/completions",
            Format.MESSAGES: "/v1/messages",
        }[form]
    )
    assert request.json["model"] == CHOICE.model
    name = "x-api-key" if form is Format.MESSAGES else "authorization"
    assert request.headers[name].removeprefix("Bearer ") == KEY
    assert request.headers["user-agent"].startswith("holdfast/")


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Status(307, headers={"location": "http://127.0.0.1:9/"}), ProviderMoved),
        (Status(200, body=b"<html>", headers={"content-type": "text/html"}), AnswerGarbled),
        (Status(200, body=b'{"choices": []}'), AnswerGarbled),
        (Status(200, body=b'{"error": {"code": 429}}'), RateLimited),
        (Status(204, body=b""), AnswerGarbled),
        (Status(400, body=b"x" * 300_000), RequestRefused),
        (Status(429, headers={"retry-after-ms": "90000"}), RateLimited),
    ],
)
async def test_what_is_no_stream_is_named(reply: Reply, failure: type[Failure]) -> None:
    async with served(Format.CHAT, [reply], policy=NEVER) as (models, server):
        with pytest.raises(failure) as raised:
            await heard(models)
        assert len(server.requests) == 1

    if isinstance(reply, Status) and "retry-after-ms" in reply.headers:
        assert raised.value.retry_after == 90.0


async def test_a_date_to_come_back_at_is_understood() -> None:
    long_ago = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    replies = [Status(503, headers=long_ago), Stream(frames(Format.CHAT, SHORTEST))]
    async with served(Format.CHAT, replies) as (models, _):
        found = await heard(models)

    assert isinstance(found.pieces[0], RetryScheduled)
    assert found.pieces[0].seconds == 0.0


async def test_a_conversation_that_is_too_long_is_known_by_its_size() -> None:
    """Where the provider has no word for it, and the list of prices says how much fits."""
    prompt = ModelRequest("S", (PromptMessage("m1", UserMessage("x" * 3 * WINDOW)),))
    refusal = Status(400, "invalid_request_error")
    async with served(Format.MESSAGES, [refusal, refusal]) as (models, _):
        with pytest.raises(ContextTooLong):
            await heard(models, prompt=prompt)
        with pytest.raises(RequestRefused):
            await heard(models)


@each_form
async def test_a_proof_that_no_longer_holds_does_not_end_the_conversation(form: Format) -> None:
    """What is refused is asked without thoughts, visibly, and from then on so at once."""
    whole = Stream(frames(form, WHOLE))
    short = Stream(frames(form, SHORTEST))
    refusal = Status(400, "invalid_encrypted_content")
    async with served(form, [whole, refusal, short, short]) as (models, server):
        answer = (await heard(models)).last.message
        results = [PromptMessage(call.id, ToolMessage(call.id, "r")) for call in answer.calls]
        prompt = ModelRequest("S", (*PROMPT.said, PromptMessage("m2", answer), *results))
        first, second = await heard(models, prompt=prompt), await heard(models, prompt=prompt)

    assert isinstance(first.pieces[0], RetryScheduled)
    assert (first.text, second.text) == (SHORTEST.say, SHORTEST.say)
    sent = [request.body.count(answer.thinking[0].text.encode()) for request in server.requests]
    assert sent == [0, 1, 0, 0]


@each_form
async def test_what_is_refused_for_another_reason_is_raised(form: Format) -> None:
    async with served(form, [Status(400, "invalid_request_error")]) as (models, server):
        with pytest.raises(RequestRefused):
            await heard(models)
        assert len(server.requests) == 1


async def test_nobody_there_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        async with models_at(url, Format.CHAT, policy=NEVER) as models:
            with pytest.raises(ModelUnreachable) as raised:
                await heard(models)

    assert raised.value.reason == "connection refused"


async def test_nobody_of_that_name_is_said() -> None:
    async with models_at("http://127.0.0.1:1/v1", Format.CHAT) as models:
        with pytest.raises(ProviderUnknown):
            await heard(models, ModelChoice("elsewhere", "m"))


async def test_without_a_key_nothing_is_sent() -> None:
    keys = Keys([], file=Path("keys.toml"))
    async with models_at("http://127.0.0.1:1/v1", Format.CHAT, keys=keys) as models:
        with pytest.raises(KeyMissing) as raised:
            await heard(models)

    assert raised.value.kind.exit_status == 4


async def test_what_is_known_of_models_is_told() -> None:
    async with models_at("http://127.0.0.1:1/v1", Format.CHAT) as models:
        assert models.window(CHOICE) == WINDOW
        assert models.price(CHOICE, Tokens(1_000_000)) == 5.0
        assert models.window(ModelChoice("there", "another")) is None
        assert models.price(ModelChoice("there", "another"), Tokens(1, 1, 1)) is None


@pytest.mark.promise("T6", "C6")
@each_form
@pytest.mark.parametrize(
    "reply",
    [
        Status(401, body=b'{"error": {"message": "the key %s is wrong"}}' % KEY.encode()),
        Status(400, body=b'{"error": {"message": "the key %s is wrong"}}' % KEY.encode()),
        Status(500, KEY),
        Stream([GARBAGE]),
        Stream([], Ending.RESET),
        Stream([], Ending.EARLY),
    ],
)
async def test_no_key_is_ever_shown(
    form: Format, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in what is raised, nor in what hangs on it, nor in a log of everything."""
    caplog.set_level(logging.DEBUG)
    async with served(form, [reply], policy=NEVER) as (models, _):
        with pytest.raises(Failure) as raised:
            await heard(models)
        shown = [repr(models), caplog.text]
    error: BaseException | None = raised.value
    while error is not None:
        shown += [str(error), repr(error), str(getattr(error, "__notes__", ""))]
        shown.append(str(to_wire(error)) if isinstance(error, Failure) else "")
        assert not hasattr(error, "request")
        error = error.__cause__ or error.__context__

    assert KEY not in " ".join(shown)
    assert pickle.loads(pickle.dumps(raised.value)) == raised.value


async def test_a_long_conversation_arrives_whole() -> None:
    said = tuple(PromptMessage(f"m{at}", UserMessage("x" * 1000)) for at in range(3000))
    replies = [Stream(frames(Format.CHAT, SHORTEST))] * 3
    async with served(Format.CHAT, replies) as (models, server):
        for count in (2998, 2999, 3000):
            await heard(models, prompt=ModelRequest("S", said[:count]))

    assert [len(each.json["messages"]) for each in server.requests] == [2999, 3000, 3001]
