"""What Ollama says about loaded models is read, or nothing is known."""

from __future__ import annotations

import pytest

from holdfast.agent.providers.ollama import loaded_window, status_address
from holdfast.agent.providers.registry import KNOWN, Format, Provider

PS = b"""{"models":[
  {"name":"llama3:8b","model":"llama3:8b","context_length":8192,"size":1},
  {"name":"qwen3:latest","model":"qwen3:latest","context_length":4096},
  {"name":"old:latest"}
]}"""


@pytest.mark.promise("A10")
@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("qwen3", 4096),
        ("qwen3:latest", 4096),
        ("llama3:8b", 8192),
        ("llama3", None),
        ("old", None),
        ("other", None),
    ],
)
def test_the_window_of_a_loaded_model_is_found(model: str, window: int | None) -> None:
    assert loaded_window(PS, model) == window


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"models":[{"context_length":0}]}', b"\xff", b"[" * 99_999]
)
def test_anything_else_says_nothing(body: bytes) -> None:
    assert loaded_window(body, "qwen3") is None


@pytest.mark.parametrize(
    ("provider", "address"),
    [
        (KNOWN["ollama"], "http://127.0.0.1:11434/api/ps"),
        (Provider("ollama", Format.CHAT, "https://o.example/v1"), "https://o.example/api/ps"),
        (
            Provider("mine", Format.CHAT, "http://localhost:11434/v1"),
            "http://localhost:11434/api/ps",
        ),
        (Provider("mine", Format.CHAT, "http://localhost:8000/v1"), None),
        (Provider("mine", Format.MESSAGES, "http://localhost:11434/v1"), None),
        (KNOWN["openai"], None),
    ],
)
def test_only_ollama_is_asked(provider: Provider, address: str | None) -> None:
    assert status_address(provider) == address
