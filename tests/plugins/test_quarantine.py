"""The quarantine plugin, run on small test suites."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.plugins.quarantine import LIST, Entry, parse, read, rendered

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "tests.plugins.quarantine")
# A race: the test fails the first time it runs.
RACING = """
    from pathlib import Path
    import pytest

    def fails_once(name):
        mark = Path(__file__).with_name(name)
        was_there = mark.exists()
        mark.touch()
        assert was_there, "too slow"
"""
ONE = """
    def test_races(): fails_once("one")
    def test_passes(): pass
"""
PASSED_AGAIN = "*QUARANTINED TESTS THAT PASSED WHEN RUN AGAIN*"
NOT_LISTED = f"*FAILED AND NOT IN {LIST}*"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def write(suite: pytest.Pytester, tests: str, *, listed: tuple[str, ...] = ()) -> None:
    suite.makepyfile(test_suite=RACING + tests)
    suite.mkdir("tests")
    rows = (
        f'[[test]]\nid = "test_suite.py::{name}"\nsince = 2026-01-02\nreason = "slow disk"\n'
        for name in listed
    )
    (suite.path / LIST).write_text("".join(rows))


@pytest.mark.parametrize("processes", [(), ("-p", "xdist", "-n2")], ids=["one", "many"])
def test_listed_test_runs_again_and_the_run_succeeds(
    suite: pytest.Pytester, processes: tuple[str, ...]
) -> None:
    write(suite, ONE, listed=("test_races",))

    result = suite.runpytest_subprocess(*PLUGIN, *processes)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: too slow*",
            "*1 failed, 1 passed*",
            PASSED_AGAIN,
            "  test_suite.py::test_races",
        ],
    )
    assert result.outlines[-1] == "  test_suite.py::test_races"


def test_unlisted_failure_fails_the_run_and_is_not_run_again(suite: pytest.Pytester) -> None:
    write(suite, ONE)

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line(PASSED_AGAIN)
    result.stdout.fnmatch_lines([NOT_LISTED, "  test_suite.py::test_races"])


def test_unlisted_failure_beside_a_listed_one_fails_the_run(suite: pytest.Pytester) -> None:
    write(suite, ONE + '    def test_other(): fails_once("other")\n', listed=("test_races",))

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [PASSED_AGAIN, "  test_suite.py::test_races", NOT_LISTED, "  test_suite.py::test_other"]
    )


def test_listed_test_that_fails_again_fails_the_run(suite: pytest.Pytester) -> None:
    write(suite, "    def test_is_wrong(): assert 1 == 2\n", listed=("test_is_wrong",))

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line(PASSED_AGAIN)
    result.stdout.fnmatch_lines(
        ["*FAILED AGAIN, ALONE: test_suite.py::test_is_wrong*", "*assert 1 == 2*"]
    )


def test_an_entry_covers_all_parameters_or_one(suite: pytest.Pytester) -> None:
    tests = """
    @pytest.mark.parametrize("n", range(2))
    def test_all(n): fails_once(f"all{n}")

    @pytest.mark.parametrize("n", range(2))
    def test_one(n): fails_once(f"one{n}")
"""
    write(suite, tests, listed=("test_all", "test_one[1]"))

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # The lines after the two headings, which are the last sections of the output.
    assert [line for line in result.outlines[-6:] if line.startswith("  ")] == [
        "  test_suite.py::test_all[0]",
        "  test_suite.py::test_all[1]",
        "  test_suite.py::test_one[1]",
        "  test_suite.py::test_one[0]",
    ]


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        ("    def test_passes(): pass\n", pytest.ExitCode.OK),
        ("    raise RuntimeError\n", pytest.ExitCode.INTERRUPTED),
    ],
    ids=["all tests pass", "collection fails"],
)
def test_runs_without_failed_tests_keep_their_status(
    suite: pytest.Pytester, tests: str, status: pytest.ExitCode
) -> None:
    write(suite, tests, listed=("test_passes",))

    result = suite.runpytest_inprocess(*PLUGIN)

    assert result.ret == status
    result.stdout.no_fnmatch_line(PASSED_AGAIN)


def test_tests_before_a_leak_are_named(suite: pytest.Pytester) -> None:
    tests = """
    import gc, socket

    def test_leaks():
        circle = [socket.socket()]
        circle.append(circle)

    def test_fails_by_it(): gc.collect()
"""
    write(suite, tests)

    result = suite.runpytest_subprocess(*PLUGIN, "-W", "error")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "test_suite.py::test_fails_by_it failed because an earlier test left something open. *",
            "  test_suite.py::test_leaks",
        ]
    )


def test_a_list_that_cannot_be_read_is_a_usage_error(suite: pytest.Pytester) -> None:
    write(suite, ONE)
    (suite.path / LIST).write_text('[[test]]\nid = "test_suite.py::test_races"\n')

    result = suite.runpytest_subprocess(*PLUGIN)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{LIST}: a quarantined test needs an id, a date and a reason*"])


def test_parse() -> None:
    text = '[[test]]\nid = "a.py::test_b"\nsince = 2026-01-02\nreason = "slow disk"\n'

    assert parse("") == []
    assert parse(text) == [Entry("a.py::test_b", date(2026, 1, 2), "slow disk")]


@pytest.mark.parametrize(
    "text",
    [
        'id = "a"',
        '[[tests]]\nid = "a"\nsince = 2026-01-02\nreason = "b"',
        '[[test]]\nid = "a"\nsince = 2026-01-02',
        '[[test]]\nid = "a"\nsince = 2026-01-02\nreason = ""',
        '[[test]]\nid = "a"\nsince = "2026-01-02"\nreason = "b"',
        '[[test]]\nid = "a"\nsince = 2026-01-02\nreason = "b"\nuntil = 2026-01-03',
        '[[test]]\nid = "a"\nsince = 2026-01-02T03:04:05\nreason = "b"',
        "[[test",
    ],
)
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_rendered_entries_show_their_age_oldest_first() -> None:
    entries = [
        Entry("b.py::test_b", date(2026, 1, 9), "slow disk"),
        Entry("a.py::test_a", date(2026, 1, 1), "busy port"),
    ]

    assert list(rendered([], today=date(2026, 1, 10))) == ["quarantined tests: 0"]
    assert list(rendered(entries, today=date(2026, 1, 10))) == [
        "quarantined tests: 2",
        "  for 9 days: a.py::test_a (busy port)",
        "  for 1 day: b.py::test_b (slow disk)",
    ]


def test_every_listed_test_exists() -> None:
    for entry in read(ROOT):
        path, _, name = entry.test.partition("::")
        function = name.rpartition("::")[2].partition("[")[0]
        assert f"def {function}(" in (ROOT / path).read_text()
