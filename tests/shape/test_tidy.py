"""The shape of the code itself: sizes, words, doors, manners and mirrors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.shape import doors, manners, mirrors, sizes, words
from tests.shape.source import SRC, TESTS, Source, sources

Rule = Callable[[Source], Iterator[str]]

RULES: list[Rule] = [
    sizes.small_module,
    sizes.small_class,
    sizes.small_function,
    sizes.few_methods,
    words.telling_name,
    words.module_purpose,
    doors.doors_only,
    doors.decisions_first,
    doors.absolute_imports,
    manners.narrow_excepts,
    manners.reasons_given,
    manners.eager_imports,
    manners.no_text_decides,
    manners.failures_at_home,
    manners.pure_decisions,
    manners.threads_in_world,
]

# An exemption is one line: the rule, the module, the reason.
EXEMPT: dict[tuple[Rule, str], str] = {
    (manners.eager_imports, "agent/mcp/server.py"): "the MCP SDK is loaded by who starts a server",
    (
        manners.eager_imports,
        "app/failure_catalogue.py",
    ): "it exists to import all that declares failures",
    (manners.eager_imports, "world/database.py"): "sqlite3 is loaded by what opens a database only",
}
# What only one module uses is tested through it.
TESTED_THROUGH = {
    "acp/server.py": "journeys/test_editors.py",
    "acp/turn.py": "journeys/test_editors.py",
    "agent/mcp/session.py": "agent/mcp/test_server.py",
    "agent/model_request.py": "agent/test_conversation.py",
    "agent/tools/search_fallback.py": "agent/tools/test_search.py",
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
    broken = {
        rule.__name__: complaints
        for rule in RULES
        if (rule, str(source.path)) not in EXEMPT and (complaints := list(rule(source)))
    }
    assert broken == {}


@pytest.mark.parametrize(
    "source", sources(TESTS, "**/test_*.py"), ids=lambda source: str(source.path)
)
def test_tests_use_real_parts(source: Source) -> None:
    assert list(manners.real_parts(source)) == []


def test_every_test_mirrors_a_module() -> None:
    assert list(mirrors.orphans(MODULES, MIRRORS)) == []


def test_every_module_that_decides_or_acts_has_tests() -> None:
    alone = set(mirrors.untested(MODULES, MIRRORS))

    assert alone - TESTED_THROUGH.keys() == set()
    assert TESTED_THROUGH.keys() <= alone, "it has tests of its own now"
    assert set(TESTED_THROUGH.values()) <= {str(path) for path in MIRRORS}


def test_every_exemption_is_still_needed() -> None:
    by_path = {str(source.path): source for source in sources(SRC)}

    assert [(rule.__name__, path) for rule, path in EXEMPT if not any(rule(by_path[path]))] == []
