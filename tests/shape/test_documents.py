"""The documents agree with the tree: links resolve, decisions name modules that name them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shape.source import ROOT, SRC

DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_GOVERNS = re.compile(r"\*\*Governs\*\* (.*?)\.\n\n", re.DOTALL)


def governed(page: Path) -> list[Path]:
    """The files that a decision governs; a bare name is beside the one before it."""
    (listed,) = _GOVERNS.findall(page.read_text(encoding="utf-8"))
    found: list[Path] = []
    for name in re.findall(r"`([^`]+)`", listed):
        beside = [found[-1].parent / name] if found else []
        candidates = [*beside, SRC / name, ROOT / name]
        if found and found[-1].is_relative_to(SRC):
            candidates.append(SRC / found[-1].relative_to(SRC).parts[0] / name)
        found.append(next((each for each in candidates if each.exists()), ROOT / name))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]

    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_and_its_code_name_each_other(page: Path) -> None:
    files = governed(page)

    assert [str(each.relative_to(ROOT)) for each in files if not each.exists()] == []
    texts = [each.read_text(encoding="utf-8") for each in files if each.is_file()]
    assert any(f"docs/decisions/{page.stem[:4]}" in text for text in texts)


def test_the_index_lists_every_decision() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")

    assert _LINK.findall(index)[2:] == [page.name for page in DECISIONS]
