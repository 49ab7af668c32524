"""Names that programs obey are known wherever they stand, and others are left alone."""

from __future__ import annotations

import pytest

from holdfast.agent.permissions import is_protected
from holdfast.nouns import RelativePath


@pytest.mark.promise("C9")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/hooks/pre-commit", True),
        ("sub/.git/config", True),
        (".GIT/Config", True),
        (".envrc", True),
        (".npmrc", True),
        ("sub/mise.toml", True),
        (".claude/settings.json", True),
        (".git/HEAD", False),
        ("envrc", False),
        ("src/main.py", False),
        (".github/workflows/ci.yml", False),
    ],
)
def test_what_is_protected(path: str, expected: bool) -> None:
    assert is_protected(RelativePath.of(path)) is expected
