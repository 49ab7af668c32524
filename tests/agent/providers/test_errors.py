"""Every error of a provider has one meaning, by its status and its words."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import (
    ContentRefused,
    ContextTooLong,
    KeyRefused,
    ModelOverloaded,
    ModelUnknown,
    ProviderMoved,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
)
from holdfast.agent.model import ModelChoice
from holdfast.agent.providers.errors import (
    STATUSES,
    UNKNOWN_SIZE,
    WORDS,
    PromptSize,
    failed,
    is_error,
    refused,
)
from holdfast.failures import Failure

CHOICE = ModelChoice("there", "some-model")
FULL = PromptSize(tokens=950, window=1_000)


def body(**error: object) -> bytes:
    return json.dumps({"error": {"message": "prose", **error}}).encode()


@pytest.mark.promise("A9")
@pytest.mark.parametrize(
    ("status", "said", "meaning"),
    [
        (401, body(type="invalid_request_error", code="invalid_api_key"), KeyRefused),
        (401, body(type="authentication_error"), KeyRefused),
        (401, b"<html>", KeyRefused),
        (403, body(type="permission_error"), KeyRefused),
        (403, body(code="unsupported_country_region_territory"), KeyRefused),
        (402, body(code=402), QuotaExhausted),
        (429, body(type="insufficient_quota", code="insufficient_quota"), QuotaExhausted),
        (400, body(type="billing_error"), QuotaExhausted),
        (403, body(type="permission_error", details={"error_code": "enforced_spend_limit_reached"}),
         QuotaExhausted),
        (429, body(type="tokens", code="rate_limit_exceeded"), RateLimited),
        (429, body(type="rate_limit_error"), RateLimited),
        (429, b"", RateLimited),
        (404, body(type="invalid_request_error", code="model_not_found"), ModelUnknown),
        (404, body(type="not_found_error"), ModelUnknown),
        (404, b"not here", ModelUnknown),
        (400, body(type="invalid_request_error", code="context_length_exceeded"), ContextTooLong),
        (400, body(type="exceed_context_size_error", code=400), ContextTooLong),
        (413, body(type="request_too_large"), ContextTooLong),
        (400, body(type="invalid_request_error", code="invalid_prompt"), ContentRefused),
        (400, body(code="content_filter", innererror={}), ContentRefused),
        (529, body(type="overloaded_error"), ModelOverloaded),
        (500, body(type="api_error"), ModelOverloaded),
        (503, b"upstream", ModelOverloaded),
        (408, b"", ModelOverloaded),
        (409, b"", ModelOverloaded),
        (599, b"", ModelOverloaded),
        (200, body(code=429), RateLimited),
        (200, body(code=502), ModelOverloaded),
        (400, body(type="invalid_request_error"), RequestRefused),
        (422, body(code=None), RequestRefused),
        (400, b'{"error": "a text"}', RequestRefused),
        (301, b"", ProviderMoved),
        (308, body(type="overloaded_error"), ProviderMoved),
    ],
)  # fmt: skip
def test_an_error_has_a_meaning(status: int, said: bytes, meaning: type[Failure]) -> None:
    failure = refused(CHOICE, status, said)

    assert type(failure) is meaning
    assert failure.details["provider"] == "there"


@pytest.mark.promise("T3")
@pytest.mark.parametrize(
    "prose", ["rate limit", "prompt is too long: 5 > 4", "invalid_api_key", "overloaded_error"]
)
def test_prose_means_nothing(prose: str) -> None:
    failure = refused(CHOICE, 400, body(type="invalid_request_error", message=prose))

    assert failure == RequestRefused(
        provider="there", model="some-model", status=400, word="invalid_request_error", said=prose
    )


def test_who_has_no_word_for_it_is_understood_all_the_same() -> None:
    said = body(type="invalid_request_error")

    assert type(refused(CHOICE, 400, said, size=FULL)) is ContextTooLong
    assert type(refused(CHOICE, 401, said, size=FULL)) is KeyRefused
    told = body(code="invalid_prompt")
    assert type(refused(CHOICE, 400, told, size=FULL)) is ContentRefused


VLLM = (
    "This model's maximum context length is 8192 tokens. However, you requested 9224 tokens "
    "(8200 in the messages, 1024 in the completion)."
)
LM_STUDIO = (
    "The number of tokens to keep from the initial prompt is greater than the context length. "
    "n_keep: 5120, n_ctx: 4096"
)
LLAMA_CPP = {"n_ctx": 4096, "n_prompt_tokens": 5000, "type": "exceed_context_size_error"}


@pytest.mark.promise("A10")
@pytest.mark.parametrize(
    ("said", "size", "is_overflow"),
    [
        (body(type="BadRequestError", code=400, param="input_tokens"), PromptSize(), True),
        (body(type="BadRequestError", code=400, message=VLLM), PromptSize(11_000), True),
        (body(type="BadRequestError", code=400, message=VLLM), PromptSize(11, 8192), True),
        (json.dumps({"error": LM_STUDIO}).encode(), PromptSize(6_000), True),
        (body(**LLAMA_CPP), PromptSize(), True),
        (body(message="limit 200,000, got 201,000"), PromptSize(190_000), True),
        (body(message="limit 200,000"), PromptSize(200_000), False),
        (body(message="error 1234 at 20261116 in v1.4096.8192"), PromptSize(6_000), False),
        (body(message=VLLM), PromptSize(200), False),
        (body(message="nothing is named"), PromptSize(899, 1_000), False),
    ],
)
def test_a_prompt_that_is_too_long_is_known_by_numbers(
    said: bytes, size: PromptSize, is_overflow: bool
) -> None:
    expected = ContextTooLong if is_overflow else RequestRefused
    assert type(refused(CHOICE, 400, said, size=size)) is expected
    streamed = ContextTooLong if is_overflow else ModelOverloaded
    assert type(failed(CHOICE, said, size)) is streamed


def test_an_error_in_a_list_is_read() -> None:
    """As Google sends it."""
    said = b'[{"error":{"code":400,"message":"missing","status":"INVALID_ARGUMENT"}}]'
    failure = refused(CHOICE, 400, said)

    assert is_error(said)
    assert failure.details["said"] == "missing"
    assert not is_error(b"[]")


def test_the_option_that_was_refused_is_known() -> None:
    said = body(type="invalid_request_error", code="unsupported_value", param="reasoning.summary")

    assert refused(CHOICE, 400, said).details["param"] == "reasoning.summary"


@pytest.mark.promise("T6", "C6")
def test_no_key_is_quoted() -> None:
    said = body(message="the key sk-secret is not sk-other")
    failure = refused(CHOICE, 400, said, secret="sk-secret")

    assert failure.details["said"] == "the key *** is not sk-other"


@pytest.mark.parametrize("word", sorted(word for _, known in WORDS for word in known))
def test_every_word_has_one_meaning(word: str) -> None:
    assert sum(word in known for _, known in WORDS) == 1


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (b'{"type":"error","error":{"type":"overloaded_error"}}', ModelOverloaded),
        (b'{"code":"rate_limit_exceeded"}', RateLimited),
        (b'{"code":402}', QuotaExhausted),
        (b'{"code":"something_new"}', ModelOverloaded),
        (b"null", ModelOverloaded),
        (b"", ModelOverloaded),
        (msgspec.Raw(b'{"code":"context_length_exceeded"}'), ContextTooLong),
    ],
)
def test_a_stream_may_fail_too(error: bytes | msgspec.Raw, meaning: type[Failure]) -> None:
    assert type(failed(CHOICE, error)) is meaning


@pytest.mark.parametrize(
    ("said", "expected"),
    [(body(), True), (b'{"error": "a text"}', True), (b"{}", False), (b"<html>", False)],
)
def test_what_tells_of_an_error(said: bytes, expected: bool) -> None:
    assert is_error(said) is expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("overloaded_error"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "type", "code", "details", "message"]), inner)
    ),
)


@settings(deadline=None)
@given(
    status=st.integers(100, 999),
    said=JSON.map(lambda value: json.dumps(value).encode()) | st.binary(),
    is_full=st.booleans(),
)
def test_whatever_is_said_means_something(status: int, said: bytes, is_full: bool) -> None:
    failure = refused(CHOICE, status, said, size=FULL if is_full else UNKNOWN_SIZE, secret="key")

    assert failure.user_message
    assert failed(CHOICE, said).user_message
    assert status not in STATUSES or status >= 400
