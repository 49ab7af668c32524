"""What is settled in files and in the environment, for who is somewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.app.config import Config, content_of, project_file, read_config
from holdfast.app.config_rules import Settled
from holdfast.app.failures import ConfigUnreadable, SettingInvalid
from holdfast.app.settings import Settings, parse
from holdfast.app.trust import Trust
from holdfast.world import SystemClock


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = parse({"HOLDFAST_HOME": str(tmp_path / "home")}, person=tmp_path)
    made.config.mkdir(parents=True)
    return made


def project(tmp_path: Path, text: str = "[budget]\nsteps = 7\n") -> Path:
    file = tmp_path / "project/.holdfast.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def told(config: Config, key: str) -> Settled:
    return config.settled[key]


def test_each_place_counts_in_its_order(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = settings.config / "config.toml"
    own.write_text('runner = "codex"\nmodel = "m"\n[budget]\nsteps = 9\n')
    monkeypatch.setenv("HOLDFAST_RUNNER", "native")
    found = read_config(settings, tmp_path, {"model": "n"})

    assert told(found, "runner") == Settled("native", "$HOLDFAST_RUNNER")
    assert told(found, "model") == Settled("n", "flag")
    assert told(found, "budget.steps") == Settled(9, str(own))
    monkeypatch.setenv("HOLDFAST_RUNNER", "nobody")
    with pytest.raises(SettingInvalid):
        read_config(settings, tmp_path, {})


def test_a_project_counts_once_it_is_trusted_and_until_it_changes(
    settings: Settings, tmp_path: Path
) -> None:
    file = project(tmp_path)
    below = file.parent / "deep"
    below.mkdir()
    untrusted = read_config(settings, below, {})
    Trust(settings.state).give(file, file.read_bytes(), SystemClock())
    trusted = read_config(settings, below, {})
    file.write_text("[budget]\nsteps = 8\n")
    changed = read_config(settings, below, {})

    nothing = Settled(None, "default")
    assert (untrusted.untrusted, told(untrusted, "budget.steps")) == (file, nothing)
    assert (trusted.untrusted, told(trusted, "budget.steps")) == (None, Settled(7, str(file)))
    assert (changed.untrusted, told(changed, "budget.steps")) == (file, nothing)
    assert project_file(Path("/")) is None


def test_what_an_untrusted_file_says_is_not_even_parsed(settings: Settings, tmp_path: Path) -> None:
    file = project(tmp_path, "runner = [[[")

    assert read_config(settings, file.parent, {}).untrusted == file


@pytest.mark.parametrize("wrong", ["x = ", "\x00", "a = " + "[" * 9000])
def test_ones_own_file_is_read_or_said_to_be_wrong(settings: Settings, wrong: str) -> None:
    (settings.config / "config.toml").write_text(wrong)

    with pytest.raises(ConfigUnreadable):
        read_config(settings, settings.config, {})


def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"#" * 70_000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "long")
    for name in ("long", "pipe", "link", "missing", "."):
        with pytest.raises(ConfigUnreadable):
            content_of(tmp_path / name)
