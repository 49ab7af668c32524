"""Ripgrep and our own engine find the same, and nothing they are given does anything else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from holdfast.agent.failures import ToolRefused
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.tools import search as searching
from holdfast.agent.tools.documents import tagged
from holdfast.agent.tools.search import SearchEngine, SearchTool
from tests.agent.grounds import ground_in
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

FILES = {
    "a.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n",
    "src/b.py": "x = one()\r\ny = ONE\r\n",
    "src/deep/c.js": "one + two",
    "ignored.py": "one\n",
    "src/build/out.py": "one\n",
    "src/.gitignore": "build/\n!kept.py\n",
    ".gitignore": "ignored.*\nkept.py\n",
    "src/kept.py": "one more\n",
    ".hidden/d.py": "one\n",
    ".git/config": "one\n",
    "binary": "one\0",
    "$(touch x)": "one\n",
    "-x": "one\n",
    "odd\nname": "one\n",
    "wide": "one " + "x" * 3000 + "\n",
    "late": "one\n" + "x\n" * 50_000 + "\0",
}
RIPGREP = shutil.which("rg")
ENGINES = [
    pytest.param(
        SearchEngine(RIPGREP),
        marks=pytest.mark.skipif(RIPGREP is None, reason="there is no ripgrep"),
    ),
    SearchEngine(None),
]


@asynccontextmanager
async def searched(tmp_path: Path) -> AsyncGenerator[tuple[SearchTool, SearchTool, Path]]:
    """A search by ripgrep, one by our own engine, and the project."""
    async with ground_in(tmp_path) as sandbox:
        root = Path(sandbox.root)
        for path, content in FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content.encode())
        os.symlink("/etc", root / "out")
        files = dict.fromkeys(FILES, b"")
        workspace = MemoryWorkspace(files, root=sandbox.root)
        yield (
            SearchTool(workspace, sandbox, SearchEngine(RIPGREP)),
            SearchTool(workspace, sandbox, SearchEngine(None)),
            root,
        )


async def find(tool: SearchTool, **arguments: object) -> str:
    return (await tool.use(dict(arguments), MemoryToolContext())).text


@pytest.mark.skipif(RIPGREP is None, reason="there is no ripgrep")
async def test_both_engines_find_the_same(tmp_path: Path) -> None:
    every: list[dict[str, object]] = [
        {"pattern": "one"},
        {"pattern": "ONE$", "context": 1},
        {"pattern": "one", "ignore_case": True, "glob": "*.py", "context": 0},
        {"pattern": "one()", "literal": True},
        {"pattern": "one", "everything": True, "limit": 3},
        {"pattern": "^(def|x) .*", "context": 20},
        {"pattern": "one", "path": "src"},
        {"pattern": "one", "path": "src/deep/c.js"},
        {"pattern": "one", "path": "$(touch x)"},
        {"pattern": "one", "path": "-x"},
        {"pattern": "--pre=touch x"},
        {"pattern": "nowhere"},
        {"glob": "*"},
        {"glob": "*.{py,js}", "path": "src"},
        {"glob": "src/**/*.py", "everything": True},
    ]
    async with searched(tmp_path) as (ripgrep, own, root):
        before = sorted(os.listdir(root))
        found = [(await find(ripgrep, **each), await find(own, **each)) for each in every]
        assert sorted(os.listdir(root)) == before

    assert [one for one, _ in found] == [other for _, other in found]


@pytest.mark.promise("C12")
async def test_what_is_found_is_named_and_what_is_odd_is_harmless(tmp_path: Path) -> None:
    async with searched(tmp_path) as (_, own, root):
        said = await find(own, pattern="one", context=0, glob="*.py")
        names = await find(own, glob="{b,o}*n*")
        capped = await find(own, pattern="one", limit=2)
        for path, reason in (("nope", "there is no nope"), ("../x", "outside")):
            with pytest.raises(ToolRefused, match=reason):
                await find(own, pattern="one", path=path)
        with pytest.raises(ToolRefused, match="regex parse error"):
            await find(own, pattern="(")
        assert not (root / "x").exists()

    assert said == "\n".join(
        [
            *(".hidden/d.py", f"> {tagged(['one'])[0]}", ""),
            *("a.py", f"> {tagged(['def one():'])[0]}", ""),
            *("src/b.py", f"> {tagged(['x = one()'])[0]}", ""),
            *("src/kept.py", f"> {tagged(['one more'])[0]}"),
        ]
    )
    assert names.split("\n") == ["binary", "odd\\x0aname"]
    assert capped.count(">") == 2 and "there is more" in capped


async def test_a_pattern_that_takes_for_ever_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SEARCH_LONGEST", 1.0)
    async with searched(tmp_path) as (_, own, root):
        (root / "slow").write_text("a" * 64 + "!\n")
        with anyio.fail_after(30):
            said = await find(own, pattern="^(a+)+$")

    assert said.endswith("(it took too long: narrow it down)")


@pytest.mark.promise("C11")
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_repository_that_is_armed_runs_nothing(
    tmp_path: Path, engine: SearchEngine
) -> None:
    async with ground_in(tmp_path) as sandbox:
        root, fired = Path(sandbox.root), tmp_path / "fired"
        shot = f"!touch {fired}"
        subprocess.run(["git", "init", "-q", str(root)], check=True)  # noqa: ASYNC221  # at once
        for name in ("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand"):
            setting = ["git", "-C", str(root), "config", name, f"touch {fired}"]
            subprocess.run(setting, check=True)  # noqa: ASYNC221  # at once
        with (root / ".git" / "config").open("a") as config:
            config.write(f'[filter "x"]\n\tclean = touch {fired}\n[alias]\n\tst = {shot}\n')
        (root / ".gitattributes").write_text("* filter=x diff=x\n")
        (root / ".ripgreprc").write_text(f"--pre=touch {fired}\n")
        (root / "rg").write_text(f"#!/bin/sh\ntouch {fired}\n")
        (root / "rg").chmod(0o755)
        (root / "a").write_text("one\n")
        env = {"PATH": f"{root}:/usr/bin:/bin", "RIPGREP_CONFIG_PATH": str(root / ".ripgreprc")}
        armed = replace(sandbox, environment=env)
        workspace = MemoryWorkspace({"a": b""}, root=sandbox.root)

        assert SearchEngine.on(armed) == SearchEngine(None)
        said = await find(SearchTool(workspace, armed, engine), pattern="^one$", context=0)

        assert said == f"a\n> {tagged(['one'])[0]}"
        assert not fired.exists()


async def test_the_best_engine_is_found(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox:
        found = shutil.which("rg", path=sandbox.environment["PATH"])
        assert SearchEngine.on(sandbox) == SearchEngine(found and str(Path(found).resolve()))  # noqa: ASYNC240  # at once
        assert SearchEngine.on(replace(sandbox, environment={"PATH": "/nowhere"})) == SearchEngine(
            None
        )

        tool = SearchTool(MemoryWorkspace(), sandbox, SearchEngine(None))
        assert tool.spec.name == "search"
        assert tool.title({"pattern": "a\nb"}) == "Search for a b"
        assert tool.title({"glob": "*.py"}) == "Find files *.py"
        for wrong in ({}, {"pattern": "a\nb"}):
            with pytest.raises(ToolRefused):
                await find(tool, **wrong)
