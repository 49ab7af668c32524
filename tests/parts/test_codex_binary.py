"""The pinned Codex is what it says, and its home keeps it off the network and out of ours."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.codex import NEWEST_TESTED, OLDEST_SUPPORTED
from tests.parts import codex_binary as part
from tests.parts.codex_binary import (
    OLDEST,
    VERSION,
    Unavailable,
    codex_binary,
    codex_home,
    wrapper_script,
)


def test_the_pinned_versions_are_those_that_failures_name() -> None:
    assert (OLDEST, VERSION) == (OLDEST_SUPPORTED, NEWEST_TESTED)


@pytest.mark.parametrize("version", [OLDEST, VERSION])
def test_the_binary_is_the_native_program_of_the_pinned_version(
    version: str, tmp_path: Path
) -> None:
    binary = codex_binary(version)
    env = codex_home(tmp_path, "http://127.0.0.1:1/v1")

    said = subprocess.run(
        [binary, "--version"], check=True, capture_output=True, text=True, timeout=30, env=env
    )

    assert said.stdout.split()[-1] == version
    assert binary.read_bytes()[:4] in {b"\x7fELF", b"\xcf\xfa\xed\xfe"}
    assert wrapper_script().exists()


def test_the_home_is_no_child_of_the_temporary_directory(tmp_path: Path) -> None:
    env = codex_home(tmp_path, "http://127.0.0.1:1/v1", stream_retries=2)

    home, temporary = Path(env["CODEX_HOME"]), Path(env["TMPDIR"])
    assert not home.is_relative_to(temporary)
    config = (home / "config.toml").read_text()
    assert 'base_url = "http://127.0.0.1:1/v1"' in config
    assert "stream_max_retries = 2" in config


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "NPM_CACHE", tmp_path / "npm")
    monkeypatch.setenv("PATH", os.fspath(tmp_path))

    with pytest.raises(Unavailable, match="npm is not installed"):
        part.install()
