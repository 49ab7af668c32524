"""Which files programs run by themselves."""

from __future__ import annotations

import pytest

from holdfast.nouns import RelativePath
from holdfast.nouns.autorun import (
    CHANGE_DENIED,
    CONFIGURATION,
    CREATION_DENIED,
    HOOKS,
    RULES,
    autorun_reason,
)


@pytest.mark.promise("W13")
@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/post-checkout",
        ".git/config",
        "sub/.git/config",
        "sub/.git",
        ".git/info/attributes",
        ".git/modules/x/config",
        ".git/rebase-merge/git-rebase-todo",
        ".gitattributes",
        "a/b/.gitattributes",
        ".gitmodules",
        ".envrc",
        ".vscode/tasks.json",
        ".idea/runConfigurations/x.xml",
        "x.code-workspace",
        "package.json",
        "web/package.json",
        "Makefile",
        "src/makefile",
        "GNUmakefile",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".npmrc",
        ".yarnrc.yml",
        ".pnp.cjs",
        ".cargo/config.toml",
        "crates/x/.cargo/config",
        "mise.toml",
        ".mise.local.toml",
        "lefthook.yml",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        ".claude/settings.json",
        ".mcp.json",
        "tests/conftest.py",
        ".bashrc",
        ".ssh/config",
        ".GIT/Hooks/x",
        "PACKAGE.JSON",
    ],
)
def test_these_run_by_themselves(path: str) -> None:
    assert autorun_reason(RelativePath.of(path))


@pytest.mark.parametrize(
    "path",
    [
        "src/main.c",
        "README.md",
        ".gitignore",
        ".git/objects/ab/cdef",
        ".git/refs/heads/main",
        ".git/index",
        "git/hooks/x",
        "hooks/pre-commit",
        "config",
        "package.json.md",
        "docs/workflows/ci.yml",
        ".github/CODEOWNERS",
        "makefile/x",
    ],
)
def test_these_do_not(path: str) -> None:
    assert autorun_reason(RelativePath.of(path)) == ""


def test_git_is_named_first() -> None:
    assert autorun_reason(RelativePath.of(".git/hooks/x")) == HOOKS
    assert autorun_reason(RelativePath.of("a/.git/config")) == CONFIGURATION


def test_a_link_may_lead_to_a_directory_of_such_files() -> None:
    for path in (".vscode", ".github", ".cargo", ".git", ".git/hooks"):
        assert autorun_reason(RelativePath.of(path), is_link=True)
    assert autorun_reason(RelativePath.of("src"), is_link=True) == ""


def test_names_in_any_bytes_are_looked_at() -> None:
    assert autorun_reason(RelativePath.of(b"\xff/.envrc"))
    assert autorun_reason(RelativePath.of(b"\xff")) == ""


def test_what_a_sandbox_keeps_is_in_the_table_and_has_no_wildcards() -> None:
    names = (*CREATION_DENIED, *CHANGE_DENIED)

    assert len({*names}) == len(names) and "".join(names).isprintable()
    assert not [name for name in names if {*name} & {*"*?"}]
    for name in names:
        assert autorun_reason(RelativePath.of(name)) and autorun_reason(
            RelativePath.of(f"{name}/x")
        )
    assert all(rule.why and rule.all for rule in RULES)
