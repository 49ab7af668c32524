"""Find the program that really is Codex behind the name that people type."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

_TARGETS = {
    ("Linux", "x86_64"): ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    ("Linux", "aarch64"): ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    ("Darwin", "x86_64"): ("codex-darwin-x64", "x86_64-apple-darwin"),
    ("Darwin", "arm64"): ("codex-darwin-arm64", "aarch64-apple-darwin"),
}


def native_program(name: str, *, path: str, cwd: str) -> str:
    """The native program behind npm's wrapper script, or the name itself.

    The wrapper is a second process between us and Codex: when it is killed, Codex lives on with
    our pipes open. `path` is where a bare name is looked up, `cwd` where a relative one begins.
    """
    found = name if "/" in name else shutil.which(name, path=path)
    if found is None:
        return name
    script = Path(cwd, found).resolve()
    target = _TARGETS.get((platform.system(), platform.machine()))
    if script.suffix != ".js" or target is None:
        return name
    package, triple = target
    for place in (script.parent.parent / "node_modules", *_modules_above(script)):
        native = place / "@openai" / package / "vendor" / triple / "bin" / "codex"
        if native.is_file():
            return str(native)
    return name


def _modules_above(script: Path) -> list[Path]:
    return [parent for parent in script.parents if parent.name == "node_modules"]
