"""The promise plugin, tried on small test suites of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
SUITE = """
    import pytest

    @pytest.mark.promise("F7")
    def test_seven(): pass

    @pytest.mark.promise("F7", "F8")
    def test_both(): pass

    @pytest.mark.promise("F9")
    @pytest.mark.parametrize("n", [1, 2])
    def test_nine(n): pytest.skip("no bubblewrap here")

    @pytest.mark.promise("X1")
    @pytest.mark.xfail(reason="not built")
    def test_one(): assert False

    @pytest.mark.long
    @pytest.mark.promise("X2")
    def test_two(): pass

    def test_nothing(): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite in a directory of its own that can import the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the others cost 2 s a run
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def pytest_in(suite: pytest.Pytester, *args: str) -> pytest.RunResult:
    return suite.runpytest_inprocess("-p", "tests.plugins.promises", "--strict-markers", *args)


@pytest.mark.parametrize(
    ("args", "counts"),
    [
        ((), {"passed": 3, "skipped": 2, "xfailed": 1, "deselected": 1}),
        (("--long",), {"passed": 4, "skipped": 2, "xfailed": 1}),
        (("--promise", "F7"), {"passed": 2, "deselected": 5}),
        (("--promise", "F8"), {"passed": 1, "deselected": 6}),
        (("--promise", "F8,F9"), {"passed": 1, "skipped": 2, "deselected": 4}),
        (("--promise", "F7", "--promise", "X2", "--long"), {"passed": 3, "deselected": 4}),
    ],
)
def test_only_what_was_asked_for_runs(
    run: pytest.Pytester, args: tuple[str, ...], counts: dict[str, int]
) -> None:
    assert pytest_in(run, *args).parseoutcomes() == counts


def test_skipped_proofs_are_named_with_their_reasons(run: pytest.Pytester) -> None:
    result = pytest_in(run)

    result.stdout.fnmatch_lines(
        [
            "*PROMISES NOT PROVED*",
            "F9: no bubblewrap here [[]test_suite.py::test_nine[[]1] (and 1 more)]",
            "X1: expected to fail: not built [[]test_suite.py::test_one]",
            "1 long tests were left out; run them with --long",
        ]
    )


def test_a_run_that_proves_everything_says_nothing(run: pytest.Pytester) -> None:
    result = pytest_in(run, "--promise", "F7")

    result.stdout.no_fnmatch_line("*NOT PROVED*")
    result.stdout.no_fnmatch_line("*left out*")


def test_a_module_that_skips_itself_is_named_too(run: pytest.Pytester) -> None:
    run.makepyfile(
        test_gone="""
        import pytest
        pytest.skip("no kernel", allow_module_level=True)

        @pytest.mark.promise("W3", "W4")
        def test_three(): pass
        """
    )

    pytest_in(run).stdout.fnmatch_lines(
        ["W3: no kernel [[]test_gone.py]", "W4: no kernel [[]test_gone.py]"]
    )


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("Z9", "*no collected test claims to prove Z9"),
        ("F7,Z9,Z8", "*no collected test claims to prove Z8, Z9"),
        ("seven", "*--promise takes ids like F7, not seven"),
    ],
)
def test_asking_for_what_nobody_proves_is_a_usage_error(
    run: pytest.Pytester, asked: str, complaint: str
) -> None:
    result = pytest_in(run, "--promise", asked)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([complaint])


@pytest.mark.parametrize("claim", ["", '"f7"', '"F"', "7", '"F7x"', 'id="F7"'])
def test_a_claim_must_be_an_id(run: pytest.Pytester, claim: str) -> None:
    run.makepyfile(f"import pytest\n@pytest.mark.promise({claim})\ndef test_wrong(): pass")

    result = pytest_in(run)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*::test_wrong: a promise is marked by ids like F7, not *"])


@pytest.mark.parametrize(
    ("asked", "status", "lines"),
    [
        (
            (),
            pytest.ExitCode.OK,
            ["*NOT PROVED*", "F9: no bubblewrap here*", "X1: *", "1 long tests were left out*"],
        ),
        (
            ("--promise", "Z9"),
            pytest.ExitCode.USAGE_ERROR,
            ["ERROR: no collected test claims to prove Z9"],
        ),
    ],
)
def test_many_processes_report_as_one(
    run: pytest.Pytester, asked: tuple[str, ...], status: pytest.ExitCode, lines: list[str]
) -> None:
    result = run.runpytest_subprocess("-p", "tests.plugins.promises", "-p", "xdist", "-n2", *asked)

    assert result.ret == status
    result.stdout.fnmatch_lines(lines)
