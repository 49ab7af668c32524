"""Where providers are is said by us or by the person, and never carelessly."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import SettingsUnreadable
from holdfast.agent.providers.registry import KNOWN, Format, Provider, read_providers
from holdfast.confine import allowed_environment


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
        "[x]\nformat = 'chat'\nurl = 'https://\xfc..example/v1'",
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


@pytest.mark.promise("T6", "C6")
@pytest.mark.parametrize("name", ["MY_KEY", "TOKEN", "A_SECRET", "my_key", "MY_KEY_2", "PATH", "X"])
def test_a_key_is_only_in_what_no_process_gets(name: str) -> None:
    """What is not kept from processes by its name is not taken for the name of a key."""
    text = f"[x]\nformat = 'chat'\nurl = 'https://x.example'\nvariable = '{name}'"
    try:
        taken = {read_providers("providers.toml", text)["x"].variable}
    except SettingsUnreadable:
        taken = set()
    known = {provider.variable for provider in KNOWN.values()} - {""}

    assert taken == ({name} if name in {"MY_KEY", "TOKEN", "A_SECRET"} else set())
    assert allowed_environment(dict.fromkeys(taken | known, "x"), ("*",)) == {}
