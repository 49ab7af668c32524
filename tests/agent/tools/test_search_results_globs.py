"""Patterns mean what git and ripgrep mean by them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.agent.tools.search_results import is_ignored, matcher, rules_in


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/d/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/d/e/a.py", True),
        ("src/**", "src/d/a", True),
        ("**/a", "a", True),
        ("/a", "a", True),
        ("/a", "d/a", False),
        ("*.{js,ts}", "x.ts", True),
        ("*.{js,t{s,sx}}", "x.tsx", True),
        ("*.{js}", "x.{js}", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a]x", "/x", False),
        ("[z-a]", "a", False),
        ("[", "[", True),
        ("a\\*", "a*", True),
        ("a\\*", "ab", False),
        ("$(x)", "$(x)", True),
        ("a.c", "abc", False),
    ],
)
def test_a_glob(glob: str, path: str, expected: bool) -> None:
    assert (matcher(glob).fullmatch(path) is not None) is expected


def test_many_alternatives_cost_little() -> None:
    assert matcher("{a,b}" * 40).fullmatch("ab" * 20)


LINES = st.lists(
    st.sampled_from([
        "a", "b/", "/a", "*.x", "!a.x", "a/b", "**/b", "a/**", "!a/", "d/*", "!d/b", "# no", "",
        "a ", "\\#", "\\!x", "b/a", "/d/", "[ab].x", "*", "!*/", "!*.x", "a/**/b",
    ]),
    max_size=4,
)  # fmt: skip
FILES = ("a", "b", "x", "a.x", "b.x", "#", "!x", "d/a", "d/b", "d/b.x", "e/b/a", "e/d/b", "g/a/b")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=LINES)
def test_rules_mean_what_git_means(tmp_path: Path, lines: list[str]) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    for path in FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    asked = "\0".join(FILES).encode()
    git = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"]
    said = subprocess.run(git, input=asked, capture_output=True).stdout.decode()

    rules = rules_in("\n".join(lines))

    def ignored(path: str) -> bool:
        parts = path.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        return any(is_ignored(rules, each, is_directory=True) for each in above) or bool(
            is_ignored(rules, path, is_directory=False)
        )

    assert [path for path in FILES if ignored(path)] == [each for each in said.split("\0") if each]
