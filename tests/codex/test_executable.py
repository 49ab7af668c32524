"""The native program is found behind npm's wrapper, however that was installed."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from holdfast.codex.executable import native_program

TARGETS = {
    ("Linux", "x86_64"): ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    ("Linux", "aarch64"): ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    ("Darwin", "x86_64"): ("codex-darwin-x64", "x86_64-apple-darwin"),
    ("Darwin", "arm64"): ("codex-darwin-arm64", "aarch64-apple-darwin"),
}
INSIDE = "lib/node_modules/@openai/codex/node_modules"  # as `npm install -g` does
BESIDE = "lib/node_modules"  # as `npm install` in a project does


def machine(monkeypatch: pytest.MonkeyPatch, system: str, processor: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: processor)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def wrapper(prefix: Path) -> Path:
    """What npm puts on the path: a link to the script of the package."""
    script = program(prefix / "lib/node_modules/@openai/codex/bin/codex.js")
    link = prefix / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(script)
    return link


def native(prefix: Path, modules: str, system: str, processor: str) -> Path:
    package, triple = TARGETS[system, processor]
    return program(prefix / modules / "@openai" / package / "vendor" / triple / "bin" / "codex")


@pytest.mark.parametrize("modules", [INSIDE, BESIDE])
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
def test_the_wrapper_is_seen_through(
    modules: str, target: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, *target)
    link = wrapper(tmp_path)
    found = native(tmp_path, modules, *target)

    places = {"path": str(link.parent), "cwd": str(tmp_path)}
    for name in ("codex", str(link), "bin/codex", "./bin/codex"):
        assert native_program(name, **places) == str(found)


def test_the_one_inside_the_package_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, "Linux", "x86_64")
    link = wrapper(tmp_path)
    native(tmp_path, BESIDE, "Linux", "x86_64")
    nearest = native(tmp_path, INSIDE, "Linux", "x86_64")

    assert native_program(str(link), path="", cwd=str(tmp_path)) == str(nearest)


def test_a_name_is_looked_up_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, "Linux", "x86_64")
    link = wrapper(tmp_path)
    native(tmp_path, INSIDE, "Linux", "x86_64")

    monkeypatch.setenv("PATH", str(link.parent))
    assert native_program("codex", path="/nowhere", cwd=str(tmp_path)) == "codex"


@pytest.mark.parametrize("name", ["codex", "/nowhere/codex", "nowhere/codex"])
def test_what_does_not_exist_is_left_to_fail_under_its_own_name(name: str, tmp_path: Path) -> None:
    assert native_program(name, path=str(tmp_path), cwd=str(tmp_path)) == name


def test_what_is_no_wrapper_is_what_it_is(tmp_path: Path) -> None:
    own = program(tmp_path / "codex")
    native(tmp_path, "node_modules", "Linux", "x86_64")

    assert native_program("codex", path=str(tmp_path), cwd="/") == "codex"
    assert native_program(str(own), path="", cwd="/") == str(own)


def test_a_wrapper_without_a_program_for_this_machine_is_run_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = wrapper(tmp_path)
    native(tmp_path, INSIDE, "Darwin", "arm64")
    for system, processor in (("Linux", "x86_64"), ("Plan9", "mips")):
        machine(monkeypatch, system, processor)
        assert native_program(str(link), path="", cwd="/") == str(link)
