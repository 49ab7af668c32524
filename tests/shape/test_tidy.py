"""All modules keep the shape rules: sizes, words, public API, conventions and mirrors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.shape import conventions, mirrors, public_api, sizes, words
from tests.shape.source import SRC, TESTS, Source, sources

Rule = Callable[[Source], Iterator[str]]

RULES: list[Rule] = [
    sizes.small_module,
    sizes.small_class,
    sizes.small_function,
    sizes.few_methods,
    words.specific_name,
    words.module_docstring,
    public_api.public_api_only,
    public_api.pure_below_effects,
    public_api.absolute_imports,
    conventions.narrow_excepts,
    conventions.suppressions_have_reasons,
    conventions.imports_at_top,
    conventions.no_branch_on_failure_text,
    conventions.failures_in_failures_module,
    conventions.no_io_in_pure_modules,
    conventions.threads_in_world,
]

# An exemption is one line: the rule, the module, the reason.
EXEMPT: dict[tuple[Rule, str], str] = {
    (
        conventions.imports_at_top,
        "agent/mcp/server.py",
    ): "the MCP SDK loads only when a server starts",
    (
        conventions.imports_at_top,
        "app/failure_catalogue.py",
    ): "it imports all modules that declare failures",
    (conventions.imports_at_top, "world/database.py"): "sqlite3 loads only when a database opens",
}
# Modules whose behaviour is tested through their only importer.
TESTED_THROUGH = {
    "acp/server.py": "journeys/test_editors.py",
    "acp/turn.py": "journeys/test_editors.py",
    "agent/mcp/session.py": "agent/mcp/test_server.py",
    "agent/model_request.py": "agent/test_conversation.py",
    "agent/tools/search_fallback.py": "agent/tools/test_search.py",
    "app/wiring/fork.py": "cli/commands/test_fork.py",
    "app/wiring/host_process.py": "cli/commands/test_host.py",
    "cli/commands/chat.py": "journeys/test_terminal.py",
    "exec/client/connection.py": "exec/client/test_client.py",
    "exec/server/__main__.py": "exec/server/test_server.py",
    "exec/server/files.py": "exec/server/methods/test_files.py",
    "exec/server/http_loop.py": "exec/server/methods/test_http.py",
    "rpc/dispatch.py": "rpc/test_connection.py",
    "rpc/subscription.py": "rpc/test_connection.py",
    "rpc/transports/child_loop.py": "rpc/transports/test_child.py",
    "terminal/commands.py": "journeys/test_terminal.py",
    "terminal/conversation.py": "journeys/test_terminal.py",
}

MODULES = [source.path for source in sources(SRC)]
MIRRORS = [source.path for source in sources(TESTS, "**/test_*.py")]


@pytest.mark.parametrize("source", sources(SRC), ids=lambda source: str(source.path))
def test_module_keeps_the_rules(source: Source) -> None:
    found = {
        rule.__name__: violations
        for rule in RULES
        if (rule, str(source.path)) not in EXEMPT and (violations := list(rule(source)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source", sources(TESTS, "**/test_*.py"), ids=lambda source: str(source.path)
)
def test_tests_have_no_mocks_or_sleeps(source: Source) -> None:
    assert list(conventions.no_mocks_or_sleeps(source)) == []


def test_every_test_mirrors_a_module() -> None:
    assert list(mirrors.orphans(MODULES, MIRRORS)) == []


def test_every_module_with_behaviour_has_tests() -> None:
    untested = set(mirrors.untested(MODULES, MIRRORS))

    assert untested - TESTED_THROUGH.keys() == set()
    assert TESTED_THROUGH.keys() <= untested, "remove the entry: the module has its own tests"
    assert set(TESTED_THROUGH.values()) <= {str(path) for path in MIRRORS}


def test_every_exemption_is_still_needed() -> None:
    by_path = {str(source.path): source for source in sources(SRC)}

    assert [(rule.__name__, path) for rule, path in EXEMPT if not any(rule(by_path[path]))] == []
