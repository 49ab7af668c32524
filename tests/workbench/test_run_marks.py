"""What git would run or obey is marked, also where no name tells."""

from __future__ import annotations

import pytest

from holdfast.workbench import review
from tests.workbench.benches import Bench

pytestmark = pytest.mark.promise("W13")


def marks(bench: Bench) -> dict[str, bool]:
    return {str(each.path): bool(each.runs) for each in review(bench.workbench).files}


def test_hooks_and_configuration_that_a_configuration_names(bench: Bench) -> None:
    (bench.project / ".git" / "config").write_text(
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../git.inc\n"
    )
    bench.draft()
    bench.run("mkdir -p tools/hooks; echo x > tools/hooks/pre-commit; echo x > git.inc; echo > x")

    assert marks(bench) == {
        "git.inc": True,
        "tools": False,
        "tools/hooks": False,
        "tools/hooks/pre-commit": True,
        "x": False,
    }


def test_what_the_draft_itself_configures_counts_as_well(bench: Bench) -> None:
    bench.draft()
    bench.run("printf '[core]\\n\\thooksPath = h\\n' > .git/config; mkdir h; echo x > h/pre-push")

    assert marks(bench) == {"h": False, "h/pre-push": True}


def test_bare_repositories(bench: Bench) -> None:
    bench.draft()
    bench.run("mkdir -p s/objects s/refs s/hooks; echo > s/config; echo > s/hooks/x; echo > config")
    assert not any(marks(bench).values())
    bench.run("echo 'ref: refs/heads/main' > s/HEAD")

    assert [path for path, is_marked in marks(bench).items() if is_marked] == [
        "s/HEAD",
        "s/config",
        "s/hooks/x",
    ]
