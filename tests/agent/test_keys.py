"""Keys are found where the person put them, and shown nowhere."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path

import msgspec
import pytest

from holdfast.agent.core.providers import Format, Provider
from holdfast.agent.failures import KeyFileOpen, KeyMissing, SettingsUnreadable
from holdfast.agent.keys import EnvironmentKeys, FileKeys, Key, KeyringKeys, Keys
from holdfast.telemetry import Redactor

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
    assert found(KeyringKeys(_ring)) == SECRET
    assert found(EnvironmentKeys({}), FileKeys(tmp_path / "none"), FileKeys(path)) == SECRET
    assert found(EnvironmentKeys({"THERE_API_KEY": "first"}), FileKeys(path)) == "first"


def _ring(service: str, name: str) -> str | None:
    return {("holdfast", "there"): SECRET}.get((service, name))


def _locked(service: str, name: str) -> str | None:
    raise RuntimeError("the keyring is locked")


def test_who_wants_none_gets_none() -> None:
    assert found(EnvironmentKeys({"": "x"}), provider=LOCAL) is None
    assert found(KeyringKeys(_ring), provider=LOCAL) is None


def test_a_keyring_that_is_locked_has_none() -> None:
    assert found(KeyringKeys(_locked), EnvironmentKeys({"THERE_API_KEY": SECRET})) == SECRET


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
    key = Key(SECRET)

    assert SECRET not in f"{key} {key!r} {vars(Key)} {[key]}"
    assert not hasattr(key, "__dict__")
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        copy.copy(key)
    with pytest.raises(TypeError):
        msgspec.json.encode(key)


@pytest.mark.promise("T6", "C6")
def test_all_that_are_there_can_be_hidden() -> None:
    """Whatever a provider, a tool or a model echoes, exact values are taken out."""
    keys = Keys(
        [EnvironmentKeys({"THERE_API_KEY": SECRET}), KeyringKeys(_ring), KeyringKeys(_locked)],
        file=Path("keys.toml"),
    )
    known = keys.known([THERE, LOCAL])

    assert known == (SECRET,)
    half, rest = SECRET[:9], SECRET[9:]
    stream = Redactor(known).stream()
    shown = stream.feed(f"a {half}") + stream.feed(f"{rest} b") + stream.flush()
    assert half not in shown
    assert shown.startswith("a ")
