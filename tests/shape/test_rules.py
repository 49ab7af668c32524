"""Every shape rule reports planted violations and accepts code that only looks like one."""

from __future__ import annotations

from pathlib import PurePosixPath
from textwrap import dedent

import pytest

from tests.shape import conventions, mirrors, public_api, sizes, words
from tests.shape.source import Source
from tests.shape.test_tidy import RULES, Rule

LINES = "\n".join(f"    x{n} = {n}" for n in range(301))
METHODS = "\n".join(f"    def m{n}(self): ..." for n in range(21))

PLANTED: list[tuple[Rule, str, str]] = [
    (sizes.small_module, "rpc/peer.py", "\n".join(f"x{n} = {n}" for n in range(601))),
    (sizes.small_class, "rpc/peer.py", f"class A:\n{LINES}"),
    (sizes.small_function, "rpc/peer.py", f"async def f():\n{LINES}"),
    (sizes.few_methods, "rpc/peer.py", f"class A:\n{METHODS}"),
    (words.specific_name, "rpc/utils.py", ""),
    (words.specific_name, "rpc/helpers/peer.py", ""),
    (words.specific_name, "rpc/manager.py", ""),
    (words.module_docstring, "rpc/peer.py", "x = 1"),
    (words.module_docstring, "rpc/peer.py", '"""No period"""'),
    (words.module_docstring, "rpc/peer.py", f'"""{"Long " * 20}."""'),
    (public_api.public_api_only, "rpc/peer.py", "from holdfast.world.disk import Disk"),
    (public_api.public_api_only, "rpc/peer.py", "import holdfast.world.journal_format"),
    (public_api.public_api_only, "rpc/peer.py", "from holdfast.rpc import Connection"),
    (public_api.public_api_only, "rpc/peer.py", "from holdfast import rpc"),
    (
        public_api.pure_below_effects,
        "rpc/peer.py",
        "from holdfast.rpc.connection import Connection",
    ),
    (public_api.pure_below_effects, "rpc/peer.py", "from holdfast.world import Disk"),
    (public_api.pure_below_effects, "rpc/model.py", "from holdfast.rpc.peer import Peer"),
    (public_api.pure_below_effects, "rpc/failures.py", "from holdfast.rpc.model import Request"),
    (
        public_api.pure_below_effects,
        "rpc/ports.py",
        "from holdfast.rpc.transports.child import Child",
    ),
    (
        public_api.pure_below_effects,
        "codex/wire/reading.py",
        "from holdfast.codex.model import Turn",
    ),
    (public_api.absolute_imports, "rpc/peer.py", "from . import core"),
    (conventions.narrow_excepts, "rpc/peer.py", "try: ...\nexcept Exception: ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "try: ...\nexcept BaseException: ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "try: ...\nexcept: ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "try: ...\nexcept (OSError, Exception): ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "try: ...\nexcept* Exception: ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "with contextlib.suppress(Exception): ..."),
    (conventions.narrow_excepts, "rpc/boundary.py", "try: ...\nexcept Exception: ..."),
    (conventions.suppressions_have_reasons, "rpc/peer.py", "x = f()  # type: ignore[arg-type]"),
    (conventions.suppressions_have_reasons, "rpc/peer.py", "x = f()  # noqa: PLR0913"),
    (conventions.suppressions_have_reasons, "rpc/peer.py", "x = f()  # pyright: ignore[x]  # why"),
    (conventions.suppressions_have_reasons, "rpc/peer.py", 'x = cast("int", y)'),
    (conventions.suppressions_have_reasons, "rpc/peer.py", "def f(\n    x: Any,\n) -> None: ..."),
    (conventions.suppressions_have_reasons, "rpc/peer.py", "x: dict[str, typing.Any] = {}"),
    (conventions.imports_at_top, "rpc/peer.py", "def f():\n    import json"),
    (conventions.imports_at_top, "rpc/peer.py", "async def f():\n    from json import loads"),
    (conventions.imports_at_top, "rpc/peer.py", "def f():\n    importlib.import_module('json')"),
    (conventions.imports_at_top, "rpc/__init__.py", "def __getattr__(name):\n    import json"),
    (conventions.no_branch_on_failure_text, "rpc/peer.py", "if failure.message == 'gone': ..."),
    (conventions.no_branch_on_failure_text, "rpc/peer.py", "x = 'gone' in failure.user_message"),
    (conventions.no_branch_on_failure_text, "rpc/peer.py", "x = 'gone' in str(error)"),
    (
        conventions.no_branch_on_failure_text,
        "rpc/peer.py",
        "x = failure.message.startswith('gone')",
    ),
    (conventions.no_branch_on_failure_text, "rpc/peer.py", "x = failure.message.lower() == 'gone'"),
    (conventions.no_branch_on_failure_text, "rpc/peer.py", "re.search('gone', str(failure))"),
    (
        conventions.no_branch_on_failure_text,
        "rpc/peer.py",
        "match failure.message:\n    case 'gone': ...",
    ),
    (
        conventions.failures_in_failures_module,
        "rpc/peer.py",
        "class A(Failure, code='A_B', kind=K): ...",
    ),
    (conventions.no_io_in_pure_modules, "rpc/peer.py", "x = datetime.now(UTC)"),
    (conventions.no_io_in_pure_modules, "nouns/ids.py", "x = datetime.datetime.today()"),
    (conventions.no_io_in_pure_modules, "rpc/model.py", "with open('a') as file: ..."),
    (conventions.threads_in_world, "rpc/peer.py", "from threading import Thread"),
    (conventions.threads_in_world, "rpc/peer.py", "from anyio import to_thread"),
    (conventions.no_mocks_or_sleeps, "test_peer.py", "from unittest.mock import patch"),
    (conventions.no_mocks_or_sleeps, "test_peer.py", "import unittest.mock"),
    (conventions.no_mocks_or_sleeps, "test_peer.py", "time.sleep(1)"),
]
HARMLESS: list[tuple[Rule, str, str]] = [
    (
        sizes.small_module,
        "rpc/peer.py",
        "x = {\n" + "\n".join(f"  {n}: 0," for n in range(700)) + "}",
    ),
    (sizes.small_module, "rpc/peer.py", '"""' + "\n" * 700 + '"""\n' + "# why\n" * 700),
    (sizes.small_module, "rpc/peer.py", f"# Generated by a script.\nclass A:\n{LINES}\n{LINES}"),
    (sizes.small_function, "rpc/peer.py", 'def f():\n    """' + "\n" * 60 + '    """'),
    (
        sizes.few_methods,
        "rpc/peer.py",
        "class A:\n" + METHODS.replace("    def", "    @property\n    def"),
    ),
    (sizes.few_methods, "rpc/peer.py", "class A:\n" + METHODS.replace("def ", "def test_")),
    (words.specific_name, "runs/manager.py", ""),
    (public_api.public_api_only, "rpc/peer.py", "from holdfast.world import Disk"),
    (public_api.public_api_only, "rpc/peer.py", "from holdfast.world.failures import DiskFull"),
    (public_api.public_api_only, "rpc/peer.py", "from holdfast.rpc.peer import Peer"),
    (public_api.public_api_only, "app/wiring/host.py", "from holdfast.world.disk import Disk"),
    (public_api.public_api_only, "cli/main.py", "from holdfast import __version__"),
    (public_api.pure_below_effects, "rpc/peer.py", "from holdfast.rpc.model import Request"),
    (public_api.pure_below_effects, "rpc/peer.py", "from holdfast.nouns import Cursor"),
    (
        public_api.pure_below_effects,
        "codex/model.py",
        "from holdfast.codex.wire.generated import Turn",
    ),
    (public_api.pure_below_effects, "rpc/connection.py", "from holdfast.world import Disk"),
    (conventions.narrow_excepts, "failures/boundary.py", "try: ...\nexcept Exception: ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "try: ...\nexcept (OSError, ValueError): ..."),
    (conventions.narrow_excepts, "rpc/peer.py", "with suppress(OSError): ..."),
    (
        conventions.suppressions_have_reasons,
        "rpc/peer.py",
        "x = f()  # type: ignore[x]  # the stub is wrong",
    ),
    (
        conventions.suppressions_have_reasons,
        "rpc/peer.py",
        'x = cast("int", y)  # checked just above',
    ),
    (
        conventions.suppressions_have_reasons,
        "rpc/peer.py",
        "def f(x: Any) -> None:  # as json declares it\n    ...",
    ),
    (conventions.suppressions_have_reasons, "rpc/peer.py", "from typing import Any, cast"),
    (conventions.imports_at_top, "cli/main.py", "def f():\n    import json"),
    (conventions.imports_at_top, "app/wiring/host.py", "def f():\n    import json"),
    (conventions.imports_at_top, "__init__.py", "def lazy_exports(name):\n    import_module(name)"),
    (conventions.imports_at_top, "rpc/peer.py", "if TYPE_CHECKING:\n    import json"),
    (
        conventions.no_branch_on_failure_text,
        "rpc/peer.py",
        "log(failure.message)\nx = failure.code == 'A_B'",
    ),
    (conventions.no_branch_on_failure_text, "rpc/peer.py", "x = str(path) == 'a'"),
    (
        conventions.failures_in_failures_module,
        "rpc/failures.py",
        "class A(Failure, code='A_B', kind=K): ...",
    ),
    (
        conventions.failures_in_failures_module,
        "rpc/failures/a.py",
        "class A(Failure, code='A_B', kind=K): ...",
    ),
    (
        conventions.failures_in_failures_module,
        "failures/base.py",
        "class A(Failure, code='A_B', kind=K): ...",
    ),
    (conventions.no_io_in_pure_modules, "rpc/peer.py", "x = datetime.fromtimestamp(now, UTC)"),
    (conventions.no_io_in_pure_modules, "world/clock.py", "x = datetime.now(UTC)"),
    (conventions.threads_in_world, "world/commit_loop.py", "import threading"),
    (conventions.no_mocks_or_sleeps, "test_peer.py", "import time\ntime.monotonic()"),
]


def violations(rule: Rule, path: str, text: str) -> list[str]:
    return list(rule(Source(PurePosixPath(path), dedent(text))))


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_planted_violation_is_reported(rule: Rule, path: str, text: str) -> None:
    assert violations(rule, path, text)


@pytest.mark.parametrize(("rule", "path", "text"), HARMLESS)
def test_allowed_code_is_accepted(rule: Rule, path: str, text: str) -> None:
    assert violations(rule, path, text) == []


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule.__name__ for rule in RULES} <= {rule.__name__ for rule, _, _ in PLANTED}


def test_test_without_module_and_module_without_test_are_reported() -> None:
    source = [
        PurePosixPath(path)
        for path in ("rpc/__init__.py", "rpc/model/a.py", "rpc/peer.py", "rpc/framing.py")
    ]
    tests = [
        PurePosixPath(path) for path in ("rpc/test_peer.py", "rpc/test_tail.py", "shape/test_x.py")
    ]

    assert list(mirrors.orphans(source, tests)) == ["rpc/test_tail.py"]
    assert list(mirrors.untested(source, tests)) == ["rpc/framing.py"]
