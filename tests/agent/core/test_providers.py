"""Where providers are is said by us or by the person, and never carelessly."""

from __future__ import annotations

import pytest

from holdfast.agent.core.providers import KNOWN, Format, Provider, read_providers, variables
from holdfast.agent.failures import SettingsUnreadable


def test_without_a_word_the_known_ones_are_there() -> None:
    assert read_providers("providers.toml", "") == KNOWN
    addresses = {name: provider.url for name, provider in KNOWN.items() if name != "ollama"}
    assert all(url.startswith("https://") for url in addresses.values())


def test_a_person_adds_and_changes() -> None:
    text = """
    [local]
    format = "chat"
    url = "http://localhost:8080/v1/"

    [openai]
    url = "https://gateway.example/v1"
    format = "chat"
    """

    found = read_providers("providers.toml", text)
    assert found["local"] == Provider("local", Format.CHAT, "http://localhost:8080/v1")
    assert found["openai"] == Provider(
        "openai", Format.CHAT, "https://gateway.example/v1", "OPENAI_API_KEY"
    )
    assert found["anthropic"] == KNOWN["anthropic"]


@pytest.mark.parametrize(
    "text",
    [
        "[x]\nformat = 'chat'",
        "[x]\nurl = 'https://x.example'",
        "[x]\nformat = 'telepathy'\nurl = 'https://x.example'",
        "[x]\nformat = 'chat'\nurl = 'https://x.example'\nkey = 'sk-1'",
        "[x]\nformat = 'chat'\nurl = 'http://x.example/v1'",
        "[x]\nformat = 'chat'\nurl = 'http://127.0.0.1.example/v1'",
        "[x]\nformat = 'chat'\nurl = 'http://10.0.0.1/v1'",
        "[x]\nformat = 'chat'\nurl = 'https://me:pass@x.example/v1'",
        "[x]\nformat = 'chat'\nurl = 'https://x.example/v1?key=1'",
        "[x]\nformat = 'chat'\nurl = 'https://x.example:port/v1'",
        "[x]\nformat = 'chat'\nurl = 'file:///etc/passwd'",
        "[x]\nformat = 'chat'\nurl = 'https://'",
        "[x]\nformat = 'chat'\nurl = 'https://[::1'",
        "x = 1",
        "[[",
    ],
)
def test_what_is_careless_is_refused(text: str) -> None:
    with pytest.raises(SettingsUnreadable):
        read_providers("providers.toml", text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost"])
def test_this_machine_needs_no_certificate(host: str) -> None:
    text = f"[x]\nformat = 'chat'\nurl = 'http://{host}:1/v1'"

    assert read_providers("providers.toml", text)["x"].url == f"http://{host}:1/v1"


def test_the_variables_with_keys_are_known() -> None:
    other = {"x": Provider("x", Format.CHAT, "https://x.example", "X_KEY")}

    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "X_KEY"} <= variables(other)
    assert "" not in variables(KNOWN)
