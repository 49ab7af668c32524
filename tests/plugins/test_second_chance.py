"""Few failures are looked at twice, and whoever passes only then is named aloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.second_chance import FAILED_MOST

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "tests.plugins.second_chance")
# A race: it is lost the first time.
RACING = """
    from pathlib import Path
    import pytest

    def lost_once(name):
        mark = Path(__file__).with_name(name)
        was_there = mark.exists()
        mark.touch()
        assert was_there, "too slow"
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def racing(suite: pytest.Pytester, tests: str) -> None:
    suite.makepyfile(test_suite=RACING + tests)


ONE = """
    def test_races(): lost_once("one")
    def test_stands(): pass
"""


@pytest.mark.parametrize("processes", [(), ("-p", "xdist", "-n2")], ids=["one", "many"])
def test_who_raced_is_named_at_the_very_end_and_the_run_is_good(
    suite: pytest.Pytester, processes: tuple[str, ...]
) -> None:
    racing(suite, ONE)

    result = suite.runpytest_subprocess(*PLUGIN, *processes)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*1 failed, 1 passed*",
            "*THE FIRST TIME: test_suite.py::test_races*",
            "*AssertionError: too slow*",
            "*THESE RACED: MEND THEM*",
            "They failed, and passed when they were run again, alone:",
            "  test_suite.py::test_races",
        ],
    )
    assert result.outlines[-1] == "  test_suite.py::test_races"


def test_who_fails_again_fails_and_who_raced_beside_it_is_named_all_the_same(
    suite: pytest.Pytester,
) -> None:
    racing(suite, ONE + "    def test_is_wrong(): assert 1 == 2\n")

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*FAILED AGAIN, ALONE: test_suite.py::test_is_wrong*",
            "*assert 1 == 2*",
            "*THESE RACED: MEND THEM*",
            "  test_suite.py::test_races",
        ]
    )


def test_many_failures_are_no_race(suite: pytest.Pytester) -> None:
    count = FAILED_MOST + 1
    racing(
        suite,
        f"""
    @pytest.mark.parametrize("n", range({count}))
    def test_races(n): lost_once(str(n))
""",
    )

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*RACED*")
    result.stdout.fnmatch_lines([f"{count} tests failed: too many to have raced*"])


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        ("    def test_stands(): pass\n", pytest.ExitCode.OK),
        ("    raise RuntimeError\n", pytest.ExitCode.INTERRUPTED),
    ],
    ids=["all is well", "nothing can be collected"],
)
def test_where_no_test_failed_nothing_is_run_again(
    suite: pytest.Pytester, tests: str, status: pytest.ExitCode
) -> None:
    racing(suite, tests)

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == status
    result.stdout.no_fnmatch_line("*RACED*")


def test_who_is_blamed_for_the_leftovers_of_others_is_not_said_to_be_at_fault(
    suite: pytest.Pytester,
) -> None:
    racing(
        suite,
        """
    import gc, socket

    def test_leaves_something():
        circle = [socket.socket()]
        circle.append(circle)

    def test_is_blamed(): gc.collect()
""",
    )

    result = suite.runpytest_subprocess(*PLUGIN, "-W", "error")

    assert result.ret == pytest.ExitCode.OK
    assert result.outlines[-3:] == [
        "  test_suite.py::test_is_blamed",
        "    not for its own fault: somebody before it left something open. Just before ran",
        "      test_suite.py::test_leaves_something",
    ]
