"""Keys are found where the person put them, and shown nowhere."""

from __future__ import annotations

import copy
import os
import pickle
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest

from holdfast.agent.failures import KeyFileOpen, KeyMissing, SettingsUnreadable
from holdfast.agent.providers.keys import (
    ApiKey,
    EnvironmentKeys,
    FileKeys,
    KeyringKeys,
    Keys,
    without_keys,
)
from holdfast.agent.providers.registry import Format, Provider

THERE = Provider("there", Format.CHAT, "https://there.example", "THERE_API_KEY")
LOCAL = Provider("local", Format.CHAT, "http://127.0.0.1:1")
SECRET = "sk-there-0123456789abcdef"


def key_file(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "keys.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def found(*sources: object, provider: Provider = THERE) -> str | None:
    key = Keys(sources, file=Path("keys.toml")).find(provider)  # type: ignore[arg-type]  # each is one
    return key.reveal() if key else None


def test_they_are_found_everywhere(tmp_path: Path) -> None:
    path = key_file(tmp_path, f'there = "{SECRET}"\n')

    assert found(EnvironmentKeys({"THERE_API_KEY": f" {SECRET}\n"})) == SECRET
    assert found(FileKeys(path)) == SECRET
    assert found(KeyringKeys({"there": SECRET})) == SECRET
    assert found(EnvironmentKeys({}), FileKeys(tmp_path / "none"), FileKeys(path)) == SECRET
    assert found(EnvironmentKeys({"THERE_API_KEY": "first"}), FileKeys(path)) == "first"


def test_who_wants_none_gets_none() -> None:
    assert found(EnvironmentKeys({"": "x"}), provider=LOCAL) is None
    assert found(KeyringKeys({"there": SECRET}), provider=LOCAL) is None


def test_where_to_put_it_is_said() -> None:
    with pytest.raises(KeyMissing) as raised:
        found(EnvironmentKeys({"THERE_API_KEY": "  "}))

    assert raised.value == KeyMissing(provider="there", variable="THERE_API_KEY", file="keys.toml")


@pytest.mark.promise("T6", "C6")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o610])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(KeyFileOpen) as raised:
        found(FileKeys(key_file(tmp_path, f'there = "{SECRET}"', mode)))

    assert raised.value.mode == oct(mode)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys.toml", 0o600)

    with pytest.raises(KeyFileOpen):
        found(FileKeys(tmp_path / "keys.toml"))


@pytest.mark.promise("T6", "C6")
@pytest.mark.parametrize("text", [f"there = {SECRET}", f'there = ["{SECRET}"]', f"\x00{SECRET}"])
def test_a_complaint_quotes_nothing(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsUnreadable) as raised:
        found(FileKeys(key_file(tmp_path, text)))

    assert SECRET not in f"{raised.value!r} {raised.value} {raised.value.__context__!r}"


@pytest.mark.parametrize("value", ["sk-a\nb", "sk-ä", "sk-\x7f"])
def test_what_no_key_looks_like_is_refused(value: str) -> None:
    with pytest.raises(SettingsUnreadable) as raised:
        found(EnvironmentKeys({"THERE_API_KEY": value}))

    assert value not in str(raised.value)


@pytest.mark.promise("T6", "C6")
def test_a_key_does_not_show_itself() -> None:
    key = ApiKey(SECRET)

    assert SECRET not in f"{key} {key!r} {vars(ApiKey)} {[key]}"
    assert not hasattr(key, "__dict__")
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        copy.copy(key)
    with pytest.raises(TypeError):
        msgspec.json.encode(key)


@pytest.mark.promise("T6", "C6")
def test_all_that_are_there_are_known(tmp_path: Path) -> None:
    """Also those that another source comes before; a source that is refused tells none."""
    refused = FileKeys(key_file(tmp_path, f'there = "{SECRET}"', 0o644))
    sources = [EnvironmentKeys({"THERE_API_KEY": f"{SECRET}\n"}), KeyringKeys({"there": "other"})]
    keys = Keys([*sources, refused], file=Path("keys.toml"))
    assert keys.known() == ()
    keys.look_for([THERE, LOCAL])

    assert keys.known() == (SECRET, "other")


@pytest.mark.promise("T6", "C6")
def test_one_that_is_found_later_is_known_from_then_on(tmp_path: Path) -> None:
    keys = Keys([FileKeys(tmp_path / "keys.toml")], file=tmp_path / "keys.toml")
    keys.look_for([THERE])
    key_file(tmp_path, f'there = "{SECRET}"')
    keys.find(THERE)
    keys.find(THERE)

    assert keys.known() == (SECRET,)


@pytest.mark.promise("C6", "C22")
def test_no_variable_holds_a_key_whatever_it_is_called() -> None:
    encoded = b64encode(f"me:{SECRET}".encode()).decode()
    offered = {"PATH": "/bin", "THERE_API_KEY": SECRET, "A": f"Bearer {SECRET}", "B": encoded}

    assert without_keys(offered, (SECRET, "other")) == {"PATH": "/bin"}
    assert without_keys(offered, ()) == offered


def test_a_key_that_is_a_word_takes_nothing_along() -> None:
    """Servers on one's own machine are often given any word for a key."""
    offered = {"PATH": "/usr/local/bin", "HOME": "/home/x", "THERE_API_KEY": "local", "A": "x"}

    assert without_keys(offered, ("local", "x")) == {"PATH": "/usr/local/bin", "HOME": "/home/x"}
