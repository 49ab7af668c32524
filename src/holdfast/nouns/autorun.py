"""Files that programs run or obey without being asked: one table, by name.

Writing such a file runs code later, when a person only enters a directory, opens an editor, commits
or installs. A review marks these files; a sandbox keeps some of them from being written.

A pattern is a name, or several joined by `/`, that a path ends with; with a `/` at its end it is a
directory, and stands for all below it. `*` and `?` stand for characters of one name. Case is
ignored, because some file systems ignore it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple

from holdfast.nouns.paths import RelativePath

HOOKS: Final = "git runs its hooks"
CONFIGURATION: Final = "git obeys it as configuration"


class AutorunRule(NamedTuple):
    """Why files run by themselves, and which.

    `guarded` are names that commands in a sandbox may not even make, `kept` those that they may not
    change where they exist: an empty stand-in would break programs that read them.
    """

    why: str
    patterns: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every pattern of the rule; what may be a directory stands for all below it, too."""
        names = (*self.guarded, *self.kept)
        return (*self.patterns, *names, *(f"{name}/" for name in names))


RULES: Final = (
    AutorunRule(HOOKS, guarded=(".git/hooks",)),
    AutorunRule(
        CONFIGURATION,
        guarded=(".git/config", ".git/config.worktree"),
        kept=(".gitconfig", ".config/git"),
    ),
    AutorunRule(
        "git takes its configuration, or a whole repository, from where it says",
        (".git",),
        guarded=(".git/commondir", ".git/modules", ".git/worktrees"),
    ),
    AutorunRule(
        "git runs the filters and merge drivers that it names",
        (".gitattributes", ".git/info/attributes"),
    ),
    AutorunRule("git clones and obeys the repositories that it names", kept=(".gitmodules",)),
    AutorunRule(
        "git runs the commands in it when it goes on with a rebase",
        (".git/rebase-merge/", ".git/rebase-apply/", ".git/sequencer/"),
    ),
    AutorunRule(
        "git hooks run it",
        (
            ".pre-commit-hooks.yaml",
            ".overcommit.yml",
            ".lefthook/",
            ".lintstagedrc*",
            "lint-staged.config.*",
        ),
        guarded=(".husky", ".pre-commit-config.yaml"),
        kept=("lefthook.yml", "lefthook.yaml", "lefthook.toml", ".lefthook.yml", ".lefthook.yaml"),
    ),
    AutorunRule(
        "shells and tool managers run or obey it on entering the directory",
        (
            "mise.*.toml",
            ".mise.*.toml",
            "mise/config.toml",
            ".config/mise/",
            ".autoenv.zsh",
            "devbox.json",
            "flake.nix",
            "shell.nix",
        ),
        guarded=(".envrc",),
        kept=("mise.toml", ".mise.toml", ".mise"),
    ),
    AutorunRule(
        "editors run what it names",
        (
            "*.code-workspace",
            "*.sublime-project",
            ".fleet/",
            ".devcontainer.json",
            ".exrc",
            ".vimrc",
            ".nvimrc",
            ".nvim.lua",
            ".dir-locals.el",
            "eslint.config.*",
            ".eslintrc.js",
            ".eslintrc.cjs",
            ".prettierrc.*",
            "prettier.config.*",
        ),
        guarded=(".devcontainer", ".idea", ".vscode"),
        kept=(".zed",),
    ),
    AutorunRule(
        "coding agents obey it, or run what it names",
        (".cursorrules", ".holdfast.toml", "opencode.json", "opencode.jsonc", ".windsurfrules"),
        guarded=(
            ".agents",
            ".claude",
            ".codex",
            ".cursor",
            ".gemini",
            ".holdfast",
            ".mcp.json",
            ".opencode",
        ),
        kept=(".windsurf", ".roo", ".kiro", ".junie", ".amazonq", ".clinerules"),
    ),
    AutorunRule(
        "package managers run its scripts or what it names",
        (
            "package.json",
            ".yarn/plugins/",
            ".yarn/releases/",
            ".pnp.*",
            "pnpm-workspace.yaml",
            "binding.gyp",
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "*.pth",
            "composer.json",
            "Gemfile",
            "*.gemspec",
            "pip.conf",
            ".pypirc",
        ),
        kept=(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"),
    ),
    AutorunRule(
        "build tools run it, or what it names",
        (
            "Makefile",
            "GNUmakefile",
            "*.mk",
            "justfile",
            ".justfile",
            "Taskfile.yml",
            "Taskfile.yaml",
            "Rakefile",
            "CMakeLists.txt",
            "meson.build",
            "build.rs",
            "rust-toolchain",
            "rust-toolchain.toml",
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradlew",
            "gradle/wrapper/",
            "mvnw",
            ".mvn/",
            "pom.xml",
            "WORKSPACE",
            "WORKSPACE.bazel",
            "MODULE.bazel",
            "BUILD.bazel",
            "noxfile.py",
            "tox.ini",
            "Vagrantfile",
        ),
        kept=(".bazelrc", ".cargo/config", ".cargo/config.toml"),
    ),
    AutorunRule(
        "Python and its test runners import it by themselves",
        ("conftest.py", "sitecustomize.py", "usercustomize.py"),
    ),
    AutorunRule(
        "programs run or obey it when they start",
        kept=(
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".config/fish",
            ".inputrc",
            ".gdbinit",
            ".lldbinit",
            ".irbrc",
            ".pryrc",
            ".Rprofile",
            ".ssh",
            ".config/systemd",
            ".config/autostart",
            ".ripgreprc",
        ),
    ),
    AutorunRule(
        "CI runs it",
        (
            ".github/workflows/",
            ".github/actions/",
            ".gitlab-ci.yml",
            ".gitlab/ci/",
            ".circleci/",
            ".travis.yml",
            "azure-pipelines.yml",
            "Jenkinsfile",
            ".woodpecker.yml",
            ".woodpecker/",
            ".drone.yml",
            "bitbucket-pipelines.yml",
            ".buildkite/",
            "appveyor.yml",
            ".appveyor.yml",
            ".forgejo/workflows/",
            ".gitea/workflows/",
            ".cirrus.yml",
        ),
    ),
)

CREATION_DENIED: Final = tuple(name for rule in RULES for name in rule.guarded)
CHANGE_DENIED: Final = tuple(name for rule in RULES for name in rule.kept)


def autorun_reason(path: RelativePath, *, is_link: bool = False) -> str:
    """Why a file runs by itself, in a few words; nothing if it does not.

    A link also counts where the directory of such a file would be: it may lead to one.
    """
    parts = tuple(part.decode("utf-8", "replace").casefold() for part in path.parts)
    by_name, with_wildcards = _patterns()
    for place, part in enumerate(parts):
        for pattern in (*by_name.get(part, ()), *with_wildcards):
            if _is_match(parts[place:], pattern, is_link=is_link):
                return pattern.why
    return ""


class _Pattern(NamedTuple):
    parts: tuple[str, ...]
    is_directory: bool
    why: str


@lru_cache(maxsize=1)
def _patterns() -> tuple[dict[str, tuple[_Pattern, ...]], tuple[_Pattern, ...]]:
    """The patterns by their first name, in the order of the table, and those with wildcards."""
    by_name: dict[str, tuple[_Pattern, ...]] = {}
    with_wildcards: list[_Pattern] = []
    for rule in RULES:
        for text in rule.all:
            parts = tuple(text.casefold().rstrip("/").split("/"))
            pattern = _Pattern(parts, text.endswith("/"), rule.why)
            if "*" in parts[0] or "?" in parts[0]:
                with_wildcards.append(pattern)
            else:
                by_name[parts[0]] = (*by_name.get(parts[0], ()), pattern)
    return by_name, tuple(with_wildcards)


def _is_match(parts: tuple[str, ...], pattern: _Pattern, *, is_link: bool) -> bool:
    count = len(pattern.parts)
    if len(parts) < count:
        return is_link and _fits(parts, pattern.parts[: len(parts)])
    if len(parts) > count and not pattern.is_directory:
        return False
    # The directory itself is nothing that runs, unless it is a link to one.
    is_itself = len(parts) == count and pattern.is_directory
    return (is_link or not is_itself) and _fits(parts[:count], pattern.parts)


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return all(fnmatchcase(part, each) for part, each in zip(parts, pattern, strict=True))
