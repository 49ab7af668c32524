"""Keys are found in the environment, in the keyring and in a file, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.settings import Settings, parse
from holdfast.app.wiring.keys import keys_of, known_secrets, providers_of


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = parse({"HOLDFAST_HOME": str(tmp_path)}, person=tmp_path)
    found.config.mkdir(parents=True)
    (found.config / "keys.toml").touch(mode=0o600)
    (found.config / "keys.toml").write_text('openai = "sk-of-the-file"\n')
    (found.config / "providers.toml").write_text(
        '[mine]\nformat = "chat"\nurl = "http://127.0.0.1:1"\nvariable = "MINE_TOKEN"\n'
    )
    return found


def test_the_first_that_has_one_counts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    openai, ring = providers_of(settings)["openai"], {"openai": "sk-of-the-ring"}

    def found(entries: dict[str, str]) -> str:
        key = keys_of(settings, entries).find(openai)
        return "" if key is None else key.reveal()

    assert found({"other": "x"}) == "sk-of-the-file"
    assert found(ring) == "sk-of-the-ring"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-variable")
    assert found(ring) == "sk-of-a-variable"


@pytest.mark.promise("T6")
def test_all_secrets_are_known_by_value(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_TOKEN", "canary-of-a-provider")
    monkeypatch.setenv("SOME_PASSWORD", "canary of a variable")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("PWD", "/home/ann/project")
    monkeypatch.setenv("OLDPWD", "/home/ann")
    known = known_secrets(settings)

    assert {"sk-of-the-file", "canary-of-a-provider", "canary of a variable"} <= set(known)
    assert not {"C.UTF-8", "/home/ann/project", "/home/ann"} & set(known)


def test_a_file_of_keys_that_others_can_read_hides_nothing_and_breaks_nothing(
    settings: Settings,
) -> None:
    (settings.config / "keys.toml").chmod(0o644)

    assert "sk-of-the-file" not in known_secrets(settings)
