"""What a failed test leaves open is its own affair."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("plugins", "failed"),
    [((), 2), (("-p", "tests.plugins.leftovers"), 1)],
    ids=["without", "with"],
)
def test_the_next_one_is_not_blamed(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    plugins: tuple[str, ...],
    failed: int,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import gc, socket

        def test_first():
            leaked = socket.socket()
            assert False

        def test_second(): gc.collect()
        """
    )

    result = pytester.runpytest_subprocess(*plugins, "-W", "error")

    assert result.parseoutcomes()["failed"] == failed
