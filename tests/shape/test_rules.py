"""Every rule of the shape can fail: planted violations, and what looks like one but is none."""

from __future__ import annotations

from pathlib import PurePosixPath
from textwrap import dedent

import pytest

from tests.shape import doors, manners, mirrors, sizes, words
from tests.shape.source import Source
from tests.shape.test_tidy import RULES, Rule

LINES = "\n".join(f"    x{n} = {n}" for n in range(301))
METHODS = "\n".join(f"    def m{n}(self): ..." for n in range(21))

PLANTED: list[tuple[Rule, str, str]] = [
    (sizes.small_module, "rpc/peer.py", "\n".join(f"x{n} = {n}" for n in range(601))),
    (sizes.small_class, "rpc/peer.py", f"class A:\n{LINES}"),
    (sizes.small_function, "rpc/peer.py", f"async def f():\n{LINES}"),
    (sizes.few_methods, "rpc/peer.py", f"class A:\n{METHODS}"),
    (words.telling_name, "rpc/utils.py", ""),
    (words.telling_name, "rpc/helpers/peer.py", ""),
    (words.telling_name, "rpc/manager.py", ""),
    (words.module_purpose, "rpc/peer.py", "x = 1"),
    (words.module_purpose, "rpc/peer.py", '"""No period"""'),
    (words.module_purpose, "rpc/peer.py", f'"""{"Long " * 20}."""'),
    (doors.doors_only, "rpc/peer.py", "from holdfast.world.disk import Disk"),
    (doors.doors_only, "rpc/peer.py", "import holdfast.world.journal_format"),
    (doors.doors_only, "rpc/peer.py", "from holdfast.rpc import Connection"),
    (doors.doors_only, "rpc/peer.py", "from holdfast import rpc"),
    (doors.decisions_first, "rpc/peer.py", "from holdfast.rpc.connection import Connection"),
    (doors.decisions_first, "rpc/peer.py", "from holdfast.world import Disk"),
    (doors.decisions_first, "rpc/model.py", "from holdfast.rpc.peer import Peer"),
    (doors.decisions_first, "rpc/failures.py", "from holdfast.rpc.model import Request"),
    (doors.decisions_first, "rpc/ports.py", "from holdfast.rpc.transports.child import Child"),
    (doors.decisions_first, "codex/wire/reading.py", "from holdfast.codex.model import Turn"),
    (doors.absolute_imports, "rpc/peer.py", "from . import core"),
    (manners.narrow_excepts, "rpc/peer.py", "try: ...\nexcept Exception: ..."),
    (manners.narrow_excepts, "rpc/peer.py", "try: ...\nexcept BaseException: ..."),
    (manners.narrow_excepts, "rpc/peer.py", "try: ...\nexcept: ..."),
    (manners.narrow_excepts, "rpc/peer.py", "try: ...\nexcept (OSError, Exception): ..."),
    (manners.narrow_excepts, "rpc/peer.py", "try: ...\nexcept* Exception: ..."),
    (manners.narrow_excepts, "rpc/peer.py", "with contextlib.suppress(Exception): ..."),
    (manners.narrow_excepts, "rpc/boundary.py", "try: ...\nexcept Exception: ..."),
    (manners.reasons_given, "rpc/peer.py", "x = f()  # type: ignore[arg-type]"),
    (manners.reasons_given, "rpc/peer.py", "x = f()  # noqa: PLR0913"),
    (manners.reasons_given, "rpc/peer.py", "x = f()  # pyright: ignore[x]  # why"),
    (manners.reasons_given, "rpc/peer.py", 'x = cast("int", y)'),
    (manners.reasons_given, "rpc/peer.py", "def f(\n    x: Any,\n) -> None: ..."),
    (manners.reasons_given, "rpc/peer.py", "x: dict[str, typing.Any] = {}"),
    (manners.eager_imports, "rpc/peer.py", "def f():\n    import json"),
    (manners.eager_imports, "rpc/peer.py", "async def f():\n    from json import loads"),
    (manners.eager_imports, "rpc/peer.py", "def f():\n    importlib.import_module('json')"),
    (manners.eager_imports, "rpc/__init__.py", "def __getattr__(name):\n    import json"),
    (manners.no_text_decides, "rpc/peer.py", "if failure.message == 'gone': ..."),
    (manners.no_text_decides, "rpc/peer.py", "x = 'gone' in failure.user_message"),
    (manners.no_text_decides, "rpc/peer.py", "x = 'gone' in str(error)"),
    (manners.no_text_decides, "rpc/peer.py", "x = failure.message.startswith('gone')"),
    (manners.no_text_decides, "rpc/peer.py", "x = failure.message.lower() == 'gone'"),
    (manners.no_text_decides, "rpc/peer.py", "re.search('gone', str(failure))"),
    (manners.no_text_decides, "rpc/peer.py", "match failure.message:\n    case 'gone': ..."),
    (manners.failures_at_home, "rpc/peer.py", "class A(Failure, code='A_B', kind=K): ..."),
    (manners.pure_decisions, "rpc/peer.py", "x = datetime.now(UTC)"),
    (manners.pure_decisions, "nouns/ids.py", "x = datetime.datetime.today()"),
    (manners.pure_decisions, "rpc/model.py", "with open('a') as file: ..."),
    (manners.threads_in_world, "rpc/peer.py", "from threading import Thread"),
    (manners.threads_in_world, "rpc/peer.py", "from anyio import to_thread"),
    (manners.real_parts, "test_peer.py", "from unittest.mock import patch"),
    (manners.real_parts, "test_peer.py", "import unittest.mock"),
    (manners.real_parts, "test_peer.py", "time.sleep(1)"),
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
    (words.telling_name, "runs/manager.py", ""),
    (doors.doors_only, "rpc/peer.py", "from holdfast.world import Disk"),
    (doors.doors_only, "rpc/peer.py", "from holdfast.world.failures import DiskFull"),
    (doors.doors_only, "rpc/peer.py", "from holdfast.rpc.peer import Peer"),
    (doors.doors_only, "app/wiring.py", "from holdfast.world.disk import Disk"),
    (doors.doors_only, "cli/main.py", "from holdfast import __version__"),
    (doors.decisions_first, "rpc/peer.py", "from holdfast.rpc.model import Request"),
    (doors.decisions_first, "rpc/peer.py", "from holdfast.nouns import Cursor"),
    (doors.decisions_first, "codex/model.py", "from holdfast.codex.wire.generated import Turn"),
    (doors.decisions_first, "rpc/connection.py", "from holdfast.world import Disk"),
    (manners.narrow_excepts, "failures/boundary.py", "try: ...\nexcept Exception: ..."),
    (manners.narrow_excepts, "rpc/peer.py", "try: ...\nexcept (OSError, ValueError): ..."),
    (manners.narrow_excepts, "rpc/peer.py", "with suppress(OSError): ..."),
    (manners.reasons_given, "rpc/peer.py", "x = f()  # type: ignore[x]  # the stub is wrong"),
    (manners.reasons_given, "rpc/peer.py", 'x = cast("int", y)  # checked just above'),
    (
        manners.reasons_given,
        "rpc/peer.py",
        "def f(x: Any) -> None:  # as json declares it\n    ...",
    ),
    (manners.reasons_given, "rpc/peer.py", "from typing import Any, cast"),
    (manners.eager_imports, "cli/main.py", "def f():\n    import json"),
    (manners.eager_imports, "app/wiring.py", "def f():\n    import json"),
    (manners.eager_imports, "__init__.py", "def face(name):\n    import_module(name)"),
    (manners.eager_imports, "rpc/peer.py", "if TYPE_CHECKING:\n    import json"),
    (manners.no_text_decides, "rpc/peer.py", "log(failure.message)\nx = failure.code == 'A_B'"),
    (manners.no_text_decides, "rpc/peer.py", "x = str(path) == 'a'"),
    (manners.failures_at_home, "rpc/failures.py", "class A(Failure, code='A_B', kind=K): ..."),
    (manners.failures_at_home, "rpc/failures/a.py", "class A(Failure, code='A_B', kind=K): ..."),
    (manners.failures_at_home, "failures/base.py", "class A(Failure, code='A_B', kind=K): ..."),
    (manners.pure_decisions, "rpc/peer.py", "x = datetime.fromtimestamp(now, UTC)"),
    (manners.pure_decisions, "world/clock.py", "x = datetime.now(UTC)"),
    (manners.threads_in_world, "world/commit_loop.py", "import threading"),
    (manners.real_parts, "test_peer.py", "import time\ntime.monotonic()"),
]


def complaints(rule: Rule, path: str, text: str) -> list[str]:
    return list(rule(Source(PurePosixPath(path), dedent(text))))


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_a_planted_violation_is_seen(rule: Rule, path: str, text: str) -> None:
    assert complaints(rule, path, text)


@pytest.mark.parametrize(("rule", "path", "text"), HARMLESS)
def test_what_is_allowed_is_left_alone(rule: Rule, path: str, text: str) -> None:
    assert complaints(rule, path, text) == []


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule.__name__ for rule in RULES} <= {rule.__name__ for rule, _, _ in PLANTED}


def test_a_test_without_a_module_and_a_module_without_a_test_are_seen() -> None:
    source = [
        PurePosixPath(path)
        for path in ("rpc/__init__.py", "rpc/model/a.py", "rpc/peer.py", "rpc/framing.py")
    ]
    tests = [
        PurePosixPath(path) for path in ("rpc/test_peer.py", "rpc/test_tail.py", "shape/test_x.py")
    ]

    assert list(mirrors.orphans(source, tests)) == ["rpc/test_tail.py"]
    assert list(mirrors.untested(source, tests)) == ["rpc/framing.py"]
