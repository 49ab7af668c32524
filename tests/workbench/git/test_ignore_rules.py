"""Rules of `.gitignore` mean here what they mean to git."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.git.ignore_rules import (
    IgnoreRules,
    Parts,
    folded,
    ignored_changes,
    parse_rules,
    tracked_in,
)
from holdfast.workbench.model import PathChange, PathEntry
from tests.workbench.modelled import at, directory, file

D, F = directory(), file("x")


def rules(files: Mapping[str, bytes], tracked: tuple[str, ...] = ()) -> IgnoreRules:
    """The rules of these files, by the directory that they are in."""
    parsed: dict[Parts, bytes] = {
        tuple(os.fsencode(place).split(b"/")) if place else (): text
        for place, text in files.items()
    }
    return IgnoreRules(
        lambda place: parse_rules(parsed.get(place, b"")),
        tracked=[tuple(each.encode().split(b"/")) for each in tracked],
    )


@pytest.mark.parametrize(
    ("text", "path", "is_ignored"),
    [
        (b"*.o\n", "a.o", True),
        (b"*.o\n", "d/a.o", True),
        (b"/a.o\n", "d/a.o", False),
        (b"d/*.o\n", "e/d/a.o", False),
        (b"build/\n", "build", False),
        (b"build/\n", "build/x/y", True),
        (b"**/x\n", "a/b/x", True),
        (b"a/**/x\n", "a/x", True),
        (b"a/**\n", "a/b/c", True),
        (b"*\n!*/\n!*.c\n", "a/b.txt", True),
        (b"*\n!*/\n!*.c\n", "a/b.c", False),
        (b"build/\n!build/x\n", "build/x", True),
        (b"x \\ \r\n", "x  ", True),
        (b"x  \n", "x", True),
        (b"\\#x\n#y\n", "#x", True),
        (b"\\!x\n", "!x", True),
        (b"[a-c]x\n", "bx", True),
        (b"[!a-c]x\n", "bx", False),
        (b"[]x]\n", "]", True),
        (b"[[:digit:]]\n", "7", True),
        (b"[a\n", "[a", False),
        (b"x\\\n", "x\\", False),
        (b"\xef\xbb\xbfx\n", "x", True),
        (b"a**b\n", "axxb", True),
    ],
)
def test_rules(text: bytes, path: str, is_ignored: bool) -> None:
    assert rules({"": text}).is_ignored(at(path), is_directory=False) is is_ignored


def test_what_is_tracked_is_not_ignored() -> None:
    found = rules({"": b"build/\n"}, tracked=("build/Makefile", "sub"))

    assert not found.is_ignored(at("build/Makefile"), is_directory=False)
    assert not found.is_ignored(at("build"), is_directory=True)
    assert found.is_ignored(at("build/x"), is_directory=False)
    assert not found.is_ignored(at("sub/build/x"), is_directory=False)  # of a submodule


def test_no_rule_takes_long() -> None:
    hostile = b"*a" * 40 + b"*b\n" + b"**/a/" * 40 + b"b\n"
    found = rules({"": hostile})
    before = time.process_time()
    assert not found.is_ignored(at("/".join(["a" * 200] * 15)), is_directory=False)

    assert time.process_time() - before < 20


GLOBS = st.lists(
    st.sampled_from(
        ["a", "b", "*", "**", "?", "/", "[ab]", "[!a]", "\\*", "*a", "c", "!", "#", " ", "\\ "]
    ),
    min_size=1,
    max_size=5,
).map("".join)
LINES = st.lists(st.one_of(GLOBS, GLOBS.map(lambda each: "!" + each)), max_size=4).map("\n".join)
NAMES = st.sampled_from(["a", "b", "c", "ab", "*", "!a", "#", "a "])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
@pytest.mark.promise("W13")
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=8),
    top=LINES,
    below=st.dictionaries(PATHS, LINES, max_size=2),
    tracked=st.sets(st.integers(0, 7), max_size=2),
)
@example(paths=["a/b", "b"], top="*\n!*/\n!b", below={}, tracked=set())
def test_git_ignores_the_same(
    paths: list[str], top: str, below: dict[str, str], tracked: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        git("init", "-q", root=root)
        files = {each for each in paths if _is_made(root, each)}
        texts = {"": top} | {
            place: text for place, text in below.items() if (root / place).is_dir()
        }
        for place, text in texts.items():
            (root / place / ".gitignore").write_text(text)
        known = [paths[each] for each in tracked if each < len(paths) and paths[each] in files]
        if known:
            git("add", "-f", "--", *(f"./{each}" for each in known), root=root)
        listed = git("ls-files", "-z", "--others", "--ignored", "--exclude-standard", root=root)
        index = root / ".git" / "index"
        names = tracked_in(index.read_bytes()) if index.exists() else None
        ours = rules(
            {place: text.encode() for place, text in texts.items()},
            tuple(each.decode() for each in names.paths) if names else (),
        )

        found = {each for each in files if ours.is_ignored(at(each), is_directory=False)}
        theirs = {each for each in listed.decode().split("\0") if each}
        assert found == {each for each in theirs if not each.endswith(".gitignore")}


def _is_made(root: Path, path: str) -> bool:
    try:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with open(root / path, "x"):
            return True
    except OSError:
        return (root / path).is_file()


def git(*words: str, root: Path) -> bytes:
    """What git says, with no settings of anybody."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=root, env=environment, check=True, capture_output=True, timeout=60
    ).stdout


def is_pyc(path: RelativePath, entry: PathEntry) -> bool:
    """As `*.pyc` and `out/` would have it."""
    return path.name.endswith(b".pyc") or path.parts[0] == b"out"


@pytest.mark.parametrize(
    ("changes", "ignored"),
    [
        ([PathChange(at("a"), None, F), PathChange(at("b.pyc"), None, F)], ["b.pyc"]),
        # A new directory with nothing else in it goes with what is in it.
        ([PathChange(at("d"), None, D), PathChange(at("d/b.pyc"), None, F)], ["d", "d/b.pyc"]),
        (
            [
                PathChange(at("d"), None, D),
                PathChange(at("d/a"), None, F),
                PathChange(at("d/b.pyc"), None, F),
            ],
            ["d/b.pyc"],
        ),
        (
            [
                PathChange(at("d"), None, D),
                PathChange(at("d/e"), None, D),
                PathChange(at("d/e/b.pyc"), None, F),
            ],
            ["d", "d/e", "d/e/b.pyc"],
        ),
        ([PathChange(at("d"), None, D)], []),
        # What is deleted with its directory goes with it.
        ([PathChange(at("d"), D, None), PathChange(at("d/b.pyc"), F, None)], []),
        ([PathChange(at("d"), D, F), PathChange(at("d/b.pyc"), F, None)], []),
        ([PathChange(at("out"), D, None), PathChange(at("out/x"), F, None)], ["out", "out/x"]),
        ([PathChange(at("d/b.pyc"), F, None)], ["d/b.pyc"]),
    ],
)
def test_what_is_left_makes_sense_alone(changes: list[PathChange], ignored: list[str]) -> None:
    assert sorted(map(str, ignored_changes(changes, is_pyc))) == ignored


def test_a_directory_at_the_top_is_one_line() -> None:
    paths = [at(each) for each in ("m", "m/a", "m/b/c", ".coverage", "s/p/x.pyc")]

    assert folded(paths) == {".": 1, "m": 3, "s": 1}
